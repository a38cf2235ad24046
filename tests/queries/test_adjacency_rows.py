"""Adjacency rows times node rows: how far they move between neighbours, for any W."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.arrays import FloatArray
from discreet.audit.small_graphs import small_graph
from discreet.errors import ParameterError
from discreet.graph.graph import Graph
from discreet.ops.row_embedding import embed_rows
from discreet.privacy.levels import EdgeLevel, Level, LocalLevel, NeighborLevel, NodeLevel
from discreet.queries.adjacency_rows import AdjacencyRows
from discreet.queries.kept_edges import KEY
from tests.plain_graphs import make_graph
from tests.queries.row_levels import LEVELS

RecordProperty = Callable[[str, object], None]


def answered(query: AdjacencyRows, graph: Graph, weight: FloatArray | sp.csr_array) -> FloatArray:
    _, private = query.level.split(graph)
    private.entrust(KEY, bytes(range(16)))
    return query.answer(private, weight=weight)


def moved(level: Level, one: Graph, two: Graph, weight: FloatArray) -> float:
    """‖AW − A′W‖ over the bound."""
    row_norm = float(np.linalg.norm(weight, axis=1).max())
    query = AdjacencyRows(level, one.num_nodes, weight.shape[1], row_norm)
    first, second = (answered(query, graph, weight) for graph in (one, two))
    return float(np.linalg.norm(first - second)) / query.bound().sensitivity


def bound_of(level: Level, row_norm: float = 1.0) -> float:
    return AdjacencyRows(level, 8, 8, row_norm).bound().sensitivity


# -------------------------------------------------------------------- W is cut here


@pytest.mark.parametrize("sparse", [False, True])
def test_any_weight_is_cut_to_the_row_norm(sparse: bool) -> None:
    """Rows too long, too long to measure, and not finite; short ones are left alone."""
    weight = np.array([[3.0, 4.0], [0.1, 0.0], [1e200, 1e200], [np.nan, 1.0], [0.0, np.inf]])
    graph = make_graph([(i, i + 5) for i in range(5)], 10)  # row i of W arrives at node i + 5 alone
    padded = np.vstack([weight, np.zeros((5, 2))])
    found = answered(AdjacencyRows(EdgeLevel(True), 10, 2, 2.0), graph, sp.csr_array(padded) if sparse else padded)
    assert (np.linalg.norm(found, axis=1) <= 2.0).all()
    assert np.allclose(found[5:], [[1.2, 1.6], [0.1, 0.0], [0, 0], [0, 0], [0, 0]])


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_over_many_edges_are_exact(sparse: bool) -> None:
    """Else partial sums that a first edge moved apart would round apart: at a hub by more than the room for it."""
    rows = np.random.default_rng(0).uniform(0.5, 1.0, (999, 1))
    graph = make_graph([(sender, 0) for sender in range(1, 999)], 999)
    query = AdjacencyRows(EdgeLevel(True), 999, 1)
    found = answered(query, graph, sp.csr_array(rows) if sparse else rows)[0, 0]
    assert found * 2**23 == sum(math.floor(row * 2**23) for row in rows[1:, 0])


def test_the_least_norm_bounds_as_well() -> None:
    """Of all that ``limits.ROW_NORM`` allows."""
    graph = make_graph([(0, 1), (0, 2), (1, 2)], 3, directed=False)
    level, weight = NodeLevel(2, "promised"), np.full((3, 1), 1.0)
    found = answered(AdjacencyRows(level, 3, 1, 1e-9), graph, weight) / 1e-9
    bound = AdjacencyRows(level, 3, 1, 1e-9).bound()
    assert bound.clip is not None
    assert (np.abs(found) <= bound.clip / 1e-9).all()
    assert found.max() > 0.9


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan, True])
def test_row_norm_must_be_positive(bad: float) -> None:
    with pytest.raises(ParameterError, match="row_norm must lie between"):
        AdjacencyRows(EdgeLevel(), 3, 2, bad)


def test_levels_that_say_nothing_are_refused() -> None:
    with pytest.raises(ParameterError, match="local"):
        bound_of(LocalLevel())


# -------------------------------------------------------------------- how far A·W moves


@pytest.mark.parametrize("directed", [False, True])
def test_one_edge_over_every_graph_of_four_nodes(directed: bool, record_property: RecordProperty) -> None:
    """√2 undirected and 1 directed, attained; the paper's 1 for an undirected edge would be broken by √2."""
    slots = [(u, v) for u in range(4) for v in range(4) if u != v and (directed or u < v)]
    weight, worst = np.diag([1.0, -1.0, 1.0, -1.0]), 0.0
    for chosen in itertools.product([0, 1], repeat=len(slots) - 1):
        rest = [slot for slot, c in zip(slots[1:], chosen, strict=True) if c]
        pair = make_graph(rest, 4, directed), make_graph([slots[0], *rest], 4, directed)
        worst = max(worst, moved(EdgeLevel(directed), *pair, weight))
    record_property("ratio", worst)
    assert worst == pytest.approx(1.0, abs=2**-22)  # rows are cut off at a lattice


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.spec)
def test_neighbours_of_small_graphs(level: Level, record_property: RecordProperty) -> None:
    rng, worst = np.random.default_rng(5), 0.0
    for _ in range(150):
        graph = level.view(small_graph(rng))
        weight = rng.standard_normal((graph.num_nodes, 3))
        weight = 0.2 * weight / np.linalg.norm(weight, axis=1, keepdims=True)
        if rng.integers(2):
            weight = np.abs(weight[:1]) * np.ones((graph.num_nodes, 1))  # all rows alike: the own row moves most
        worst = max(worst, moved(level, graph, level.neighbor(graph, rng), weight))
    record_property("ratio", worst)
    assert worst <= 1 + 1e-9


@pytest.mark.parametrize("change", ["null", "replace"])
def test_owned_bounds_are_attained(change: str) -> None:
    """Null: a node leaves D rows. Replace: it moves from D rows to D others."""
    d, n = 3, 8
    before, after = [(0, i) for i in range(1, d + 1)], [(0, i) for i in range(d + 1, 2 * d + 1)]
    level = NodeLevel(d, change=change)  # type: ignore[arg-type]
    assert bound_of(level) == pytest.approx(math.sqrt(d if change == "null" else 2 * d))
    pair = make_graph(before, n), make_graph(after if change == "replace" else [], n)
    assert moved(level, *pair, np.eye(n)) == pytest.approx(1.0)


def test_k_entries_move_k_rows() -> None:
    pair = make_graph([(0, 1), (0, 2), (0, 3)], 6), make_graph([(0, 1), (0, 4)], 6)
    assert moved(NeighborLevel(3), *pair, np.eye(6)) == pytest.approx(1.0)
    assert bound_of(NeighborLevel(3), 0.5) == pytest.approx(0.5 * math.sqrt(3))


def test_the_own_row_counts_on_promised() -> None:
    """Leaving the own row out (as the paper does) would understate what the release of all rows gives away."""
    n = 7
    query = AdjacencyRows(NodeLevel(6, "promised"), n, 1)
    star, empty = make_graph([(0, i) for i in range(1, n)], n, directed=False), make_graph([], n, directed=False)
    weight = np.ones((n, 1))
    apart = answered(query, star, weight) - answered(query, empty, weight)
    assert query.bound().clip is not None
    assert math.sqrt(6) < np.linalg.norm(apart) <= query.bound().sensitivity
    assert np.linalg.norm(embed_rows(star.adjacency, weight)) > query.bound().sensitivity  # without the cut
