"""How far one unit reaches under a degree bound: sums and examples, against brute force."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from discreet.errors import ParameterError, UnsupportedError
from discreet.ops.degrees import cap_owned, thin
from discreet.ops.keyed_hash import derive_key
from discreet.privacy.levels import EdgeLevel, LocalLevel, NeighborLevel, NodeLevel
from discreet.queries.reach import hop_sensitivity, sum_sensitivity, surviving_degree, touched_examples
from tests.plain_graphs import KEY, dense_adjacency, make_graph


def lists(graph):
    source, target = graph.edges()
    return [frozenset(target[source == node].tolist()) for node in range(graph.num_nodes)]


# -------------------------------------------------------------------- how many entries survive


@pytest.mark.parametrize(("d_max", "p", "failure"), [(20, 0.3, 0.05), (200, 0.05, 1e-5), (50, 0.5, 1e-3)])
def test_surviving_degree_is_the_least_bound(d_max, p, failure):
    bound = surviving_degree(d_max, p, failure)
    assert binom.sf(bound, d_max, p) <= failure < binom.sf(bound - 1, d_max, p)
    assert surviving_degree(d_max, p, failure, lists=10) >= bound


def test_thinned_bound_holds_over_keys_and_the_null_figure_fails_under_replace():
    """Half the receivers of a star replaced by others: how often do more rows change than the bound says?"""
    n, d_max, p, failure = 41, 20, 0.3, 0.05
    before = make_graph([(0, i) for i in range(1, 21)], n)
    after = make_graph([(0, i) for i in range(21, 41)], n)
    null, _ = touched_examples(NodeLevel(edges="thinned", d_max=d_max, p=p), 1, failure=failure)
    replace, _ = touched_examples(NodeLevel(edges="thinned", d_max=d_max, p=p, change="replace"), 1, failure=failure)
    changed = []
    for seed in range(600):
        key = derive_key(str(seed).encode(), "thin")
        changed.append(1 + thin(before, d_max, p, key).num_entries + thin(after, d_max, p, key).num_entries)
    assert np.mean(np.array(changed) > replace) <= failure + 3 * math.sqrt(failure / 600)
    assert np.mean(np.array(changed) > null) > 3 * failure
    assert binom.sf(surviving_degree(200, 0.05, 1e-5), 400, 0.05) == pytest.approx(0.1, abs=0.05)


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


@cache
def capped_digraphs(n, bound):
    """Every digraph of n nodes, by its entries, under the bound and one key."""
    slots = [(u, v) for u in range(n) for v in range(n) if u != v]
    return {
        chosen: dense_adjacency(
            cap_owned(make_graph([s for s, c in zip(slots, chosen, strict=True) if c], n), bound, KEY)
        )
        for chosen in itertools.product([0, 1], repeat=len(slots))
    }


def owned_pairs(n, bound, change, toggles=None):
    """Every digraph of n nodes against every change of one node's outgoing entries, under one key."""
    capped = capped_digraphs(n, bound)
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
        graph = make_graph(pairs, n)
        other = level.neighbor(graph, rng)
        changed = [i for i in range(n) if lists(graph)[i] != lists(other)[i]]
        if not changed:
            continue
        before, after = (dense_adjacency(cap_owned(g, d, KEY)) for g in (graph, other))
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
    assert hop_sensitivity(promised, hop=2)[0] == math.sqrt(18)  # the unit's own row was released with the others
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
