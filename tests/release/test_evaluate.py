"""Figures of a fit come from one pass of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.graph import csbm, split
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.privacy.budget import Privacy
from discreet.release.evaluate import evaluate


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
    for metric in ("accuracy", "micro-f1", "macro-f1"):
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
