"""When a rare class is decided for: one weight per class, by which probabilities are multiplied, chosen on validation
labels.

For two classes that is a threshold on the probability of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from discreet.arrays import Array, FloatArray, IntArray, SingleArray
from discreet.errors import GraphError, UnsupportedError
from discreet.graph.parts import LABELS, PublicPart
from discreet.privacy.levels import Level, NoPrivacy

DecideBy = Literal["balanced-accuracy", "macro-f1"]
_TRIED = 101
"""Quantiles of the margins at which a class is tried."""
_ROUNDS = 2
"""How often every class is tried: the weights of the others have moved since the first time."""
_TINY = 1e-12
"""Probabilities are held above it, and scores that are nearer than that are equal."""
_LARGEST = 1e4
"""No class is weighed further from another than this."""


def check_decision(method: str, level: Level, covers: str) -> None:
    """Refuse a choice on validation labels where these are private, or where predictions read private data."""
    if LABELS in level.private:
        raise UnsupportedError(
            f"{method}: decide_by reads validation labels, which level {level.kind} protects: it is for levels where "
            "labels are public"
        )
    if not isinstance(level, NoPrivacy) and covers != "weights+predictions":
        raise UnsupportedError(
            f"{method}: decide_by would choose by predictions that read private data (covered here: {covers}): it is "
            "for methods that cover weights+predictions"
        )


def validation_ids(part: PublicPart) -> IntArray:
    """The labelled validation nodes; an error where there is none."""
    ids = part.labelled(part.val_mask)
    if len(ids) == 0:
        raise GraphError("decide_by chooses on validation nodes, and none of them has a label")
    return ids


def decided(probabilities: SingleArray, weights: FloatArray) -> SingleArray:
    """Probabilities times weights, made to add up to 1 again: the likeliest class is then the decision."""
    moved = probabilities * weights
    found: SingleArray = (moved / np.maximum(moved.sum(axis=1, keepdims=True), _TINY)).astype(probabilities.dtype)
    return found


def decision_weights(metric: DecideBy, labels: IntArray, probabilities: Array) -> FloatArray:
    """The weights that do best by the metric, the largest of them 1.

    Class by class, twice round: a class is tried at the quantiles of how far it lies behind the best of the others.
    A tie goes to the weight that is nearest to what it was.
    """
    logs = np.log(np.maximum(np.asarray(probabilities, dtype=np.float64), _TINY))
    measure, bounds = _MEASURES[metric], np.log(_LARGEST)
    weights = np.zeros(logs.shape[1])
    for _ in range(_ROUNDS):
        for label in np.unique(labels):
            others = np.delete(logs + weights, label, axis=1)
            if others.shape[1] == 0:
                break
            behind = others.max(axis=1) - logs[:, label]
            steps = np.unique(np.quantile(behind, np.linspace(0, 1, _TRIED)))
            tried = np.append((steps[1:] + steps[:-1]) / 2, weights[label])
            tried = np.clip(tried, -bounds, bounds)
            found = [measure(labels, _argmax(logs, weights, label, value)) for value in tried]
            best = np.flatnonzero(np.asarray(found) >= max(found) - _TINY)
            weights[label] = tried[best[np.abs(tried[best] - weights[label]).argmin()]]
    return np.asarray(np.exp(weights - weights.max()))


def _argmax(logs: FloatArray, weights: FloatArray, label: int, value: float) -> IntArray:
    moved = weights.copy()
    moved[label] = value
    return np.asarray((logs + moved).argmax(axis=1))


def _counts(labels: IntArray, predicted: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Of every class: how many predictions are right, how many nodes have it, how many predictions name it."""
    size = int(max(labels.max(), predicted.max())) + 1
    right = np.bincount(labels[labels == predicted], minlength=size)
    return right, np.bincount(labels, minlength=size), np.bincount(predicted, minlength=size)


def _balanced_accuracy(labels: IntArray, predicted: IntArray) -> float:
    right, there, _ = _counts(labels, predicted)
    return float((right[there > 0] / there[there > 0]).mean())


def _macro_f1(labels: IntArray, predicted: IntArray) -> float:
    right, there, named = _counts(labels, predicted)
    seen = there + named > 0
    return float((2 * right[seen] / (there + named)[seen]).mean())


_MEASURES: dict[str, Callable[[IntArray, IntArray], float]] = {
    "balanced-accuracy": _balanced_accuracy,
    "macro-f1": _macro_f1,
}
