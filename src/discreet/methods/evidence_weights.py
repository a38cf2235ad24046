"""A few weights that combine what a node model says with released evidence, fitted to public labels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax

from discreet.methods.evidence_model import class_likelihoods
from discreet.methods.link_model import LinkModel

FloatArray = npt.NDArray[np.float64]

START = np.array([1.0, 0.0, 1.0, 0.0, 0.5, 0.0])
"""Own log-probabilities, damped likelihoods, and hubs half: what is used where there is no label to fit."""
_PULL = 10.0
"""How strongly weights are held where they start: as this many labels would at distance 1."""
_FLOOR = -50.0


def blocks(
    own: FloatArray,
    sums: FloatArray,
    noise_std: float,
    links: LinkModel,
    hubs: FloatArray | None = None,
    read: FloatArray | None = None,
) -> FloatArray:
    """(rows, 6, classes): own log-probabilities; likelihoods, likelihoods damped, and the sums themselves damped; what
    hubs say damped, and how a reader reads the sums, zero where there is none.

    Neighbours repeat each other, so likelihoods are too sure, the more so the more neighbours there are;
    damping (norm to log(1 + norm)) bounds that, and plain likelihoods are right where it is not so.
    """
    likelihoods = class_likelihoods(sums, noise_std, links)
    bounded = np.maximum(likelihoods - likelihoods.max(axis=1, keepdims=True), _FLOOR)
    of_hubs = np.zeros_like(sums) if hubs is None else damped(hubs / (1 + noise_std))
    reading = np.zeros_like(sums) if read is None else read
    parts = own, bounded, damped(likelihoods), damped(sums / (1 + noise_std)), of_hubs, reading
    return np.stack([part - part.mean(axis=1, keepdims=True) for part in parts], axis=1)


def fit_weights(parts: FloatArray, labels: npt.NDArray[np.int64]) -> FloatArray:
    """The weights of least cross-entropy, held near :data:`START`, the less the more labels there are.

    Six numbers, one convex problem.
    """
    pull = _PULL / max(len(labels), 1)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        logs = log_softmax(np.einsum("k,nkc->nc", weights, parts), axis=1)
        wrong = np.exp(logs)
        wrong[np.arange(len(labels)), labels] -= 1
        slope = np.einsum("nc,nkc->k", wrong, parts) / len(labels) + pull * (weights - START)
        value = -logs[np.arange(len(labels)), labels].mean() + pull / 2 * ((weights - START) ** 2).sum()
        return float(value), slope

    return START.copy() if len(labels) == 0 else np.asarray(minimize(loss, START, jac=True, method="L-BFGS-B").x)


def combined(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """Logits."""
    return np.asarray(np.einsum("k,nkc->nc", weights, parts))


def damped(rows: FloatArray) -> FloatArray:
    """Rows centred, their norm brought to log(1 + norm)."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    norms = np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)
    return np.asarray(centred * np.log1p(norms) / norms)
