"""How likely noisy sums of what neighbours tell are under each class: from released values alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import gamma

from discreet.methods.link_model import LinkModel

FloatArray = npt.NDArray[np.float64]

_POINTS = 16
_REPEATED = 0.1
"""The part of the variance between neighbours that does not average out, because they repeat each other; public."""
_TINY = 1e-12


def class_likelihoods(sums: FloatArray, noise_std: float, links: LinkModel) -> FloatArray:
    """Log-likelihood of each row of ``sums`` under each class, centred over classes.

    A row is m·(P(· | a) − 1/c) for a node of class a, where m says how much it is told, plus noise, plus what m
    neighbours of one class differ by. m is not known for a node. Its mean square over all nodes follows from how
    much longer the rows are than noise alone would make them; around that it is taken to spread as an exponential
    does, and integrated out. Rows that are no longer than noise make m, and the evidence, zero.
    """
    rows = sums - sums.mean(axis=1, keepdims=True)
    classes = rows.shape[1]
    expected = links.given - 1 / classes
    within = 1 - (links.given**2).sum(axis=1)
    strength = _root_mean_square(rows, noise_std, expected, within, links.chance)
    found = [_given_strength(rows, noise_std, expected, within, strength * share) for share in _spread()]
    stacked = np.stack(found)
    largest = stacked.max(axis=0)
    total = largest + np.log(np.exp(stacked - largest).mean(axis=0))
    return np.asarray(total - total.mean(axis=1, keepdims=True))


def _root_mean_square(
    rows: FloatArray, noise_std: float, expected: FloatArray, within: FloatArray, chance: FloatArray
) -> float:
    """The root mean square of m, by the energy of the rows beyond that of the noise."""
    beyond = float((rows**2).sum(axis=1).mean()) - noise_std**2 * (rows.shape[1] - 1) if rows.size else 0.0
    a_unit = float(chance @ ((expected**2).sum(axis=1) + _REPEATED * within))
    return float(np.sqrt(max(beyond, 0.0) / max(a_unit, _TINY)))


def _given_strength(
    rows: FloatArray, noise_std: float, expected: FloatArray, within: FloatArray, strength: float
) -> FloatArray:
    dimensions = max(rows.shape[1] - 1, 1)
    variance = noise_std**2 + _REPEATED * strength**2 * within / dimensions + _TINY
    means = strength * expected
    distance = (rows**2).sum(axis=1)[:, None] - 2 * rows @ means.T + (means**2).sum(axis=1)
    return np.asarray(-distance / (2 * variance) - dimensions / 2 * np.log(variance))


def _spread() -> FloatArray:
    """Quantiles of an exponential, scaled to mean square 1."""
    quantiles = gamma.ppf((np.arange(_POINTS) + 0.5) / _POINTS, 1.0)
    return np.asarray(quantiles / np.sqrt((quantiles**2).mean()))
