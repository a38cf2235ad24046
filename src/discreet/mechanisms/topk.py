"""The K largest entries of private rows: one-shot Gumbel noise (indices, and values by Laplace), or Gaussian noise.

A stage asks for the K best of a public range of candidates in each of M rows of scores. Scores come as a sparse matrix
(M × candidates); noise falls on every candidate, scored or not. What is not stored scores zero, and the noise of m
zeros is drawn by its order statistics, K numbers instead of m, with the same law. The answer is (M, K, 2): candidate
and value.

One unit may change *every* score of *every* row (a hub stands in all rows of PageRank). What bounds the loss is the
clip:

- ``gumbel``: entries in [0, C] move by at most C each (ℓ∞), whatever changes. M rows are M events; with values, each
  of the K values picked moves by at most C, which is M·K Laplace mechanisms.
- ``gaussian``: rows of non-negative numbers with norm at most C are at most √2·C apart, not C and not 2C:
  ‖a − b‖² = ‖a‖² + ‖b‖² − 2a·b ≤ 2C², as a·b ≥ 0; it is met by rows on disjoint candidates. All M rows move together
  by at most √(2M)·C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from dp_accounting.dp_event import DpEvent
from scipy.special import ndtri

from discreet.errors import ParameterError, PlanViolationError
from discreet.privacy import events
from discreet.privacy.plan import Stage
from discreet.privacy.top_k import OneShotTopKDpEvent

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Selection = Literal["em0", "em1", "gm"]
Noise = Callable[[int], FloatArray]
LargestNoise = Callable[[int, int], FloatArray]

GUMBEL, GAUSSIAN = "gumbel-top-k", "gaussian-top-k"
_ROUNDING = 1e-9


# -------------------------------------------------------------------- bounded rows


def clip_entries(rows: sp.csr_array, bound: float) -> sp.csr_array:
    """Every entry to [0, bound].

    Guarantee: between any two graphs no entry moves by more than ``bound`` (ℓ∞ over all rows).
    """
    clipped = sp.csr_array(rows, dtype=np.float64, copy=True)
    clipped.data = np.clip(clipped.data, 0.0, bound)
    return clipped


def clip_norms(rows: sp.csr_array, bound: float) -> sp.csr_array:
    """Non-negative rows scaled down to an ℓ2 norm of at most ``bound``.

    Guarantee: between any two graphs a row moves by at most √2·bound, and M rows by √(2M)·bound (ℓ2).
    """
    clipped = sp.csr_array(rows, dtype=np.float64, copy=True)
    clipped.data = np.maximum(clipped.data, 0.0)
    factor = bound / np.maximum(_norms(clipped), bound)
    clipped.data *= np.repeat(factor, np.diff(clipped.indptr))
    return clipped


def _norms(rows: sp.csr_array) -> FloatArray:
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.sqrt(np.bincount(owner, weights=rows.data**2, minlength=rows.shape[0]))


# -------------------------------------------------------------------- the stage


def top_k_stage(
    name: str, query: str, selection: Selection, *, rows: int, candidates: int, picks: int, clip: float, cost: float
) -> Stage:
    """The stage that picks ``picks`` of ``candidates`` in each of ``rows`` rows, clipped at ``clip``.

    ``cost`` is relative: the squared privacy loss μ² of the whole stage, in which one pick of Gumbel scale λC counts
    1/λ² (its ρ of zCDP is 1/(2λ²)), and so does one Laplace value of scale λC. Indices and values share it equally.
    """
    if not 1 <= picks <= candidates:
        raise ParameterError(f"top_k must lie between 1 and the number of candidates, {candidates}, not {picks}")
    if not 0 < clip < math.inf:
        raise ParameterError(f"a clip bound must be a positive number, not {clip!r}")
    return _stage(name, query, selection, rows, candidates, picks, clip, _event(selection, rows, picks, cost))


def _event(selection: Selection, rows: int, picks: int, cost: float) -> DpEvent:
    if selection == "gm":
        return events.GaussianDpEvent(1 / math.sqrt(cost))
    if selection == "em0":
        return events.repeat(OneShotTopKDpEvent(math.sqrt(rows * picks / cost), picks), rows)
    each = math.sqrt(2 * rows * picks / cost)
    return gumbel_event(each, each, rows, picks)


def gumbel_event(scale: float, value_scale: float | None, rows: int, picks: int) -> DpEvent:
    """Indices with Gumbel noise of scale·C, and values (unless None) with Laplace noise of value_scale·C."""
    indices = events.repeat(OneShotTopKDpEvent(scale, picks), rows)
    if value_scale is None:
        return indices
    return events.compose([indices, events.repeat(events.LaplaceDpEvent(value_scale), rows * picks)])


def _stage(
    name: str, query: str, selection: Selection, rows: int, candidates: int, picks: int, clip: float, event: DpEvent
) -> Stage:
    gaussian = selection == "gm"
    return Stage(
        name=name,
        query=query,
        mechanism=GAUSSIAN if gaussian else GUMBEL,
        sensitivity=math.sqrt(2 * rows) * clip if gaussian else clip,
        metric="l2" if gaussian else "linf",
        why=(
            f"one node can change all of {rows} rows, non-negative and of norm at most {clip:g}: each by √2 times that"
            if gaussian
            else f"one node can change every entry of all {rows} rows, from 0 to {clip:g} or back"
        ),
        event=event,
        shape=(rows, candidates),
        answer_shape=(rows, picks, 2),
        parameters={"picks": picks, "clip": clip, "values": selection != "em0"},
    )


def structure_survives(mu: float, selection: Selection, rows: int, picks: int, candidates: int) -> bool:
    """Whether the largest possible score would stand above the largest noise among all candidates.

    ``mu`` is the privacy loss (of a Gaussian, or √2ρ) that all rows may spend. With Gumbel noise one row's score at its
    clip bound is mu/√(MK) noise scales high (``em1`` halves the squared loss), and the largest of n noises about ln n;
    with Gaussian noise it is mu/√(2M) deviations, against √(2 ln n).
    """
    if selection == "gm":
        return mu / math.sqrt(2 * rows) >= math.sqrt(2 * math.log(max(candidates, 2)))
    halves = 2 if selection == "em1" else 1
    return mu / math.sqrt(halves * rows * picks) >= math.log(max(candidates, 2))


# -------------------------------------------------------------------- the mechanisms


def release_gumbel(value: Any, stage: Stage, rng: np.random.Generator) -> FloatArray:
    """The K candidates of largest score plus Gumbel noise in each row, each with weight 1/K or its Laplace value.

    Guarantee: if no entry moves by more than ``stage.sensitivity`` between neighbours (entries in [0, C], checked), the
    result has the privacy of ``stage.event``, from which both noise scales are read. One row's indices are K picks of
    :class:`~discreet.privacy.top_k.OneShotTopKDpEvent`; given them, its values are K numbers that move by at most C.
    """
    scores, picks = sp.csr_array(value), int(stage.parameters["picks"])
    if scores.nnz and (scores.data.min() < 0 or scores.data.max() > stage.sensitivity * (1 + _ROUNDING)):
        raise PlanViolationError(f"stage {stage.name!r} needs scores between 0 and {stage.sensitivity:g}")
    if isinstance(stage.event, events.NonPrivateDpEvent):
        return _without_noise(scores, picks, bool(stage.parameters["values"]))
    leaves = {type(leaf): leaf for leaf, _ in events.leaves(stage.event)}
    scale = leaves[OneShotTopKDpEvent].noise_multiplier * stage.sensitivity

    def noise(size: int) -> FloatArray:
        return np.asarray(scale * rng.gumbel(size=size))

    def largest(size: int, count: int) -> FloatArray:
        return np.asarray(-scale * np.log(-_log_uniform_maxima(size, count, rng)))

    chosen, true_values, _ = _noisy_top(scores, picks, noise, largest, rng)
    weights = np.full(chosen.shape, 1 / picks)
    if events.LaplaceDpEvent in leaves:
        spread = leaves[events.LaplaceDpEvent].noise_multiplier * stage.sensitivity
        weights = true_values + rng.laplace(scale=spread, size=chosen.shape)
    return np.stack([chosen.astype(np.float64), weights], axis=-1)


def release_gaussian(value: Any, stage: Stage, rng: np.random.Generator) -> FloatArray:
    """The K largest entries of each row after Gaussian noise on all, with their noisy values.

    Guarantee: rows are non-negative with norm at most C (checked), so all of them move by at most
    ``stage.sensitivity`` = √(2M)·C together; choosing the K largest of a noisy row is post-processing.
    """
    scores, picks, clip = sp.csr_array(value), int(stage.parameters["picks"]), float(stage.parameters["clip"])
    if scores.nnz and (scores.data.min() < 0 or _norms(scores).max() > clip * (1 + _ROUNDING)):
        raise PlanViolationError(f"stage {stage.name!r} needs non-negative rows of norm at most {clip:g}")
    if stage.noise_std == 0:
        return _without_noise(scores, picks, True)
    scale = stage.noise_std

    def noise(size: int) -> FloatArray:
        return scale * rng.standard_normal(size)

    def largest(size: int, count: int) -> FloatArray:
        return np.asarray(-scale * ndtri(-np.expm1(_log_uniform_maxima(size, count, rng))))

    chosen, _, noisy = _noisy_top(scores, picks, noise, largest, rng)
    return np.stack([chosen.astype(np.float64), noisy], axis=-1)


def _noisy_top(
    scores: sp.csr_array, picks: int, noise: Noise, largest: LargestNoise, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Candidates, scores and noisy scores of the ``picks`` largest noisy entries of each row, the largest first."""
    rows, width = scores.shape
    chosen = np.empty((rows, picks), dtype=np.int64)
    true, noisy = np.zeros((rows, picks)), np.empty((rows, picks))
    for row in range(rows):
        part = slice(scores.indptr[row], scores.indptr[row + 1])
        stored, values = scores.indices[part].astype(np.int64), scores.data[part]
        absent = min(picks, width - len(stored))
        ids = np.concatenate([stored, _others(stored, width, absent, rng)])
        before = np.concatenate([values, np.zeros(absent)])
        after = np.concatenate([values + noise(len(stored)), largest(width - len(stored), absent)])
        best = np.argsort(-after)[:picks]
        chosen[row], true[row], noisy[row] = ids[best], before[best], after[best]
    return chosen, true, noisy


def _log_uniform_maxima(size: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Logarithms of the ``count`` largest of ``size`` uniform numbers: each is a root of another below the last."""
    return -np.cumsum(rng.standard_exponential(count) / np.arange(size, size - count, -1))


def _others(stored: IntArray, width: int, count: int, rng: np.random.Generator) -> IntArray:
    """``count`` different candidates that are not stored, uniformly and in random order."""
    if 2 * (len(stored) + count) > width:
        return rng.permutation(np.setdiff1d(np.arange(width), stored))[:count]
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:  # at least half of all candidates are free
        drawn = rng.integers(width, size=2 * count + 8)
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
