"""The score of a search: its sensitivity, on neighbours, with the release held fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.errors import InvalidInputError, ParameterError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.mechanisms.bits import NoiseSource
from discreet.methods.base import NodeClassifier
from discreet.privacy.levels import EdgeLevel, LocalLevel, NodeLevel, NoPrivacy
from discreet.queries.validation_hits import ValidationHits
from discreet.tuning.score import score_for
from tests.contracts.cases import make
from tests.effort import effort

FULL = {"batch_size": None}  # every node in every step: nothing to calibrate numerically
CASES = [
    ("gap", "edge", {}, 0.0),
    ("mlp", "edge", {"inference": "own-hop"}, 2.0),
    ("gcon-ssp", "edge", {}, 2.0),
    ("hop-bayes", "edge", {"predictions": "own"}, 2.0),
    ("dp-mlp", "node:owned,max_degree=3", FULL, 1.0),
    ("dp-mlp", "node:owned,max_degree=3,change=replace", FULL, 1.0),
    ("gap", "node:owned,max_degree=3", FULL, 1.0),
    ("gap", "neighbor:2,max_degree=3", FULL, 1.0),
]


def with_validation(graph: Graph) -> Graph:
    """Half of the nodes for training, the others for validation, by id."""
    ids = np.arange(graph.num_nodes)
    return graph.with_masks(ids[::2], ids[1::2], None)


def count_of(query: ValidationHits, estimator: NodeClassifier, graph: Graph) -> float:
    """The count without noise, as the curator computes it."""
    _, private = query.level.split(graph)
    return float(query.answer(private, model=estimator)[0])


@pytest.mark.effort
@pytest.mark.parametrize(("method", "spec", "options", "bound"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_the_count_moves_no_further_than_declared(
    method: str, spec: str, options: dict[str, Any], bound: float, record_property: Callable[[str, object], None]
) -> None:
    rng = np.random.default_rng(0)
    furthest = 0.0
    for attempt in range(effort(10, 60)):
        graph = with_validation(small_graph(rng))
        estimator: NodeClassifier = make(method, spec, **options)
        level = estimator.checked_privacy().level
        try:
            estimator.fit(graph)
        except InvalidInputError:  # a class without a training label, say
            continue
        query = score_for(level, estimator.covers, level.view(graph)).query
        assert query.bound().sensitivity == bound
        for _ in range(25):
            neighbor = level.neighbor(graph, rng)
            moved = abs(count_of(query, estimator, graph) - count_of(query, estimator, neighbor))
            assert moved <= bound, attempt
            furthest = max(furthest, moved)
    record_property("furthest of bound", f"{furthest:g} of {bound:g}")


def test_the_score_is_noisy_where_it_must_be() -> None:
    graph = with_validation(small_graph(np.random.default_rng(3)))
    estimator = make("dp-mlp", "node:owned,max_degree=3", **FULL).fit(graph)
    score = score_for(estimator.checked_privacy().level, estimator.covers, graph, noise=2.0)
    count = count_of(score.query, estimator, graph)
    asked = np.array([score.ask(estimator, graph, 1e-3, NoiseSource(insecure_seed=i)) for i in range(2000)])
    counts = asked * score.nodes
    assert counts.mean() == pytest.approx(count, abs=0.2)
    assert counts.std() == pytest.approx(2.0, rel=0.07)
    assert score.event.noise_multiplier == 2.0
    exact = score_for(NoPrivacy(), "", graph)
    assert exact.ask(estimator, graph, 1e-3, NoiseSource()) == count / score.nodes


def test_what_has_no_bound_is_refused() -> None:
    graph = with_validation(small_graph(np.random.default_rng(0)))
    for level, covers in (
        (NodeLevel(3), "weights"),
        (NodeLevel(3), "own-prediction"),
        (EdgeLevel(), "weights"),
        (LocalLevel(), "weights+predictions"),
    ):
        with pytest.raises(UnsupportedError, match="no bound"):
            score_for(level, covers, graph)
    with pytest.raises(ParameterError, match="validation"):
        score_for(EdgeLevel(), "weights+predictions", graph.with_masks(np.arange(3), None, None))
    with pytest.raises(ParameterError, match="noise"):
        score_for(EdgeLevel(), "weights+predictions", graph, noise=0.0)
