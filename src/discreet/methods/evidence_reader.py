"""A reading of noisy sums that is learnt where the answer is known: at training nodes, whose labels are public.

The table of links counts edges, so nodes with many of them speak loudest in it, and it knows one profile a class.
Training nodes hear one another at no cost (``ops.evidence.heard``), under the noise that receivers hear under.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax

from discreet.methods.evidence_weights import damped

FloatArray = npt.NDArray[np.float64]

_ROWS = 4000
"""Enough to fit a few numbers a class; more would only take time."""
_PENALTY = 1e-3
_STEPS = 100
_FULL_AT = 3.0


@dataclass(frozen=True)
class Reader:
    """Scores of every class, linear in a row that was damped and in its direction."""

    head: FloatArray

    def scores(self, sums: FloatArray, noise_std: float) -> FloatArray:
        """One row a row of ``sums``."""
        return np.asarray(inputs(sums, noise_std) @ self.head)

    @classmethod
    def none(cls, classes: int) -> Reader:
        """A reader that says nothing."""
        return cls(np.zeros((2 * classes, classes)))

    @classmethod
    def fit(cls, sums: FloatArray, labels: npt.NDArray[np.int64], classes: int, noise_std: float) -> Reader:
        """Multinomial logistic regression on the labels of these rows; the frequency of classes is left out."""
        if len(labels) == 0:
            return cls.none(classes)
        step = -(-len(labels) // _ROWS)
        rows, chosen = inputs(sums[::step], noise_std), labels[::step]
        rows = np.hstack([rows, np.ones((len(rows), 1))])
        picked = np.arange(len(rows)), chosen

        def loss(flat: FloatArray) -> tuple[float, FloatArray]:
            head = flat.reshape(-1, classes)
            logs = log_softmax(rows @ head, axis=1)
            wrong = np.exp(logs)
            wrong[picked] -= 1
            slope = rows.T @ wrong / len(rows) + _PENALTY * head
            return float(-logs[picked].mean() + _PENALTY / 2 * (head**2).sum()), slope.ravel()

        found = minimize(
            loss, np.zeros(rows.shape[1] * classes), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
        )
        return cls(np.asarray(found.x).reshape(-1, classes)[:-1])


def inputs(sums: FloatArray, noise_std: float) -> FloatArray:
    """Rows damped, beside their directions, which are shorter where they do not stand out of the noise."""
    centred = sums - sums.mean(axis=1, keepdims=True)
    lengths = np.hypot(np.linalg.norm(centred, axis=1, keepdims=True), _FULL_AT * noise_std)
    return np.hstack([damped(sums / (1 + noise_std)), centred / np.maximum(lengths, 1e-12)])
