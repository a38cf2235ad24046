"""Noisy steps over adjacency rows: how many examples one unit touches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from discreet.audit.small_graphs import small_graph
from discreet.graph.graph import Graph
from discreet.methods.dpdgc.networks import RowEmbedding
from discreet.ops.degrees import bound_degrees
from discreet.privacy.levels import EdgeLevel, Level, NeighborLevel, NodeLevel
from discreet.queries.adjacency_row_steps import AdjacencyRowSteps, touched_rows
from discreet.queries.gradients import StepRule, count_parameters
from tests.plain_graphs import make_graph
from tests.queries.row_levels import LEVELS

RecordProperty = Callable[[str, object], None]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (EdgeLevel(), 2),
        (EdgeLevel(directed=True), 1),
        (NodeLevel(5), 6),
        (NodeLevel(5, change="replace"), 11),
        (NodeLevel(5, "promised", "replace"), 11),
        (NeighborLevel(4), 5),
        (NeighborLevel(4, 9, "promised"), 5),
        (NeighborLevel(4, 9), 9),
        (NeighborLevel(9, 4), 9),
    ],
)
def test_touched_rows_figures(level: Level, expected: int) -> None:
    assert touched_rows(level)[0] == expected


def changed_examples(level: Level, one: Graph, two: Graph) -> int:
    """Rows of the bounded adjacency, or labels, that differ."""
    key = bytes(range(16))
    bounded = [g if isinstance(level, EdgeLevel) else bound_degrees(level.view(g), level, key) for g in (one, two)]  # type: ignore[arg-type]
    rows = (bounded[0].adjacency != bounded[1].adjacency).toarray().any(axis=1)
    return int((rows | (one.labels != two.labels)).sum())


@pytest.mark.parametrize("level", [EdgeLevel(), *LEVELS], ids=lambda level: level.spec)
def test_touched_rows_bound_what_changes(level: Level, record_property: RecordProperty) -> None:
    rng, worst, bound = np.random.default_rng(8), 0, touched_rows(level)[0]
    for _ in range(150):
        graph = level.view(small_graph(rng))
        worst = max(worst, changed_examples(level, graph, level.neighbor(graph, rng)))
    record_property("examples", f"{worst} of {bound}")
    assert worst <= bound


def test_the_papers_group_is_too_small_for_replacement() -> None:
    """D + 1 is what the DPDGC paper counts; two disjoint neighbourhoods change 2D rows and the own label."""
    d, n = 3, 8
    one = make_graph([(0, i) for i in range(1, d + 1)], n).with_labels(np.zeros(n, dtype=np.int64))
    two = make_graph([(0, i) for i in range(d + 1, 2 * d + 1)], n).with_labels(np.eye(n, dtype=np.int64)[0])
    level = NodeLevel(d, change="replace")
    assert changed_examples(level, one, two) == touched_rows(level)[0] == 2 * d + 1 > d + 1


def test_a_batch_holds_the_terms_of_its_examples() -> None:
    graph = small_graph(np.random.default_rng(2))
    network = RowEmbedding(graph.num_nodes, 3, 3, "tanh", torch.Generator().manual_seed(0))
    query = AdjacencyRowSteps(EdgeLevel(), "q", count_parameters(network), graph.public.num_train, StepRule(0.1))
    _, private = EdgeLevel().split(graph)
    terms = query.terms(private, network=network)
    for batch in ([], [1], [0, 2], list(range(graph.public.num_train))):
        found = query.answer(private, batch=np.array(batch, dtype=np.int64), network=network)
        assert np.allclose(found, terms[batch].sum(axis=0), atol=1e-6)
