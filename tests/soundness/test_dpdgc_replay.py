"""dpdgc under the replay audit: every embedding at every level, and the faults of the published code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from discreet.arrays import FloatArray
from discreet.audit.replay import ReplayReport, replay_audit, replay_pair
from discreet.audit.small_graphs import small_graph
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.methods.dpdgc.estimator import DPDGC
from discreet.methods.dpdgc.networks import RowEmbedding
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, NodeLevel, parse_level
from discreet.privacy.query import Bound
from discreet.queries import adjacency_row_steps, adjacency_rows
from discreet.queries.adjacency_rows import AdjacencyRows
from discreet.queries.gradients import Touch
from tests.effort import HIGH, effort, replay_until

RecordProperty = Callable[[str, object], None]
LEVELS = [
    "edge",
    "edge:directed",
    "neighbor:2",
    "neighbor:2,max_degree=3",
    "neighbor:2,max_degree=12,edges=promised",
    "node:owned,max_degree=3,change=null",
    "node:owned,max_degree=3,change=replace",
    "node:promised,max_degree=12,change=null",
    "node:promised,max_degree=12,change=replace",
    "node:thinned,d_max=12,p=0.5,change=replace",
]


def model(spec: str, **parameters: object) -> DPDGC:
    quick = {"epochs": 0, "hidden": 4, "steps": 1, "embedding_steps": 2, "width": 3, "rows_hidden": 2}
    return DPDGC(Privacy(parse_level(spec), 1.0), **{**quick, **parameters})  # type: ignore[arg-type]


def graphs_at(spec: str) -> Callable[[np.random.Generator], Graph]:
    """Graphs of one size, so that one calibration does; of every size in ``make slow``."""
    return partial(small_graph, directed=spec == "edge:directed", num_nodes=None if HIGH else 8)


def audit(spec: str, pairs: int = 10, **parameters: object) -> ReplayReport:
    return replay_audit(model(spec, **parameters), graphs_at(spec), pairs=effort(pairs, 3 * pairs))


@pytest.mark.effort
@pytest.mark.parametrize("batch", [pytest.param(None, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("spec", LEVELS)
def test_trained_embedding(spec: str, batch: int | None, record_property: RecordProperty) -> None:
    report = audit(spec, embedding="trained", embedding_batch=batch)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]


@pytest.mark.parametrize("spec", ["edge", "neighbor:2", "node:owned,max_degree=3,change=null"])
def test_random_embedding_is_tight(spec: str, record_property: RecordProperty) -> None:
    estimator = model(spec, embedding="random", row_norm=1e-8)
    report = replay_until(lambda found: found.ratio["rows"] >= 0.99, estimator, graphs_at(spec), least=15, most=60)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]
    assert 0.99 <= report.ratio["rows"] <= 1


@pytest.mark.effort
@pytest.mark.parametrize("linear", [True, False])
def test_joint_steps_are_tight_with_and_without_hidden_layers(linear: bool, record_property: RecordProperty) -> None:
    report = audit("neighbor:2", embedding="random", linear=linear)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]
    assert report.ratio["network"] == pytest.approx(1, abs=1e-6)


# ------------------------------------------------------------------------ planted faults


def in_a_copy(network: RowEmbedding, row_norm: float) -> None:
    copy = network.rows.weight.detach().clone()
    copy *= row_norm / copy.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("row_norm", [1.0, 1e-8])
def test_weights_normalised_in_a_copy_do_no_harm(monkeypatch: pytest.MonkeyPatch, row_norm: float) -> None:
    """The published code scales rows of W in a throw-away copy; here the query cuts them, whatever it is given."""
    monkeypatch.setattr(RowEmbedding, "constrain", in_a_copy)
    report = audit("edge", embedding="trained", row_norm=row_norm, embedding_step_size=5.0)
    assert report.passed, report.violations[:3]
    assert report.ratio["rows"] > 0.99


@pytest.mark.parametrize("row_norm", [1.0, 1e-8])
def test_weights_that_nothing_cuts_are_caught(monkeypatch: pytest.MonkeyPatch, row_norm: float) -> None:
    """Then Z moves by far more than its noise is for."""
    monkeypatch.setattr(RowEmbedding, "constrain", in_a_copy)
    monkeypatch.setattr(adjacency_rows, "cut_rows", lambda rows, norm: rows)
    report = audit("edge", embedding="trained", row_norm=row_norm, embedding_step_size=5.0)
    assert any("'rows' moved" in violation for violation in report.violations)
    assert report.ratio["rows"] > (1.1 if row_norm == 1 else 1e6)


@pytest.mark.parametrize("kind", ["trained", "random", "step"])
def test_the_weights_that_embed_are_the_normalised_ones(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Not only are there rows of norm c somewhere: what enters the stage is A times those very rows."""
    graph, seen = small_graph(np.random.default_rng(2)), []
    right = AdjacencyRows.answer

    def watched(self: AdjacencyRows, private: PrivatePart, *, weight: Any) -> FloatArray:
        found = right(self, private, weight=weight)
        seen.append((weight if isinstance(weight, np.ndarray) else weight.toarray(), found))
        return found

    monkeypatch.setattr(AdjacencyRows, "answer", watched)
    model("edge", embedding=kind, row_norm=0.3, embedding_step_size=5.0).fit(graph)
    ((weight, measured),) = seen
    norms = np.linalg.norm(weight, axis=1)
    assert (norms <= 0.3).all()
    if kind != "step":
        assert norms.min() > 0.3 * (1 - 1e-5)
    assert np.allclose(measured, graph.adjacency.toarray() @ weight, atol=1e-6)  # rows lie on a lattice


def star(leaves: int, *, hub_sends: bool) -> Graph:
    """A hub whose entries alone tell the leaves apart from nothing; all of one class, all for training."""
    n = leaves + 2
    targets = np.arange(1, leaves + 1) if hub_sends else np.empty(0, dtype=np.int64)
    graph = Graph.from_edges(
        np.zeros(len(targets), dtype=np.int64),
        targets,
        np.zeros((n, 1)),
        np.array([-1 if not hub_sends else 0, *[0] * leaves, 1]),
        directed=True,
        num_classes=2,
    )
    return graph.with_masks(np.arange(n), None, None)


def hub_report() -> ReplayReport:
    """The hub of ten leaves against its absence, with gradients clipped short of what they are."""
    estimator = model("node:owned,max_degree=10,change=null", embedding="trained", clip_norm=1e-3, activation="tanh")
    return replay_pair(estimator, star(10, hub_sends=True), star(10, hub_sends=False))


def test_a_hub_moves_a_group_of_examples(record_property: RecordProperty) -> None:
    report = hub_report()
    record_property("ratio", report.ratio)
    assert report.passed, report.violations


def test_noise_for_the_root_of_the_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published code: D + 1 examples may change, and noise is made for √(D + 1)."""
    monkeypatch.setattr(Touch, "full_shift", property(lambda self: self.examples**0.5))
    report = hub_report()
    assert any("'embedding' moved" in violation for violation in report.violations), report.ratio


def test_the_papers_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """D + 1 examples for replacement, where 2D + 1 may change."""

    def group(level: NodeLevel, *, failure: float | None = None) -> tuple[int, str]:
        assert level.max_degree is not None
        return level.max_degree + 1, "paper"

    pair = [hub_of_three(first) for first in (1, 4)]
    estimator = model("node:owned,max_degree=3,change=replace", embedding="trained", activation="tanh")
    assert replay_pair(estimator, *pair).passed
    monkeypatch.setattr(adjacency_row_steps, "touched_rows", group)
    report = replay_pair(estimator, *pair)
    assert any("one unit touches at most 4" in violation for violation in report.violations)


def hub_of_three(first: int) -> Graph:
    """A hub that sends to three nodes from this one on."""
    labels = np.arange(8) % 2
    graph = Graph.from_edges([0] * 3, range(first, first + 3), np.zeros((8, 1)), labels, num_classes=2)
    return graph.with_masks(np.arange(8), None, None)


def test_one_example_for_an_undirected_edge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjacency_row_steps, "touched_rows", lambda level, failure=None: (1, "as published"))
    report = audit("edge", embedding="trained")
    assert any("one unit touches at most 1" in violation for violation in report.violations)


def test_sensitivity_one_for_an_undirected_edge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def published(aggregation: str, level: EdgeLevel) -> Bound:
        return Bound(1.0, "l2", "as published")

    monkeypatch.setattr(adjacency_rows, "edge_sensitivity", published)
    report = audit("edge")
    assert report.ratio["rows"] == pytest.approx(2**0.5, rel=1e-3)
    assert not report.passed


def test_a_clean_cache_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache holds rows before noise: a query that hands its value past the curator."""
    right, leaked = AdjacencyRows.answer, []

    def leaking(self: AdjacencyRows, private: PrivatePart, *, weight: Any) -> FloatArray:
        leaked.append(right(self, private, weight=weight))
        return leaked[-1]

    class ReadsCleanRows(DPDGC):
        def _learn(self, parts, curator, progress):  # type: ignore[no-untyped-def]
            super()._learn(parts, curator, progress)
            self.cache_[:, -leaked[-1].shape[1] :] = torch.from_numpy(leaked[-1]).float()

    monkeypatch.setattr(AdjacencyRows, "answer", leaking)
    report = replay_audit(ReadsCleanRows(Privacy(parse_level("edge"), 1.0), epochs=0), small_graph, pairs=5)
    assert any("cache of the release differs" in violation for violation in report.violations)
