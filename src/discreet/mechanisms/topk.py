"""The K largest entries of private rows: one-shot Gumbel noise (indices, and values by Laplace), or Gaussian noise.

What is asked, and its bound, is ``queries.picks``. Scores come as a sparse matrix (M × candidates); noise falls on
every candidate, scored or not. What is not stored scores zero. The answer is (M, K, 2): candidate and value. All of it
is exact: indices under Gumbel noise by ``exact_picks``, values and whole rows by noise on a public grid.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet.arrays import FloatArray
from discreet.errors import PlanViolationError
from discreet.mechanisms import gaussian, laplace
from discreet.mechanisms.bits import Randomness, bits_of
from discreet.mechanisms.exact_picks import exponential_picks
from discreet.privacy import events
from discreet.privacy.plan import Stage
from discreet.queries.picks import GAUSSIAN, GUMBEL, TopPicks, row_norms

__all__ = [
    "GAUSSIAN",
    "GUMBEL",
    "gumbel_scales",
    "picks_of",
    "release_gaussian",
    "release_gumbel",
]
_ROUNDING = 1e-9
"""What clipping in floating point may leave above the clip, relative."""
_CHUNK = 1 << 22
"""Scores at once: 32 MiB of doubles."""


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
    chosen, true_values = exponential_picks(scores, picks, scale, bits)
    weights = np.full(chosen.shape, 1 / picks)
    if spread is not None:
        weights = laplace.release_real(true_values, query.clip, spread, bits)
    return np.stack([chosen.astype(np.float64), weights], axis=-1)


def release_gaussian(value: Any, stage: Stage, randomness: Randomness) -> FloatArray:
    """The K largest entries of each row after Gaussian noise on all, with their noisy values.

    Guarantee: rows are non-negative with norm at most C (checked), so all of them move by at most
    ``stage.sensitivity`` = √(2M)·C together; choosing the K largest of a noisy row is post-processing. Every entry gets
    its noise, a few rows at a time.
    """
    query = picks_of(stage)
    scores, picks, clip = sp.csr_array(value), query.picks, query.clip
    if scores.nnz and (scores.data.min() < 0 or row_norms(scores).max() > clip * (1 + _ROUNDING)):
        raise PlanViolationError(f"stage {stage.name!r} needs non-negative rows of norm at most {clip:g}")
    if stage.noise_std == 0:
        return _without_noise(scores, picks, True)
    grid, bits = gaussian.grid_of(stage), bits_of(randomness)
    answer = np.empty((scores.shape[0], picks, 2))
    at_once = max(1, _CHUNK // scores.shape[1])
    for start in range(0, scores.shape[0], at_once):
        part = slice(start, start + at_once)
        rows = scores[part].toarray()
        noisy = grid.add(rows, grid.sampler.draw(bits, rows.shape))
        best = np.argpartition(-noisy, picks - 1, axis=1)[:, :picks]
        largest = np.take_along_axis(noisy, best, axis=1)
        order = np.argsort(-largest, axis=1)
        answer[part, :, 0] = np.take_along_axis(best, order, axis=1)
        answer[part, :, 1] = np.take_along_axis(largest, order, axis=1)
    return answer


def _without_noise(scores: sp.csr_array, picks: int, values: bool) -> FloatArray:
    """The largest entries as they are; a slot without a scored candidate has weight zero."""
    answer = np.zeros((scores.shape[0], picks, 2))
    for row in range(scores.shape[0]):
        part = slice(scores.indptr[row], scores.indptr[row + 1])
        best = np.argsort(-scores.data[part], kind="stable")[:picks]
        answer[row, : len(best), 0] = scores.indices[part][best]
        answer[row, : len(best), 1] = scores.data[part][best] if values else 1 / picks
    return answer
