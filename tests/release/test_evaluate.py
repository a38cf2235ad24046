"""Figures of a fit come from one pass of predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.graph import csbm, split
from discreet.graph.graph import Graph
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.methods.metrics import METRICS
from discreet.privacy.budget import Privacy
from discreet.release.evaluate import are_covered, evaluate, figures_of_fit
from tests.contracts.cases import make


def test_figures_come_from_one_pass_and_are_those_of_score(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = split(csbm(num_nodes=200, seed=0), "75/10/15", 0)
    model = MLPClassifier(Privacy.none(), epochs=2, hidden=4).fit(graph)
    passes = []
    predict_proba = MLPClassifier.predict_proba

    def counted(self: MLPClassifier, *arguments: Any, **options: Any) -> np.ndarray:
        passes.append(options)
        return predict_proba(self, *arguments, **options)

    monkeypatch.setattr(MLPClassifier, "predict_proba", counted)
    figures = evaluate(model, graph)
    assert len(passes) == 1
    for metric in METRICS:
        assert figures[metric] == {
            mask: model.score(graph, mask, metric=metric, uncovered=True) for mask in ("train", "val", "test")
        }
    assert figures["by_class"] == {"test": model.score(graph, "test", by_class=True, uncovered=True)}


def test_a_mask_without_a_label_has_no_figure() -> None:
    graph = split(csbm(num_nodes=200, seed=0), "75/10/15", 0)
    graph = graph.with_labels(np.where(graph.mask("test"), -1, graph.labels))
    figures = evaluate(MLPClassifier(Privacy.none(), epochs=1, hidden=4).fit(graph), graph)
    assert set(figures["accuracy"]) == {"train", "val"}
    assert figures["by_class"] == {}


def never(graph: Graph, probabilities: np.ndarray, method: str = "mlp", level: str = "edge") -> Any:
    """A fitted model that predicts what it is told to."""
    model = make(method, level).fit(graph)
    model._probabilities = lambda part: probabilities  # type: ignore[method-assign]
    return model


def test_a_class_that_is_never_predicted_is_not_a_success() -> None:
    """95 % accuracy with no fraud found must not read as one."""
    labels = (np.arange(400) % 20 == 0).astype(np.int64)
    graph = split(csbm(num_nodes=400, seed=0), "75/10/15", 0).with_labels(labels)
    graph = replace(graph, class_names=("legit", "fraud"))
    found = figures_of_fit(never(graph, np.tile([0.9, 0.1], (400, 1))), graph, private=False)
    assert found["accuracy"] == found["majority"]
    assert found["balanced_accuracy"]["test"] == 0.5
    fraud = next(row for row in found["by_class"]["test"] if row["name"] == "fraud")
    assert (fraud["recall"], fraud["predicted"]) == (0, 0)
    assert "1 of 2 classes are never predicted on the test nodes: fraud" in found["warnings"][0]
    assert "no better" in found["warnings"][1]


@pytest.mark.parametrize(
    ("method", "level", "covered"),
    [("gap", "edge", True), ("gcon-ssp", "edge", False), ("dp-mlp", "node:owned,max_degree=3", False)],
)
def test_figures_say_whether_they_are_covered(method: str, level: str, covered: bool) -> None:
    graph = split(csbm(num_nodes=60, seed=0), "75/10/15", 0)
    model = make(method, level).fit(graph)
    assert are_covered(model, graph) is covered
    assert ("the guarantee covers them" in figures_of_fit(model, graph, private=True)["note"]) is covered


def test_private_labels_are_not_measured_unless_asked() -> None:
    graph = split(csbm(num_nodes=60, seed=0), "75/10/15", 0)
    model = make("dp-mlp", "node:owned,max_degree=3").fit(graph)
    found = figures_of_fit(model, graph, private=False)
    assert {key for key, value in found.items() if value is not None} == {"note"}
    assert "for the holder's eyes" in found["note"]
    assert figures_of_fit(model, graph, private=True)["accuracy"]["test"] >= 0


def test_another_graph_at_edge_level_is_not_covered() -> None:
    """Figures on a graph that nobody paid for read its edges."""
    graph, other = (split(csbm(num_nodes=60, seed=seed), "75/10/15", 0) for seed in (0, 1))
    assert not are_covered(make("gap", "edge").fit(graph), other)
