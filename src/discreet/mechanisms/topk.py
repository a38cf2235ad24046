"""The K largest entries of private rows: one-shot Gumbel noise (indices, and values by Laplace), or Gaussian noise.

What is asked, and its bound, is ``queries.picks``. Scores come as a sparse matrix (M × candidates); noise falls on
every candidate, scored or not. What is not stored scores zero, and the noise of m zeros is drawn by its order
statistics, K numbers instead of m, with the same law. The answer is (M, K, 2): candidate and value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from discreet.arrays import FloatArray, IntArray
from discreet.errors import PlanViolationError
from discreet.mechanisms.bits import BitStream, Randomness, bits_of
from discreet.mechanisms.grid import laplace_release
from discreet.privacy import events
from discreet.privacy.plan import Stage
from discreet.queries.picks import GAUSSIAN, GUMBEL, TopPicks, row_norms

Noise = Callable[[int], FloatArray]
LargestNoise = Callable[[int, int], FloatArray]

__all__ = [
    "GAUSSIAN",
    "GUMBEL",
    "gumbel_scales",
    "picks_of",
    "release_gaussian",
    "release_gumbel",
]
_ROUNDING = 1e-9


def picks_of(stage: Stage) -> TopPicks:
    """The query of a stage that picks."""
    if not isinstance(stage.query, TopPicks):
        raise PlanViolationError(f"stage {stage.name!r} picks nothing")
    return stage.query


def gumbel_scales(stage: Stage) -> tuple[float, float | None]:
    """The scale of Gumbel noise on scores, and of Laplace noise on the values picked (None: no values)."""
    leaves = {type(leaf): leaf for leaf, _ in events.leaves(stage.event)}
    scale = leaves[events.OneShotTopKDpEvent].noise_multiplier * stage.sensitivity
    values = leaves.get(events.LaplaceDpEvent)
    return scale, None if values is None else values.noise_multiplier * stage.sensitivity


# -------------------------------------------------------------------- the mechanisms


def release_gumbel(value: Any, stage: Stage, randomness: Randomness) -> FloatArray:
    """The K candidates of largest score plus Gumbel noise in each row, each with weight 1/K or its Laplace value.

    Guarantee: if no entry moves by more than ``stage.sensitivity`` between neighbours (entries in [0, C], checked), the
    result has the privacy of ``stage.event``, from which both noise scales are read. One row's indices are K picks of
    ``events.OneShotTopKDpEvent``; given them, its values are K numbers that move by at most C.
    """
    query = picks_of(stage)
    scores, picks = sp.csr_array(value), query.picks
    if scores.nnz and (scores.data.min() < 0 or scores.data.max() > query.clip * (1 + _ROUNDING)):
        raise PlanViolationError(f"stage {stage.name!r} needs scores between 0 and {query.clip:g}")
    if not stage.is_private:
        return _without_noise(scores, picks, query.with_values)
    scale, spread = gumbel_scales(stage)
    bits = bits_of(randomness)

    def noise(size: int) -> FloatArray:
        return np.asarray(-scale * np.log(-np.log(bits.uniform(size))))

    def largest(size: int, count: int) -> FloatArray:
        return np.asarray(-scale * np.log(-_log_uniform_maxima(size, count, bits)))

    chosen, true_values, _ = _noisy_top(scores, picks, noise, largest, bits)
    weights = np.full(chosen.shape, 1 / picks)
    if spread is not None:
        weights = laplace_release(true_values, query.clip, spread, bits)
    return np.stack([chosen.astype(np.float64), weights], axis=-1)


def release_gaussian(value: Any, stage: Stage, randomness: Randomness) -> FloatArray:
    """The K largest entries of each row after Gaussian noise on all, with their noisy values.

    Guarantee: rows are non-negative with norm at most C (checked), so all of them move by at most
    ``stage.sensitivity`` = √(2M)·C together; choosing the K largest of a noisy row is post-processing.
    """
    query = picks_of(stage)
    scores, picks, clip = sp.csr_array(value), query.picks, query.clip
    if scores.nnz and (scores.data.min() < 0 or row_norms(scores).max() > clip * (1 + _ROUNDING)):
        raise PlanViolationError(f"stage {stage.name!r} needs non-negative rows of norm at most {clip:g}")
    if stage.noise_std == 0:
        return _without_noise(scores, picks, True)
    scale, bits = stage.noise_std, bits_of(randomness)

    def noise(size: int) -> FloatArray:
        return np.asarray(scale * ndtri(bits.uniform(size)))

    def largest(size: int, count: int) -> FloatArray:
        return np.asarray(-scale * ndtri(-np.expm1(_log_uniform_maxima(size, count, bits))))

    chosen, _, noisy = _noisy_top(scores, picks, noise, largest, bits)
    return np.stack([chosen.astype(np.float64), noisy], axis=-1)


def _noisy_top(
    scores: sp.csr_array, picks: int, noise: Noise, largest: LargestNoise, bits: BitStream
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Candidates, scores and noisy scores of the ``picks`` largest noisy entries of each row, the largest first."""
    rows, width = scores.shape
    chosen = np.empty((rows, picks), dtype=np.int64)
    true, noisy = np.zeros((rows, picks)), np.empty((rows, picks))
    for row in range(rows):
        part = slice(scores.indptr[row], scores.indptr[row + 1])
        stored, values = scores.indices[part].astype(np.int64), scores.data[part]
        absent = min(picks, width - len(stored))
        ids = np.concatenate([stored, _others(stored, width, absent, bits)])
        before = np.concatenate([values, np.zeros(absent)])
        after = np.concatenate([values + noise(len(stored)), largest(width - len(stored), absent)])
        best = np.argsort(-after)[:picks]
        chosen[row], true[row], noisy[row] = ids[best], before[best], after[best]
    return chosen, true, noisy


def _log_uniform_maxima(size: int, count: int, bits: BitStream) -> FloatArray:
    """Logarithms of the ``count`` largest of ``size`` uniform numbers: each is a root of another below the last."""
    return np.cumsum(np.log(bits.uniform(count)) / np.arange(size, size - count, -1))


def _others(stored: IntArray, width: int, count: int, bits: BitStream) -> IntArray:
    """``count`` different candidates that are not stored, uniformly and in random order."""
    if 2 * (len(stored) + count) > width:
        free = np.setdiff1d(np.arange(width), stored)
        return free[bits.permutation(len(free))[:count]]
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:  # at least half of all candidates are free
        drawn = bits.integers(width, 2 * count + 8)
        drawn = drawn[~np.isin(drawn, stored) & ~np.isin(drawn, found)]
        _, first = np.unique(drawn, return_index=True)
        found = np.concatenate([found, drawn[np.sort(first)]])
    return found[:count]


def _without_noise(scores: sp.csr_array, picks: int, values: bool) -> FloatArray:
    """The largest entries as they are; a slot without a scored candidate has weight zero."""
    answer = np.zeros((scores.shape[0], picks, 2))
    for row in range(scores.shape[0]):
        part = slice(scores.indptr[row], scores.indptr[row + 1])
        best = np.argsort(-scores.data[part], kind="stable")[:picks]
        answer[row, : len(best), 0] = scores.indices[part][best]
        answer[row, : len(best), 1] = scores.data[part][best] if values else 1 / picks
    return answer
