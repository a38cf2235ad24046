"""One noisy hop: its sensitivity by brute force over every small graph."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from discreet.errors import PlanViolationError, UnsupportedError
from discreet.graph.edge_weights import SUM_PLACES
from discreet.graph.synthetic import csbm
from discreet.ops.sparse import Aggregation
from discreet.privacy.levels import EdgeLevel, NodeLevel, parse_level
from discreet.queries.kept_edges import KEY
from discreet.queries.sums import NeighbourSums, edge_sensitivity
from tests.plain_graphs import dense_hop

RecordProperty = Callable[[str, object], None]


def worst_move(before: np.ndarray, after: np.ndarray) -> float:
    """An upper bound on ‖(S′ − S)H‖ over all H with rows of norm at most 1, attained when rows can align."""
    return math.sqrt(float((np.abs(after - before).sum(axis=1) ** 2).sum()))


@pytest.mark.parametrize("aggregation", ["sum", "mean", "symmetric"])
def test_undirected_sensitivity_over_all_graphs(aggregation: Aggregation, record_property: RecordProperty) -> None:
    """Every undirected graph of up to five nodes, every edge toggled, every H at once."""
    declared = edge_sensitivity(aggregation, EdgeLevel()).sensitivity
    worst = 0.0
    for n in range(2, 6):
        pairs = list(itertools.combinations(range(n), 2))
        for present in itertools.product((0, 1), repeat=len(pairs)):
            adjacency = np.zeros((n, n))
            for (u, v), on in zip(pairs, present, strict=True):
                adjacency[u, v] = adjacency[v, u] = on
            before = dense_hop(adjacency, aggregation)
            for (u, v), on in zip(pairs, present, strict=True):
                if on:
                    continue
                adjacency[u, v] = adjacency[v, u] = 1
                worst = max(worst, worst_move(before, dense_hop(adjacency, aggregation)))
                adjacency[u, v] = adjacency[v, u] = 0
    record_property("tightness", worst / declared)
    assert worst <= declared * (1 + 1e-12)
    assert worst >= 0.999 * declared


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_directed_sensitivity_over_all_graphs(aggregation: Aggregation) -> None:
    """Every directed graph of up to three nodes, and many of four, every entry toggled."""
    declared = edge_sensitivity(aggregation, EdgeLevel(directed=True)).sensitivity
    rng = np.random.default_rng(0)
    worst = 0.0
    for n in (2, 3, 4):
        pairs = list(itertools.permutations(range(n), 2))
        choices = itertools.product((0, 1), repeat=len(pairs)) if n < 4 else rng.integers(0, 2, (500, len(pairs)))
        for present in choices:
            adjacency = np.zeros((n, n))
            for (u, v), on in zip(pairs, present, strict=True):
                adjacency[v, u] = on
            for u, v in pairs:
                other = adjacency.copy()
                other[v, u] = 1 - other[v, u]
                worst = max(worst, worst_move(dense_hop(adjacency, aggregation), dense_hop(other, aggregation)))
    assert 0.999 * declared <= worst <= declared * (1 + 1e-12)


def test_symmetric_bound_on_large_degrees() -> None:
    """The proof's expression in the two degrees, far beyond what enumeration reaches."""
    a, b = np.meshgrid(np.arange(400.0), np.arange(400.0))
    shrink = np.where(a > 0, 1 - np.sqrt(a / (a + 1)), 0), np.where(b > 0, 1 - np.sqrt(b / (b + 1)), 0)
    joint = 1 / np.sqrt((a + 1) * (b + 1))
    total = (np.sqrt(a) * shrink[0] + joint) ** 2 + (np.sqrt(b) * shrink[1] + joint) ** 2
    total += shrink[0] ** 2 + shrink[1] ** 2
    assert total[0, 0] == 2
    total[0, 0] = 0
    assert total.max() < 1.6


def test_symmetric_needs_symmetry_and_public_nodes() -> None:
    with pytest.raises(UnsupportedError, match="undirected"):
        edge_sensitivity("symmetric", EdgeLevel(directed=True))
    with pytest.raises(UnsupportedError, match="one hop further"):
        NeighbourSums(NodeLevel(3), 8, 2, "symmetric").bound()


def test_symmetric_sums_are_refused_where_a_degree_might_pass_what_is_proved() -> None:
    """By the number of nodes, which is public: no private degree decides."""
    most = 1 << 23
    assert NeighbourSums(EdgeLevel(), most, 2, "symmetric").bound().sensitivity == math.sqrt(2)
    with pytest.raises(UnsupportedError, match="up to 8388608 nodes"):
        NeighbourSums(EdgeLevel(), most + 1, 2, "symmetric").bound()
    assert NeighbourSums(EdgeLevel(), most + 1, 2, "mean").bound().sensitivity == math.sqrt(2)


@pytest.mark.parametrize(
    ("spec", "first", "second"),
    [
        ("neighbor:1,max_degree=20,edges=promised", 10.0, math.sqrt(2)),
        ("node:promised,max_degree=20,change=replace", 10.0, math.sqrt(50)),
        ("node:promised,max_degree=20,change=null", 5.0, 5.0),
        ("node:owned,max_degree=20,change=replace", 2 * math.sqrt(20), math.sqrt(40)),
    ],
)
def test_hops_after_the_first_pay_for_released_rows(spec: str, first: float, second: float) -> None:
    """Released rows are equal on both graphs, on a promise too: the unit's own row was released with the others."""
    for hop, expected in ((1, first), (2, second)):
        assert NeighbourSums(parse_level(spec), 8, 2, "sum", hop).bound().sensitivity == pytest.approx(expected)


def test_a_later_hop_takes_no_encoder() -> None:
    level = NodeLevel(3)
    graph = csbm(num_nodes=40, num_features=4, seed=0)
    _, private = level.split(graph)
    private.entrust(KEY, b"k" * 16)
    with pytest.raises(PlanViolationError, match="released rows"):
        NeighbourSums(level, 40, 2, "sum", hop=2).answer(private, encoder=torch.nn.Linear(4, 2))


@pytest.mark.parametrize("width", [1, 16, 100, 700])
def test_sums_lie_on_the_lattice_at_every_width(width: int) -> None:
    graph = csbm(num_nodes=40, num_features=4, seed=0)
    _, private = EdgeLevel().split(graph)
    rows = torch.randn(40, width, generator=torch.Generator().manual_seed(0))
    found = NeighbourSums(EdgeLevel(), 40, width).answer(private, rows=rows) * 2**SUM_PLACES
    assert np.array_equal(found, np.rint(found))
