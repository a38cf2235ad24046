"""How well predictions meet labels: accuracy, and F1 over all decisions or averaged over classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

import numpy as np

from discreet.arrays import IntArray
from discreet.errors import ParameterError


def accuracy(labels: IntArray, predicted: IntArray) -> float:
    """The share of nodes whose class was met."""
    return float(np.mean(labels == predicted))


def micro_f1(labels: IntArray, predicted: IntArray) -> float:
    """F1 over all decisions together; with one label a node this is the accuracy."""
    hits, found, there = (counts.sum() for counts in _counts(labels, predicted))
    return float(2 * hits / (found + there))


def macro_f1(labels: IntArray, predicted: IntArray) -> float:
    """The mean of F1 over the classes that are there or were predicted."""
    hits, found, there = _counts(labels, predicted)
    seen = (found + there) > 0
    return float(np.mean(2 * hits[seen] / (found + there)[seen]))


class ClassScore(TypedDict):
    """How one class fares: noise costs rare classes most (paper 001, appendix F)."""

    label: int
    nodes: int
    share: float
    accuracy: float


def class_scores(labels: IntArray, predicted: IntArray) -> list[ClassScore]:
    """The accuracy on the nodes of each class that is there, the most frequent first."""
    hits, _, there = _counts(labels, predicted)
    order = sorted(np.flatnonzero(there).tolist(), key=lambda label: -int(there[label]))
    return [
        {
            "label": label,
            "nodes": int(there[label]),
            "share": float(there[label] / len(labels)),
            "accuracy": float(hits[label] / there[label]),
        }
        for label in order
    ]


METRICS: dict[str, Callable[[IntArray, IntArray], float]] = {
    "accuracy": accuracy,
    "micro-f1": micro_f1,
    "macro-f1": macro_f1,
}


def measure(metric: str, labels: IntArray, predicted: IntArray) -> float:
    """The metric of that name."""
    if metric not in METRICS:
        raise ParameterError(f"metric must be one of {', '.join(METRICS)}, not {metric!r}")
    return METRICS[metric](labels, predicted)


def _counts(labels: IntArray, predicted: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """For each class: nodes predicted and there, nodes predicted, nodes there."""
    size = int(max(labels.max(initial=0), predicted.max(initial=0))) + 1
    hits, found, there = (
        np.bincount(chosen, minlength=size) for chosen in (labels[labels == predicted], predicted, labels)
    )
    return hits, found, there
