"""Degree bounds: nothing cascades. What one node can move under them: ``tests/queries/test_reach.py``."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from discreet.errors import GraphError, ParameterError
from discreet.graph.synthetic import csbm
from discreet.ops.compiled import compiled
from discreet.ops.degrees import _mask_dropped, bound_degrees, cap_owned, check_promised, rank_by_hash, thin
from discreet.ops.keyed_hash import derive_key, hash_pairs
from discreet.privacy.levels import NeighborLevel, NodeLevel
from tests.plain_graphs import KEY, dense_adjacency, make_graph

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
    graph = make_graph([(int(u), int(v)) for u, v in rng.integers(0, 30, (400, 2)) if u != v], 30)
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
    star = make_graph([(0, i) for i in range(1, 8)], 8, directed=False)
    capped = cap_owned(star, 3, KEY)
    assert capped.directed
    assert capped.out_degree().tolist() == [3] + [1] * 7


def lists(graph):
    source, target = graph.edges()
    return [frozenset(target[source == node].tolist()) for node in range(graph.num_nodes)]


def greedy(graph, bound):
    """The planted fault: walk the entries and keep one while both ends have room (DP-GNN, algorithm 2, in kind)."""
    room_out, room_in = np.full(graph.num_nodes, bound), np.full(graph.num_nodes, bound)
    kept = []
    for u, v in zip(*graph.edges(), strict=True):
        if room_out[u] and room_in[v]:
            kept.append((int(u), int(v)))
            room_out[u] -= 1
            room_in[v] -= 1
    return make_graph(kept, graph.num_nodes)


def foreign_lists_changed(bounding):
    """How many lists of *others* move when one node's outgoing entries are taken away, at worst."""
    rng = np.random.default_rng(1)
    worst = 0
    for _ in range(60):
        graph = make_graph([(int(u), int(v)) for u, v in rng.integers(0, 12, (60, 2)) if u != v], 12)
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


def test_promised_refuses_without_saying_by_how_much_or_whom():
    star = make_graph([(0, i) for i in range(1, 8)], 8, directed=False)
    assert check_promised(star, 7) is star
    said = []
    for edges in ([(0, i) for i in range(1, 8)], [(7, i) for i in range(6)]):
        with pytest.raises(GraphError, match="bound is 4, but a degree exceeds it: promise more") as error:
            check_promised(make_graph(edges, 8, directed=False), 4)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_thinned_flips_the_same_coin_for_an_entry_in_every_graph():
    rng = np.random.default_rng(2)
    graph = make_graph([(int(u), int(v)) for u, v in rng.integers(0, 200, (3000, 2)) if u != v], 200)
    kept = set(zip(*thin(graph, 200, 0.3, KEY).edges(), strict=True))
    source, target = graph.edges()
    some = rng.random(len(source)) < 0.5
    part = graph.with_edges(source[some], target[some])
    assert set(zip(*thin(part, 200, 0.3, KEY).edges(), strict=True)) == kept & set(zip(*part.edges(), strict=True))
    assert abs(len(kept) / graph.num_entries - 0.3) < 0.04
    assert thin(graph, 200, 1.0, KEY).num_entries == graph.num_entries


def test_thinned_treats_the_two_entries_of_an_edge_apart_and_refuses_a_broken_promise():
    n = 60
    clique = make_graph(list(itertools.combinations(range(n), 2)), n, directed=False)
    thinned = thin(clique, n, 0.5, KEY)
    matrix = dense_adjacency(thinned)
    assert thinned.directed
    assert 0.2 < (matrix * matrix.T).sum() / (n * (n - 1)) < 0.3  # both survive: a quarter, not a half
    with pytest.raises(GraphError, match="exceeds it"):
        thin(clique, 50, 0.5, KEY)
    with pytest.raises(ParameterError, match="p must lie"):
        thin(clique, n, 0.0, KEY)


def test_bound_degrees_follows_the_level():
    star = make_graph([(0, i) for i in range(1, 8)], 8, directed=False)
    assert bound_degrees(star, NodeLevel(3), KEY).out_degree().max() == 3
    assert bound_degrees(star, NodeLevel(7, edges="promised"), KEY) is star
    assert bound_degrees(star, NodeLevel(edges="thinned", d_max=7, p=0.5), KEY).num_entries < 14
    assert bound_degrees(star, NeighborLevel(2), KEY).num_entries == 14
    with pytest.raises(ParameterError, match="max_degree must be a whole number of at least 1, not 0"):
        cap_owned(star, 0, KEY)


def test_of_equal_hashes_the_first_are_kept():
    ends, hashed = np.array([0, 5, 8]), np.array([7, 3, 7, 7, 1, 2, 2, 2], dtype=np.uint64)
    assert np.flatnonzero(compiled(_mask_dropped)(ends, hashed, 3)).tolist() == [2, 3]
    assert np.flatnonzero(compiled(_mask_dropped)(ends, hashed, 1)).tolist() == [0, 1, 2, 3, 6, 7]


def test_owned_keeps_what_ranks_say():
    graph = csbm(300, 2, average_degree=12.0).as_directed()
    source, target = graph.edges()
    kept = rank_by_hash(source, target, KEY) < 5
    found, expected = cap_owned(graph, 5, KEY), graph.with_edges(source[kept], target[kept])
    assert np.array_equal(found.indptr, expected.indptr)
    assert np.array_equal(found.indices, expected.indices)
