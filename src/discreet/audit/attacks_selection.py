"""Attacks on picks of the largest entries: scores that pull the picks apart as far as their clip allows."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr
from scipy.stats import laplace

from discreet.arrays import Array, FloatArray, IntArray
from discreet.audit.attacks import Attack, Seen, register_attack
from discreet.mechanisms import topk
from discreet.privacy.plan import Stage


def _all_or_the_others(stage: Stage) -> tuple[Array, Array]:
    """In every row the first K candidates at the clip bound and the others at zero, against the reverse."""
    rows, candidates = stage.shape
    first = np.arange(candidates) < topk.picks_of(stage).picks
    one = np.tile(np.where(first, stage.sensitivity, 0.0), (rows, 1))
    return one, stage.sensitivity - one


def _two_candidates(stage: Stage) -> tuple[Array, Array]:
    """In every row all of the norm on one candidate, against all of it on another."""
    one, two = np.zeros(stage.shape), np.zeros(stage.shape)
    one[:, 0] = two[:, -1] = topk.picks_of(stage).clip
    return one, two


def _split(stage: Stage, seen: Seen) -> tuple[IntArray, FloatArray]:
    answers = seen.answers.reshape(len(seen.answers), stage.shape[0], -1, 2)
    return answers[..., 0].astype(np.int64), answers[..., 1]


# -------------------------------------------------------------------- Gumbel, with Laplace values


def _gumbel_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    first, second = (_gumbel_log_likelihood(stage, seen, value.astype(np.float64)) for value in (one, two))
    return first - second


def _gumbel_log_likelihood(stage: Stage, seen: Seen, scores: FloatArray) -> FloatArray:
    """The largest first of scores plus Gumbel noise: one pick after another by their exponentials (Plackett, Luce)."""
    picked, values = _split(stage, seen)
    scale, spread = topk.gumbel_scales(stage)
    rows = np.arange(len(scores))[:, None]
    chosen = scores[rows, picked] / scale
    left = np.tile(scores / scale, (len(picked), 1, 1))
    np.put_along_axis(left, picked, -np.inf, axis=2)
    # what each pick was drawn from: all that is never picked, and the picks from its own place on
    from_last = np.concatenate([_log_sum(left)[..., None], chosen[..., ::-1]], axis=2)
    drawn_from = np.logaddexp.accumulate(from_last, axis=2)[..., :0:-1]
    total = (chosen - drawn_from).sum(axis=(1, 2))
    if spread is not None:
        total -= np.abs(values - scores[rows, picked]).sum(axis=(1, 2)) / spread
    return np.asarray(total)


def _log_sum(logarithms: FloatArray) -> FloatArray:
    """Over the last axis; −∞ where nothing is left."""
    return np.asarray(np.logaddexp.reduce(logarithms, axis=-1))


def _gumbel_noise(stage: Stage, seen: Seen, value: Array) -> FloatArray:
    """What was added to the values of picks; indices alone have nothing added."""
    picked, values = _split(stage, seen)
    spread = topk.gumbel_scales(stage)[1]
    if spread is None:
        return np.empty((len(picked), 0))
    true = np.stack([row[picked[:, number]] for number, row in enumerate(value)], axis=1)
    return np.asarray(((values - true) / spread).reshape(len(picked), -1))


def _laplace(stage: Stage, noise: FloatArray) -> FloatArray:
    return np.asarray(laplace.cdf(noise))


# -------------------------------------------------------------------- Gaussian


def _gaussian_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    first, second = (_gaussian_log_likelihood(stage, seen, value.astype(np.float64)) for value in (one, two))
    return first - second


def _gaussian_log_likelihood(stage: Stage, seen: Seen, scores: FloatArray) -> FloatArray:
    """Picked entries have their noisy values; all others lie below the least of them. (Constants cancel in a ratio.)"""
    picked, values = _split(stage, seen)
    rows = np.arange(len(scores))[:, None]
    below = log_ndtr((values.min(axis=2)[..., None] - scores) / stage.noise_std)
    np.put_along_axis(below, picked, 0.0, axis=2)
    noise = (values - scores[rows, picked]) / stage.noise_std
    return np.asarray(below.sum(axis=(1, 2)) - np.square(noise).sum(axis=(1, 2)) / 2)


register_attack(topk.GUMBEL, Attack(_all_or_the_others, _gumbel_log_ratio, _gumbel_noise, _laplace, continuous=False))
register_attack(topk.GAUSSIAN, Attack(_two_candidates, _gaussian_log_ratio))
