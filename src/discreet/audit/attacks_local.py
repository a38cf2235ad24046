"""Attacks on reports that records make of themselves: one record at one end of the range, against the other."""

from __future__ import annotations

import numpy as np
from scipy.stats import laplace, norm

from discreet.arrays import Array, FloatArray
from discreet.audit.attacks import Attack, Seen, register_attack
from discreet.mechanisms.local import stages as local_stages
from discreet.mechanisms.local.additive_reports import AdditiveReports, LaplaceReports
from discreet.mechanisms.local.multi_bit import MultiBit
from discreet.privacy.plan import Stage
from discreet.queries.reports import LABELS


def _ends_of_the_range(stage: Stage) -> tuple[Array, Array]:
    """The first record all α, against all β; the others are all β, where the law of reports is easiest to check."""
    low, high = local_stages.encoder_of(stage).feature_range
    two = np.full(stage.shape, high)
    one = two.copy()
    one[0] = low
    return one, two


def _two_labels(stage: Stage) -> tuple[Array, Array]:
    one = np.zeros(stage.shape)
    two = one.copy()
    two[0] = 1.0
    return one, two


def _feature_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    encoder = local_stages.encoder_of(stage)
    reports = seen.answers.reshape(len(seen.answers), *stage.shape)
    changed = np.flatnonzero((one != two).any(axis=1))
    total = np.zeros(len(reports))
    for row in changed:
        first, second = (_feature_log_likelihood(encoder, reports[:, row], value[row]) for value in (one, two))
        total += first - second
    return total


def _feature_log_likelihood(encoder: MultiBit | AdditiveReports, reports: FloatArray, record: Array) -> FloatArray:
    """One number per trial, up to what all records share."""
    inside = np.clip(np.asarray(record, dtype=np.float64), *encoder.feature_range)
    if isinstance(encoder, MultiBit):
        plus = encoder.chance_of_plus(inside)
        return np.asarray(np.where(reports > 0, np.log(plus), np.where(reports < 0, np.log1p(-plus), 0.0)).sum(axis=1))
    apart = reports - (inside - encoder.middle)
    if isinstance(encoder, LaplaceReports):
        return np.asarray(-np.abs(apart).sum(axis=1) / encoder.laplace_scale)
    return np.asarray(-(apart**2).sum(axis=1) / (2 * encoder.noise_std**2))


def _label_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    chances = _label_chances(stage)
    reported = seen.answers.astype(np.int64)
    rows = np.arange(reported.shape[1])
    first, second = (chances[value.astype(np.int64)][rows, reported] for value in (one, two))
    return np.asarray(np.log(first / second).sum(axis=1))


def _label_chances(stage: Stage) -> FloatArray:
    """Row: the label, the last row (index −1) for none; column: the report."""
    confusion = local_stages.response_of(stage).confusion()
    return np.vstack([confusion, np.full(confusion.shape[1], 1 / confusion.shape[1])])


# -------------------------------------------------------------------- what was drawn, as uniform numbers


def _uniform(chances: FloatArray, reported: np.ndarray) -> FloatArray:
    """A report among few becomes a uniform number: its place in the distribution function, spread over its atom."""
    upper = np.cumsum(chances, axis=-1)
    at = reported[..., None]
    width = np.take_along_axis(np.broadcast_to(chances, (*reported.shape, chances.shape[-1])), at, axis=-1)[..., 0]
    top = np.take_along_axis(np.broadcast_to(upper, (*reported.shape, chances.shape[-1])), at, axis=-1)[..., 0]
    return np.asarray(top - width * np.random.default_rng().random(reported.shape))


def _label_noise(stage: Stage, seen: Seen, value: Array) -> FloatArray:
    return _uniform(_label_chances(stage)[value.astype(np.int64)], seen.answers.astype(np.int64))


def _feature_noise(stage: Stage, seen: Seen, value: Array) -> FloatArray:
    """One feature a record (a record's reports are not independent of one another: exactly m are chosen)."""
    encoder = local_stages.encoder_of(stage)
    column = stage.shape[1] - 1
    reports = seen.answers.reshape(len(seen.answers), *stage.shape)[:, :, column]
    inside = np.clip(np.asarray(value[:, column], dtype=np.float64), *encoder.feature_range)
    if isinstance(encoder, MultiBit):
        share, plus = encoder.sampled / encoder.width, encoder.chance_of_plus(inside)
        chances = np.stack([share * (1 - plus), np.full(len(plus), 1 - share), share * plus], axis=-1)
        return _uniform(chances, reports.astype(np.int64) + 1)
    apart = reports - (inside - encoder.middle)
    if isinstance(encoder, LaplaceReports):
        return np.asarray(laplace.cdf(apart / encoder.laplace_scale))
    return np.asarray(norm.cdf(apart / encoder.noise_std))


def _as_it_is(stage: Stage, noise: FloatArray) -> FloatArray:
    return noise


for _mechanism in local_stages.FEATURES:
    register_attack(
        _mechanism,
        Attack(
            _ends_of_the_range,
            _feature_log_ratio,
            _feature_noise,
            _as_it_is,
            continuous=_mechanism.endswith(("laplace", "gaussian")),
        ),
    )
register_attack(LABELS, Attack(_two_labels, _label_log_ratio, _label_noise, _as_it_is, continuous=False))
