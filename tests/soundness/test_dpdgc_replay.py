"""dpdgc under the replay audit: every embedding at every level, and the faults of the published code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from discreet.audit.replay import ADVERSARIES, RecordingCurator, ReplayReport, replay_audit, replay_pair
from discreet.audit.small_graphs import small_graph
from discreet.graph.graph import Graph
from discreet.mechanisms import dpsgd
from discreet.mechanisms.noise import NoiseSource
from discreet.methods import decoupled_networks, dpdgc_embedding
from discreet.methods.dpdgc import DPDGC
from discreet.ops import row_embedding
from discreet.privacy.budget import Privacy
from discreet.privacy.level_specs import parse_level

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


def audit(spec: str, pairs: int = 15, **parameters: object) -> ReplayReport:
    graphs = partial(small_graph, directed=spec == "edge:directed")
    return replay_audit(model(spec, **parameters), graphs, pairs=pairs)


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("spec", LEVELS)
def test_trained_embedding(spec: str, batch: int | None, record_property: RecordProperty) -> None:
    report = audit(spec, embedding="trained", embedding_batch=batch)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]


@pytest.mark.parametrize("spec", ["edge", "neighbor:2", "node:owned,max_degree=3,change=null"])
def test_random_embedding_is_tight(spec: str, record_property: RecordProperty) -> None:
    report = audit(spec, pairs=60, embedding="random", row_norm=1e-8)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]
    assert 0.99 <= report.ratio["rows"] <= 1


# ------------------------------------------------------------------------ planted faults


def in_a_copy(rows: torch.Tensor, row_norm: float) -> torch.Tensor:
    copy = rows.clone()
    copy *= row_norm / copy.norm(dim=1, keepdim=True)
    return rows


@pytest.mark.parametrize("row_norm", [1.0, 1e-8])
def test_weights_normalised_in_a_copy_are_caught(monkeypatch: pytest.MonkeyPatch, row_norm: float) -> None:
    """The published code: rows of W scaled in a throw-away copy, so that Z moves by far more than its noise is for."""
    monkeypatch.setattr(decoupled_networks, "unit_rows", in_a_copy)
    report = audit("edge", embedding="trained", row_norm=row_norm, embedding_step_size=5.0)
    assert any("'rows' moved" in violation for violation in report.violations)
    assert report.ratio["rows"] > (1.1 if row_norm == 1 else 1e6)


@pytest.mark.parametrize("kind", ["trained", "random", "step"])
def test_the_weights_that_embed_are_the_normalised_ones(kind: str) -> None:
    """Not only are there rows of norm c somewhere: what enters the stage is A times those very rows."""
    graph = small_graph(np.random.default_rng(2))
    fitted = model("edge", embedding=kind, row_norm=0.3, embedding_step_size=5.0)
    curator = RecordingCurator(
        fitted.plan(graph.public), NoiseSource(insecure_seed=0), ADVERSARIES["own"], np.random.default_rng(0)
    )
    fitted._fit_with([graph], curator)
    weight = fitted.weight_ if isinstance(fitted.weight_, np.ndarray) else fitted.weight_.toarray()
    norms = np.linalg.norm(weight, axis=1)
    assert (norms <= 0.3).all()
    if kind != "step":
        assert norms.min() > 0.3 * (1 - 1e-5)
    measured = next(record.value for record in curator.records if record.stage == "rows")
    assert np.allclose(measured, graph.adjacency.toarray() @ weight, atol=1e-12)


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
    monkeypatch.setattr(dpsgd, "_full_shift", lambda k, change: k**0.5)
    report = hub_report()
    assert any("'embedding' moved" in violation for violation in report.violations), report.ratio


def test_the_papers_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """D + 1 examples for replacement, where 2D + 1 may change."""
    monkeypatch.setattr(dpdgc_embedding, "touched_rows", lambda level, failure=None: (level.max_degree + 1, "paper"))
    report = audit("node:owned,max_degree=3,change=replace", pairs=60, embedding="trained")
    assert any("one unit touches at most 4" in violation for violation in report.violations)


def test_one_example_for_an_undirected_edge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpdgc_embedding, "touched_rows", lambda level, failure=None: (1, "as published"))
    report = audit("edge", embedding="trained")
    assert any("one unit touches at most 1" in violation for violation in report.violations)


def test_sensitivity_one_for_an_undirected_edge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_embedding, "edge_sensitivity", lambda aggregation, level: (1.0, "as published"))
    report = audit("edge")
    assert report.ratio["rows"] == pytest.approx(2**0.5, rel=1e-3)
    assert not report.passed


class ReadsCleanRows(DPDGC):
    """The cache holds rows before noise."""

    def _learn(self, graphs, curator, progress):  # type: ignore[no-untyped-def]
        super()._learn(graphs, curator, progress)
        clean = row_embedding.embed_rows(graphs[0].adjacency, self.weight_)
        self.cache_[:, -clean.shape[1] :] = torch.from_numpy(clean).float()


def test_a_clean_cache_is_caught() -> None:
    estimator = ReadsCleanRows(Privacy(parse_level("edge"), 1.0), epochs=0)
    report = replay_audit(estimator, small_graph, pairs=20)
    assert any("cache of the release differs" in violation for violation in report.violations)
