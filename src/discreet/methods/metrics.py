"""How well predictions meet labels, in figures that tell the truth about rare classes too: scikit-learn's.

Every metric takes labels and class probabilities; the predicted class is the most probable one. Its own
module of metrics is not imported, which would take longer than all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypedDict

import numpy as np

from discreet.arrays import Array, BoolArray, FloatArray, IntArray
from discreet.errors import ParameterError


def accuracy(labels: IntArray, probabilities: Array) -> float:
    """The share of nodes whose class was met."""
    return float(np.mean(labels == probabilities.argmax(axis=1)))


def balanced_accuracy(labels: IntArray, probabilities: Array) -> float:
    """The mean over the classes that are there of the share of their nodes that was met."""
    counts = _Counts.of(labels, probabilities.argmax(axis=1))
    return float(counts.recall[counts.actual > 0].mean())


def micro_f1(labels: IntArray, probabilities: Array) -> float:
    """F1 over all decisions together; with one label per node this is the accuracy."""
    return accuracy(labels, probabilities)


def macro_f1(labels: IntArray, probabilities: Array) -> float:
    """The mean of F1 over the classes that are there or were predicted."""
    return float(_Counts.of(labels, probabilities.argmax(axis=1)).f1.mean())


def roc_auc(labels: IntArray, probabilities: Array) -> float:
    """The mean over classes of the area under the ROC curve of one class against the rest; nan with one class."""
    found = [_roc_auc(labels == label, probabilities[:, label]) for label in np.unique(labels)]
    return _mean([area for area in found if not math.isnan(area)])


def pr_auc(labels: IntArray, probabilities: Array) -> float:
    """Average precision, the area under the precision-recall curve; nan with one class.

    Of two classes it is that of the rarer one, which is the one that is looked for. Of more, the mean over classes of
    one against the rest.
    """
    there, counts = np.unique(labels, return_counts=True)
    wanted = there[[counts.argmin()]] if len(there) == probabilities.shape[1] == 2 else there
    found = [_pr_auc(labels == label, probabilities[:, label]) for label in wanted]
    return _mean([area for area in found if not math.isnan(area)])


METRICS: dict[str, Callable[[IntArray, Array], float]] = {
    "accuracy": accuracy,
    "balanced-accuracy": balanced_accuracy,
    "micro-f1": micro_f1,
    "macro-f1": macro_f1,
    "roc-auc": roc_auc,
    "pr-auc": pr_auc,
}


MetricName = Literal["accuracy", "balanced-accuracy", "micro-f1", "macro-f1", "roc-auc", "pr-auc"]
"""The names of :data:`METRICS`, as a parameter has them."""


def check_metric(metric: str) -> None:
    """Refuse a name that is no metric."""
    if metric not in METRICS:
        raise ParameterError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}")


def measure(metric: str, labels: IntArray, probabilities: Array) -> float:
    """The metric of that name; nan where it is not defined (an area under a curve with one class)."""
    check_metric(metric)
    return METRICS[metric](labels, probabilities)


# -------------------------------------------------------------------- class by class


class ClassScore(TypedDict):
    """How one class fares: noise costs rare classes most (the DP-GNN paper, appendix F). ``accuracy`` is its recall."""

    label: int
    name: str
    nodes: int
    share: float
    predicted: int
    accuracy: float
    precision: float
    recall: float
    f1: float
    roc_auc: float | None
    pr_auc: float | None


def class_scores(labels: IntArray, probabilities: Array, names: Sequence[str] | None = None) -> list[ClassScore]:
    """How each class that is there or was predicted fares, the most frequent first."""
    counts = _Counts.of(labels, probabilities.argmax(axis=1))
    columns = counts.classes, counts.precision, counts.recall, counts.f1, counts.actual, counts.predicted
    rows: list[ClassScore] = [
        {
            "label": int(label),
            "name": str(label) if names is None else str(names[label]),
            "nodes": int(nodes),
            "share": float(nodes / len(labels)),
            "predicted": int(predicted),
            "accuracy": float(recall),
            "precision": float(precision),
            "recall": float(recall),
            "f1": float(f1),
            "roc_auc": number_or_none(_roc_auc(labels == label, probabilities[:, label])),
            "pr_auc": number_or_none(_pr_auc(labels == label, probabilities[:, label])),
        }
        for label, precision, recall, f1, nodes, predicted in zip(*columns, strict=True)
    ]
    return sorted(rows, key=lambda row: -row["nodes"])


def confusion(labels: IntArray, predicted: IntArray, num_classes: int) -> IntArray:
    """How many nodes of each class (rows) were given each class (columns)."""
    table: IntArray = np.zeros((num_classes, num_classes), dtype=np.int64)
    np.add.at(table, (labels, predicted), 1)
    return table


def majority(train_labels: IntArray, labels: IntArray) -> float:
    """The accuracy of naming the commonest class of the training nodes throughout: what a model has to beat."""
    commonest = np.bincount(train_labels if len(train_labels) else labels).argmax()
    return float(np.mean(labels == commonest))


# -------------------------------------------------------------------- from tables of counts that carry noise


class TableFigures(TypedDict):
    """What a confusion table tells; None where noise leaves no count to divide by."""

    accuracy: float | None
    balanced_accuracy: float | None
    macro_f1: float | None
    precision: list[float | None]
    recall: list[float | None]


def figures_of_table(table: FloatArray) -> TableFigures:
    """Figures of a confusion table (rows are true classes) whose counts may carry noise: negative ones count as 0."""
    counts = np.maximum(table, 0.0)
    correct, actual, predicted = counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)
    recall = [_ratio(*pair) for pair in zip(correct, actual, strict=True)]
    f1 = [_ratio(2 * hits, total) for hits, total in zip(correct, actual + predicted, strict=True)]
    return {
        "accuracy": _ratio(correct.sum(), counts.sum()),
        "balanced_accuracy": number_or_none(_mean([share for share in recall if share is not None])),
        "macro_f1": number_or_none(_mean([share for share in f1 if share is not None])),
        "precision": [_ratio(*pair) for pair in zip(correct, predicted, strict=True)],
        "recall": recall,
    }


def roc_auc_of_bins(positive: FloatArray, negative: FloatArray) -> float | None:
    """The area under the ROC curve from counts by score bin, lowest first; pairs in one bin count as half.

    Counts may carry noise: sums of them are used as they are, for noise averages out, and the area is cut to [0, 1].
    """
    pairs = positive.sum() * negative.sum()
    if positive.sum() <= 0 or negative.sum() <= 0:
        return None
    below = np.cumsum(negative) - negative / 2
    return float(np.clip(positive @ below / pairs, 0.0, 1.0))


def number_or_none(figure: float) -> float | None:
    """JSON has no nan."""
    return None if math.isnan(figure) else figure


class _Counts(NamedTuple):
    """Of every class that is there or was predicted: nodes that have it, nodes that were given it, and both."""

    classes: IntArray
    actual: IntArray
    predicted: IntArray
    hits: IntArray

    @classmethod
    def of(cls, labels: IntArray, predicted: IntArray) -> _Counts:
        classes = np.union1d(labels, predicted)
        given = (labels, predicted, labels[labels == predicted])
        return cls(classes, *(np.bincount(np.searchsorted(classes, some), minlength=len(classes)) for some in given))

    @property
    def recall(self) -> FloatArray:
        return _shares(self.hits, self.actual)

    @property
    def precision(self) -> FloatArray:
        return _shares(self.hits, self.predicted)

    @property
    def f1(self) -> FloatArray:
        return _shares(2 * self.hits, self.actual + self.predicted)


def _shares(parts: IntArray, wholes: IntArray) -> FloatArray:
    """Quotients; 0 where there is nothing to divide by."""
    return np.asarray(parts / np.maximum(wholes, 1))


def _roc_auc(positive: BoolArray, scores: FloatArray) -> float:
    """The share of pairs in which the positive one has the higher score; ties count as half."""
    if positive.all() or not positive.any():
        return math.nan
    hits, misses = _by_score(positive, scores)
    missed_above = np.cumsum(misses) - misses
    won = hits @ (misses.sum() - missed_above - misses / 2)
    return float(won / (hits.sum() * misses.sum()))


def _pr_auc(positive: BoolArray, scores: FloatArray) -> float:
    """The precision at each score, weighed by the positive ones that have it."""
    if positive.all() or not positive.any():
        return math.nan
    hits, misses = _by_score(positive, scores)
    found = np.cumsum(hits)
    return float((hits / hits.sum()) @ (found / (found + np.cumsum(misses))))


def _by_score(positive: BoolArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How many are positive and how many are not, of each score, the highest first."""
    distinct, place = np.unique(-np.asarray(scores, dtype=np.float64), return_inverse=True)
    hits = np.bincount(place, weights=positive, minlength=len(distinct)).astype(np.float64)
    return hits, np.bincount(place, minlength=len(distinct)) - hits


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _mean(figures: Sequence[float]) -> float:
    return float(np.mean(figures)) if figures else math.nan
