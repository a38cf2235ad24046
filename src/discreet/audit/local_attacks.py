"""Attacks on reports: one record at either end of the public range, and the exact likelihood of what it reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.audit.attacks import Array, Attack, FloatArray, Seen, register_attack
from discreet.mechanisms import local_stages
from discreet.mechanisms.additive_reports import LaplaceReports
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.multi_bit import MultiBit
from discreet.privacy.plan import Stage


def _ends(stage: Stage) -> tuple[Array, Array]:
    """All features of one record at the lower end, against all at the upper; other records say nothing."""
    encoder = local_stages.encoder_of(stage)
    one = np.full(stage.shape, encoder.middle)
    two = one.copy()
    one[0], two[0] = encoder.feature_range
    return one, two


def _classes(stage: Stage) -> tuple[Array, Array]:
    one = np.zeros(stage.shape)
    two = one.copy()
    two[0] = 1.0
    return one, two


def _feature_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    """Over the records that differ; all others cancel."""
    encoder = local_stages.encoder_of(stage)
    rows = np.flatnonzero((one != two).any(axis=1))
    reports = seen.answers.reshape(-1, *stage.shape)[:, rows]
    a, b = one[rows] - encoder.middle, two[rows] - encoder.middle
    if isinstance(encoder, MultiBit):
        first, second = (encoder.chance_of_plus(value[rows]) for value in (one, two))
        plus, minus = np.log(first / second), np.log((1 - first) / (1 - second))
        return np.asarray(np.where(reports > 0, plus, np.where(reports < 0, minus, 0.0)).sum(axis=(1, 2)))
    if isinstance(encoder, LaplaceReports):
        return np.asarray((np.abs(reports - b) - np.abs(reports - a)).sum(axis=(1, 2)) / encoder.laplace_scale)
    return np.asarray(((reports - (a + b) / 2) * (a - b)).sum(axis=(1, 2)) / encoder.noise_std**2)


def _label_log_ratio(stage: Stage, seen: Seen, one: Array, two: Array) -> FloatArray:
    table = np.log(local_stages.response_of(stage).confusion())
    rows = np.flatnonzero(one != two)
    reports = seen.answers[:, rows].astype(np.int64)
    return np.asarray((table[one[rows].astype(int), reports] - table[two[rows].astype(int), reports]).sum(axis=1))


def _ask(curator: Curator, stage: Stage, value: Array) -> Array:
    answer: Any = curator.measure(stage.name, value)
    return np.asarray(answer if isinstance(answer, np.ndarray) else answer.toarray())


for _name in local_stages.FEATURES:
    register_attack(_name, Attack(_ends, _feature_log_ratio, ask=_ask, continuous=False))
register_attack(local_stages.LABELS, Attack(_classes, _label_log_ratio, ask=_ask, continuous=False))
