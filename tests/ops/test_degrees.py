"""Degree bounds: nothing cascades, and no hop moves further than its declared sensitivity."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet.errors import GraphError, ParameterError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.ops.degrees import (
    bound_degrees,
    cap_owned,
    check_promised,
    hop_sensitivity,
    sum_sensitivity,
    surviving_degree,
    thin,
    touched_examples,
)
from discreet.ops.keyed_hash import derive_key, hash_pairs
from discreet.privacy.levels import EdgeLevel, LocalLevel, NeighborLevel, NodeLevel

KEY = bytes(range(16))


def make(pairs, n, directed=True):
    source, target = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True)) if pairs else ([], [])
    return Graph.from_edges(
        np.asarray(source, dtype=np.int64),
        np.asarray(target, dtype=np.int64),
        np.zeros((n, 1)),
        directed=directed,
        num_classes=2,
    )


def dense(graph):
    return graph.adjacency.toarray().astype(float)


# -------------------------------------------------------------------- the hash


def test_hash_is_siphash_2_4():
    """The published vector for key 00…0f and message 00…0f."""
    words = np.frombuffer(bytes(range(16)), dtype="<u8").astype(np.int64)
    assert hash_pairs(KEY, words[:1], words[1:])[0] == 0x3F2ACC7F57C29BDB


def test_hash_depends_on_key_order_and_nothing_else():
    first, second = np.arange(40_000), np.arange(40_000)[::-1].copy()
    whole = hash_pairs(KEY, first, second)
    assert np.array_equal(whole[123:456], hash_pairs(KEY, first[123:456], second[123:456]))
    assert not np.array_equal(whole, hash_pairs(KEY, second, first))
    assert not np.array_equal(whole, hash_pairs(derive_key(b"secret", "x"), first, second))
    bits = np.unpackbits(whole.view(np.uint8)).mean()
    assert abs(bits - 0.5) < 0.002
    with pytest.raises(ValueError, match="16 bytes"):
        hash_pairs(b"short", first, second)


# -------------------------------------------------------------------- owned


def test_owned_keeps_the_smallest_hashes_of_each_node_by_itself():
    rng = np.random.default_rng(0)
    graph = make([(int(u), int(v)) for u, v in rng.integers(0, 30, (400, 2)) if u != v], 30)
    capped = cap_owned(graph, 5, KEY)
    source, target = graph.edges()
    for node in range(30):
        own = target[source == node]
        order = np.argsort(hash_pairs(KEY, np.full(len(own), node), own))
        kept = np.sort(own[order[:5]])
        after = np.sort(capped.edges()[1][capped.edges()[0] == node])
        assert np.array_equal(kept, after)
    assert capped.out_degree().max() == 5


def test_owned_makes_an_undirected_graph_directed():
    star = make([(0, i) for i in range(1, 8)], 8, directed=False)
    capped = cap_owned(star, 3, KEY)
    assert capped.directed
    assert capped.out_degree().tolist() == [3] + [1] * 7


def lists(graph):
    source, target = graph.edges()
    return [frozenset(target[source == node].tolist()) for node in range(graph.num_nodes)]


def greedy(graph, bound):
    """The planted fault: walk the entries and keep one while both ends have room (paper 001, algorithm 2, in kind)."""
    room_out, room_in = np.full(graph.num_nodes, bound), np.full(graph.num_nodes, bound)
    kept = []
    for u, v in zip(*graph.edges(), strict=True):
        if room_out[u] and room_in[v]:
            kept.append((int(u), int(v)))
            room_out[u] -= 1
            room_in[v] -= 1
    return make(kept, graph.num_nodes)


def foreign_lists_changed(bounding):
    """How many lists of *others* move when one node's outgoing entries are taken away, at worst."""
    rng = np.random.default_rng(1)
    worst = 0
    for _ in range(60):
        graph = make([(int(u), int(v)) for u, v in rng.integers(0, 12, (60, 2)) if u != v], 12)
        hub = int(graph.out_degree().argmax())
        source, target = graph.edges()
        bare = graph.with_edges(source[source != hub], target[source != hub])
        before, after = lists(bounding(graph)), lists(bounding(bare))
        worst = max(worst, sum(before[node] != after[node] for node in range(12) if node != hub))
    return worst


def test_owned_never_changes_another_list_and_a_greedy_cap_does():
    assert foreign_lists_changed(lambda graph: cap_owned(graph, 2, KEY)) == 0
    assert foreign_lists_changed(lambda graph: greedy(graph, 2)) > 2


# -------------------------------------------------------------------- promised and thinned


def test_promised_refuses_by_how_much_and_not_by_whom():
    star = make([(0, i) for i in range(1, 8)], 8, directed=False)
    assert check_promised(star, 7) is star
    with pytest.raises(GraphError, match="bound is 4, but a degree exceeds it by 3") as error:
        check_promised(star, 4)
    assert "node 0" not in str(error.value)


def test_thinned_flips_the_same_coin_for_an_entry_in_every_graph():
    rng = np.random.default_rng(2)
    graph = make([(int(u), int(v)) for u, v in rng.integers(0, 200, (3000, 2)) if u != v], 200)
    kept = set(zip(*thin(graph, 200, 0.3, KEY).edges(), strict=True))
    source, target = graph.edges()
    some = rng.random(len(source)) < 0.5
    part = graph.with_edges(source[some], target[some])
    assert set(zip(*thin(part, 200, 0.3, KEY).edges(), strict=True)) == kept & set(zip(*part.edges(), strict=True))
    assert abs(len(kept) / graph.num_entries - 0.3) < 0.04
    assert thin(graph, 200, 1.0, KEY).num_entries == graph.num_entries


def test_thinned_treats_the_two_entries_of_an_edge_apart_and_refuses_a_broken_promise():
    n = 60
    clique = make(list(itertools.combinations(range(n), 2)), n, directed=False)
    thinned = thin(clique, n, 0.5, KEY)
    matrix = dense(thinned)
    assert thinned.directed
    assert 0.2 < (matrix * matrix.T).sum() / (n * (n - 1)) < 0.3  # both survive: a quarter, not a half
    with pytest.raises(GraphError, match="exceeds it by 9"):
        thin(clique, 50, 0.5, KEY)
    with pytest.raises(ParameterError, match="p must lie"):
        thin(clique, n, 0.0, KEY)


@pytest.mark.parametrize(("d_max", "p", "failure"), [(20, 0.3, 0.05), (200, 0.05, 1e-5), (50, 0.5, 1e-3)])
def test_surviving_degree_is_the_least_bound(d_max, p, failure):
    bound = surviving_degree(d_max, p, failure)
    assert binom.sf(bound, d_max, p) <= failure < binom.sf(bound - 1, d_max, p)
    assert surviving_degree(d_max, p, failure, lists=10) >= bound


def test_thinned_bound_holds_over_keys_and_the_null_figure_fails_under_replace():
    """Half the receivers of a star replaced by others: how often do more rows change than the bound says?"""
    n, d_max, p, failure = 41, 20, 0.3, 0.05
    before = make([(0, i) for i in range(1, 21)], n)
    after = make([(0, i) for i in range(21, 41)], n)
    null, _ = touched_examples(NodeLevel(edges="thinned", d_max=d_max, p=p), 1, failure=failure)
    replace, _ = touched_examples(NodeLevel(edges="thinned", d_max=d_max, p=p, change="replace"), 1, failure=failure)
    changed = []
    for seed in range(600):
        key = derive_key(str(seed).encode(), "thin")
        changed.append(1 + thin(before, d_max, p, key).num_entries + thin(after, d_max, p, key).num_entries)
    assert np.mean(np.array(changed) > replace) <= failure + 3 * math.sqrt(failure / 600)
    assert np.mean(np.array(changed) > null) > 3 * failure
    assert binom.sf(surviving_degree(200, 0.05, 1e-5), 400, 0.05) == pytest.approx(0.1, abs=0.05)


def test_bound_degrees_follows_the_level():
    star = make([(0, i) for i in range(1, 8)], 8, directed=False)
    assert bound_degrees(star, NodeLevel(3), KEY).out_degree().max() == 3
    assert bound_degrees(star, NodeLevel(7, edges="promised"), KEY) is star
    assert bound_degrees(star, NodeLevel(edges="thinned", d_max=7, p=0.5), KEY).num_entries < 14
    assert bound_degrees(star, NeighborLevel(2), KEY).num_entries == 14
    with pytest.raises(ParameterError, match="max_degree must be a whole number of at least 1, not 0"):
        cap_owned(star, 0, KEY)


# -------------------------------------------------------------------- noisy sums, by brute force


def hop(matrix, aggregation, self_loops):
    matrix = matrix + np.eye(len(matrix)) if self_loops else matrix
    if aggregation == "sum":
        return matrix
    degree = matrix.sum(1, keepdims=True)
    return np.divide(matrix, degree, out=np.zeros_like(matrix), where=degree > 0)


def signs(n):
    return np.array(list(itertools.product([1.0, -1.0], repeat=n))).T


def largest_move(before, after, node, rows, *, private, null_row):
    """max ‖A H − A′ H′‖ over rows ±1; private inputs may turn the unit's own row into anything."""
    columns = signs(len(before))
    worst = 0.0
    for own in ((1.0, -1.0, 0.0) if null_row is None else (null_row,)) if private else (None,):
        other = columns.copy()
        if own is not None:
            other[node] = own
        move = (before @ columns - after @ other)[rows]
        worst = max(worst, float(np.sqrt((move**2).sum(0)).max()))
    return worst


def owned_pairs(n, bound, change, toggles=None):
    """Every digraph of n nodes against every change of one node's outgoing entries, under one key."""
    slots = [(u, v) for u in range(n) for v in range(n) if u != v]
    capped = {}
    for chosen in itertools.product([0, 1], repeat=len(slots)):
        capped[chosen] = dense(cap_owned(make([s for s, c in zip(slots, chosen, strict=True) if c], n), bound, KEY))
    for chosen, matrix in capped.items():  # node 0 changes; over all graphs it stands for every node
        for new in itertools.product([0, 1], repeat=n - 1) if change == "replace" else [(0,) * (n - 1)]:
            if toggles is None or sum(a != b for a, b in zip(chosen[: n - 1], new, strict=True)) <= toggles:
                yield matrix, capped[(*new, *chosen[n - 1 :])], 0


def promised_pairs(n, bound, change):
    """Every undirected graph within the bound against every other choice of one node's edges within it."""
    slots = list(itertools.combinations(range(n), 2))
    graphs = {}
    for chosen in itertools.product([0, 1], repeat=len(slots)):
        matrix = np.zeros((n, n))
        for (u, v), c in zip(slots, chosen, strict=True):
            matrix[u, v] = matrix[v, u] = c
        if matrix.sum(0).max() <= bound:
            graphs[chosen] = matrix
    for chosen, matrix in graphs.items():
        for new in itertools.product([0, 1], repeat=n - 1) if change == "replace" else [(0,) * (n - 1)]:
            other = (*new, *chosen[n - 1 :])
            if other in graphs:
                yield matrix, graphs[other], 0


CASES = list(itertools.product(["null", "replace"], ["sum", "mean"], [False, True], ["private", "released"]))


def check_pairs(pairs, level, case, rows, **options):
    change, aggregation, self_loops, inputs = case
    bound, _ = sum_sensitivity(level, inputs=inputs, aggregation=aggregation, self_loops=self_loops, **options)
    null_row = 0.0 if options.get("zero_null_row") and change == "null" else None
    worst = 0.0
    for before, after, node in pairs:
        moved = largest_move(
            hop(before, aggregation, self_loops),
            hop(after, aggregation, self_loops),
            node,
            rows,
            private=inputs == "private",
            null_row=null_row,
        )
        assert moved <= bound + 1e-9, (case, moved, bound)
        worst = max(worst, moved)
    return worst / bound


@pytest.fixture(scope="module")
def four_node_pairs():
    return {(d, change): list(owned_pairs(4, d, change)) for d in (1, 2) for change in ("null", "replace")}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("bound", [1, 2])
def test_owned_sums_on_every_digraph_of_four_nodes(case, bound, four_node_pairs):
    pairs = four_node_pairs[bound, case[0]][:: 1 if case[0] == "null" else 7]
    tightness = check_pairs(pairs, NodeLevel(bound, change=case[0]), case, slice(None))
    crowded = case[0] == "replace" and (bound == 2 or case[1:3] == ("mean", True))  # no room for 2D receivers
    assert tightness >= (0.7 if crowded else 0.999)
    if case[0] == "null" and case[2]:
        level = NodeLevel(bound, change="null")
        assert check_pairs(pairs, level, case, slice(None), zero_null_row=True) >= 0.999


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("bound", [2, 4])
def test_promised_sums_on_every_graph_of_five_nodes(case, bound):
    pairs = list(promised_pairs(5, bound, case[0]))[:: 1 if case[0] == "null" else 3]
    level = NodeLevel(bound, edges="promised", change=case[0])
    tightness = check_pairs(pairs, level, case, slice(1, None))
    assert tightness >= (0.999 if case[0] == "null" else 0.5)


@pytest.mark.parametrize("case", [case for case in CASES if case[0] == "replace"])
def test_replace_is_attained_where_there_is_room(case):
    """D receivers before and D others after, or the same D with the row turned round: at least 0.999 of the bound."""
    d = 3
    n = 2 * d + 2
    first, second = np.zeros((n, n)), np.zeros((n, n))
    first[1 : d + 1, 0] = 1
    second[d + 1 : 2 * d + 1, 0] = 1
    pairs = [(first, second, 0), (first, first, 0), (second, first, 0)]
    assert check_pairs(pairs, NodeLevel(d, change="replace"), case, slice(None)) >= 0.999


@pytest.mark.parametrize("toggles", [1, 2])
def test_k_neighbour_sums_under_the_owned_cap(toggles):
    """One toggle may change two kept entries: √(2k) is attained, √k would be too little."""
    pairs = list(owned_pairs(4, 1, "replace", toggles))
    level = NeighborLevel(toggles, max_degree=1)
    case = ("replace", "sum", False, "released")
    assert check_pairs(pairs, level, case, slice(None)) >= 0.999
    assert check_pairs(pairs, level, ("replace", "sum", False, "private"), slice(None)) >= 0.999


def test_k_neighbour_sums_without_a_cap():
    assert sum_sensitivity(NeighborLevel(3), inputs="released")[0] == math.sqrt(3)
    assert sum_sensitivity(NeighborLevel(3, 9, "promised"), inputs="released")[0] == math.sqrt(3)
    with pytest.raises(UnsupportedError, match="give max_degree"):
        sum_sensitivity(NeighborLevel(3), inputs="private")


def test_random_larger_graphs_with_wide_rows():
    rng = np.random.default_rng(3)
    for _ in range(150):
        n, d = int(rng.integers(6, 20)), int(rng.integers(1, 6))
        pairs = [(int(u), int(v)) for u, v in rng.integers(0, n, (int(rng.integers(1, 6 * n)), 2)) if u != v]
        level = NodeLevel(d, change=str(rng.choice(["null", "replace"])))
        graph = make(pairs, n)
        other = level.neighbor(graph, rng)
        changed = [i for i in range(n) if lists(graph)[i] != lists(other)[i]]
        if not changed:
            continue
        before, after = (dense(cap_owned(g, d, KEY)) for g in (graph, other))
        rows = rng.standard_normal((n, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        turned = rows.copy()
        turned[changed[0]] *= -1
        for aggregation in ("sum", "mean"):
            moved = np.linalg.norm(hop(before, aggregation, False) @ rows - hop(after, aggregation, False) @ turned)
            assert moved <= sum_sensitivity(level, inputs="private", aggregation=aggregation)[0] + 1e-9
            moved = np.linalg.norm((hop(before, aggregation, False) - hop(after, aggregation, False)) @ rows)
            assert moved <= sum_sensitivity(level, inputs="released", aggregation=aggregation)[0] + 1e-9


def test_figures_of_the_soundness_page():
    d = 9
    null, replace = NodeLevel(d), NodeLevel(d, change="replace")
    assert hop_sensitivity(null, hop=1)[0] == hop_sensitivity(null, hop=2)[0] == 3.0
    assert hop_sensitivity(replace, hop=1)[0] == 6.0
    assert hop_sensitivity(replace, hop=2)[0] == math.sqrt(18)
    assert sum_sensitivity(replace, inputs="released")[0] == math.sqrt(18)
    assert hop_sensitivity(null, self_loops=True, zero_null_row=True)[0] == math.sqrt(10)
    assert hop_sensitivity(replace, self_loops=True)[0] == 2 * math.sqrt(10)
    promised = NodeLevel(d, edges="promised", change="replace")
    assert hop_sensitivity(promised, hop=2)[0] == 6.0  # the unit's own row was never released
    thinned = NodeLevel(edges="thinned", d_max=50, p=0.1, change="replace")
    assert hop_sensitivity(thinned, failure=1e-4)[0] == 2 * math.sqrt(surviving_degree(50, 0.1, 5e-5))
    with pytest.raises(ParameterError, match="may fail"):
        hop_sensitivity(thinned)


# -------------------------------------------------------------------- examples touched: the figures


@pytest.mark.parametrize(
    ("level", "hops", "expected"),
    [
        (NodeLevel(7), 1, 8),
        (NodeLevel(7, change="replace"), 1, 15),
        (NodeLevel(3), 2, 13),
        (NodeLevel(3, change="replace"), 2, 25),
        (NodeLevel(3, edges="promised"), 2, 13),
        (NeighborLevel(2, 5), 1, 8),
        (NeighborLevel(9, 5), 1, 11),
        (EdgeLevel(), 1, 2),
        (EdgeLevel(directed=True), 1, 1),
        (NodeLevel(7), 0, 1),
        (EdgeLevel(), 0, 0),
    ],
)
def test_touched_examples_figures(level, hops, expected):
    assert touched_examples(level, hops)[0] == expected


def test_touched_examples_refuses_what_it_cannot_bound():
    for level, hops in ((EdgeLevel(), 2), (NeighborLevel(2), 1), (LocalLevel(), 1)):
        with pytest.raises(UnsupportedError):
            touched_examples(level, hops)
    with pytest.raises(ParameterError, match="number of nodes"):
        touched_examples(NodeLevel(edges="thinned", d_max=20, p=0.1), 2, failure=1e-5)
