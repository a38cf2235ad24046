"""Decisions that suit rare classes: chosen on public validation labels from released predictions, or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import audited_graph
from discreet.errors import CertificateError, GraphError, ParameterError, UnsupportedError
from discreet.graph import split
from discreet.methods.decision import decided, decision_weights
from discreet.methods.metrics import measure
from discreet.release.evaluate import evaluate
from discreet.release.load import load_release
from tests.contracts.cases import make
from tests.methods.test_class_weights import rare

METRICS = ("balanced-accuracy", "macro-f1")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("classes", [2, 4])
def test_weights_do_best_on_what_they_are_chosen_on(metric: str, classes: int) -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice(classes, 400, p=np.array([0.9, *[0.1 / (classes - 1)] * (classes - 1)]))
    scores = rng.normal(size=(400, classes)) + 1.5 * np.eye(classes)[labels] + 2 * (np.arange(classes) == 0)
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    weights = decision_weights(metric, labels, probabilities)  # type: ignore[arg-type]
    moved = decided(probabilities.astype(np.float32), weights)
    assert np.allclose(moved.sum(axis=1), 1.0, atol=1e-5)
    assert weights.max() == 1
    assert weights.min() > 0
    assert measure(metric, labels, moved) > measure(metric, labels, probabilities) + 0.05
    if classes == 2 and metric == "balanced-accuracy":  # every threshold, tried one by one
        tried = [measure(metric, labels, decided(probabilities.astype(np.float32), np.array([w, 1 - w])))
                 for w in np.linspace(0.002, 0.998, 499)]  # fmt: skip
        assert measure(metric, labels, moved) >= max(tried) - 0.01


@pytest.mark.parametrize("method", ["mlp", "gap", "hop-bayes"])
def test_the_decision_is_a_part_of_the_release(method: str, tmp_path: Path) -> None:
    graph = split(rare(), "50/25/25", 0)
    quick = {"epochs": 30, "hidden": 8, "dropout": 0.0}
    plain, moved = (make(method, "edge", decide_by=by, **quick).fit(graph) for by in (None, "balanced-accuracy"))
    assert moved.plan_.stages == plain.plan_.stages
    assert moved.decision_weights_.shape == (2,)
    figures = [evaluate(model, graph)["balanced-accuracy"]["val"] for model in (plain, moved)]
    assert figures[1] > figures[0] + 0.01  # what was chosen on these very nodes
    again = load_release(moved.save(tmp_path / "release"))
    assert np.array_equal(again.predict_proba(graph), moved.predict_proba(graph))
    odds = [model.predict_proba(graph)[:, 1].argsort().tolist() for model in (plain, moved)]
    assert odds[0] == odds[1]


def test_a_changed_decision_is_refused(tmp_path: Path) -> None:
    folder = make("mlp", "edge", decide_by="macro-f1").fit(rare()).save(tmp_path / "release")
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"decide_by": "macro-f1"', '"decide_by": null'))
    with pytest.raises(CertificateError):
        load_release(folder)


def test_it_is_refused_where_it_would_read_private_data() -> None:
    graph = replace(rare(), inferred=frozenset())
    with pytest.raises(UnsupportedError, match="gap: decide_by reads validation labels, which level node protects"):
        make("gap", "node:owned,max_degree=3", decide_by="macro-f1").plan_for(graph)
    for method, settings in (("gcon", {}), ("hop-bayes", {"predictions": "own"}), ("dp-gnn", {})):
        with pytest.raises(UnsupportedError, match=f"{method}: decide_by would choose by predictions that read"):
            make(method, "edge", decide_by="macro-f1", **settings).plan_for(graph)
    with pytest.raises(GraphError, match="none of them has a label"):
        make("mlp", "edge", decide_by="macro-f1").fit(graph.with_masks(np.arange(600), None, None))
    with pytest.raises(ParameterError, match="decide_by"):
        make("mlp", "edge", decide_by="accuracy").plan_for(graph)


def test_replay_sees_nothing_of_it() -> None:
    report = replay_audit(make("gap", "edge", decide_by="balanced-accuracy"), audited_graph, pairs=4)
    assert report.passed, report.violations[:2]
