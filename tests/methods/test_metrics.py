"""Scores of predictions."""

import math

import numpy as np
import pytest
from sklearn import metrics

from discreet.errors import ParameterError
from discreet.methods.metrics import METRICS, class_scores, confusion, majority, measure


def drawn(classes: int = 4, nodes: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(classes - 1, size=nodes), rng.dirichlet(np.ones(classes), size=nodes)


@pytest.mark.parametrize("places", [17, 1])
def test_figures_are_those_of_scikit_learn(places: int):
    labels, probabilities = drawn()
    probabilities = probabilities.round(places)  # with one place, many are tied
    predicted = probabilities.argmax(axis=1)
    assert measure("accuracy", labels, probabilities) == metrics.accuracy_score(labels, predicted)
    assert measure("micro-f1", labels, probabilities) == metrics.f1_score(labels, predicted, average="micro")
    assert measure("macro-f1", labels, probabilities) == pytest.approx(
        metrics.f1_score(labels, predicted, average="macro"), rel=1e-14
    )
    found = [metrics.roc_auc_score(labels == label, probabilities[:, label]) for label in range(3)]
    assert measure("roc-auc", labels, probabilities) == pytest.approx(np.mean(found))
    found = [metrics.average_precision_score(labels == label, probabilities[:, label]) for label in range(3)]
    assert measure("pr-auc", labels, probabilities) == pytest.approx(np.mean(found))
    found = [np.mean(predicted[labels == label] == label) for label in range(3)]
    assert measure("balanced-accuracy", labels, probabilities) == pytest.approx(np.mean(found))
    by_class = sorted(class_scores(labels, probabilities), key=lambda score: score["label"])
    columns = metrics.precision_recall_fscore_support(labels, predicted, zero_division=0)
    for name, column in zip(("precision", "recall", "f1", "nodes"), columns, strict=True):
        assert [score[name] for score in by_class] == pytest.approx(column.tolist(), rel=1e-14)
    assert (confusion(labels, predicted, 4) == metrics.confusion_matrix(labels, predicted, labels=range(4))).all()


def test_of_two_classes_the_rarer_one_is_looked_for():
    rng = np.random.default_rng(1)
    labels, scores = (rng.random(300) < 0.9).astype(int), rng.random(300)
    probabilities = np.stack([scores, 1 - scores], axis=1)
    assert measure("pr-auc", labels, probabilities) == metrics.average_precision_score(labels == 0, scores)
    assert measure("roc-auc", labels, probabilities) == pytest.approx(metrics.roc_auc_score(labels == 0, scores))


def test_one_class_has_no_curve():
    probabilities = np.full((5, 2), 0.5)
    assert math.isnan(measure("roc-auc", np.zeros(5, dtype=int), probabilities))
    assert math.isnan(measure("pr-auc", np.zeros(5, dtype=int), probabilities))
    assert class_scores(np.zeros(5, dtype=int), probabilities)[0]["roc_auc"] is None


def test_an_unknown_metric_is_named():
    with pytest.raises(ParameterError, match=f"metric must be one of {', '.join(METRICS)}, not 'auc'"):
        measure("auc", *drawn())


def test_classes_by_name_and_who_meets_whom():
    labels = np.array([0, 0, 0, 1])
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])
    rare = class_scores(labels, probabilities, ["legit", "fraud"])[1]
    assert (rare["name"], rare["nodes"], rare["predicted"], rare["recall"], rare["precision"]) == ("fraud", 1, 1, 0, 0)
    assert confusion(labels, probabilities.argmax(axis=1), 2).tolist() == [[2, 1], [1, 0]]
    assert majority(np.array([0, 0, 1]), labels) == 0.75
