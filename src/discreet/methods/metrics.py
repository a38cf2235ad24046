"""How well predictions meet labels, in figures that tell the truth about rare classes too. scikit-learn computes them.

Every metric takes labels and class probabilities; the predicted class is the most probable one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

import numpy as np

from discreet.arrays import Array, BoolArray, FloatArray, IntArray
from discreet.errors import ParameterError


def accuracy(labels: IntArray, probabilities: Array) -> float:
    """The share of nodes whose class was met."""
    return float(np.mean(labels == probabilities.argmax(axis=1)))


def balanced_accuracy(labels: IntArray, probabilities: Array) -> float:
    """The mean over the classes that are there of the share of their nodes that was met."""
    from sklearn.metrics import recall_score

    there = np.unique(labels)
    return float(recall_score(labels, probabilities.argmax(axis=1), labels=there, average="macro", zero_division=0))


def micro_f1(labels: IntArray, probabilities: Array) -> float:
    """F1 over all decisions together; with one label per node this is the accuracy."""
    return _f1(labels, probabilities, "micro")


def macro_f1(labels: IntArray, probabilities: Array) -> float:
    """The mean of F1 over the classes that are there or were predicted."""
    return _f1(labels, probabilities, "macro")


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
    from sklearn.metrics import precision_recall_fscore_support

    predicted = probabilities.argmax(axis=1)
    seen = np.union1d(labels, predicted)
    columns = precision_recall_fscore_support(labels, predicted, labels=seen, zero_division=0)
    rows: list[ClassScore] = [
        {
            "label": int(label),
            "name": str(label) if names is None else str(names[label]),
            "nodes": int(nodes),
            "share": float(nodes / len(labels)),
            "predicted": int(np.sum(predicted == label)),
            "accuracy": float(recall),
            "precision": float(precision),
            "recall": float(recall),
            "f1": float(f1),
            "roc_auc": number_or_none(_roc_auc(labels == label, probabilities[:, label])),
            "pr_auc": number_or_none(_pr_auc(labels == label, probabilities[:, label])),
        }
        for label, precision, recall, f1, nodes in zip(seen, *columns, strict=True)
    ]
    return sorted(rows, key=lambda row: -row["nodes"])


def confusion(labels: IntArray, predicted: IntArray, num_classes: int) -> IntArray:
    """How many nodes of each class (rows) were given each class (columns)."""
    from sklearn.metrics import confusion_matrix

    table: IntArray = confusion_matrix(labels, predicted, labels=np.arange(num_classes))
    return table


def majority(train_labels: IntArray, labels: IntArray) -> float:
    """The accuracy of naming the commonest class of the training nodes throughout: what a model has to beat."""
    from sklearn.metrics import accuracy_score

    commonest = np.bincount(train_labels if len(train_labels) else labels).argmax()
    return float(accuracy_score(labels, np.full(len(labels), commonest)))


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


def _f1(labels: IntArray, probabilities: Array, average: str) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(labels, probabilities.argmax(axis=1), average=average, zero_division=0))


def _roc_auc(positive: BoolArray, scores: FloatArray) -> float:
    from sklearn.metrics import roc_auc_score

    return math.nan if positive.all() or not positive.any() else float(roc_auc_score(positive, scores))


def _pr_auc(positive: BoolArray, scores: FloatArray) -> float:
    from sklearn.metrics import average_precision_score

    return math.nan if positive.all() or not positive.any() else float(average_precision_score(positive, scores))


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _mean(figures: Sequence[float]) -> float:
    return float(np.mean(figures)) if figures else math.nan
