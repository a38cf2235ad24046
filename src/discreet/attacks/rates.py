"""How well scores tell two groups apart: area under the ROC curve and true-positive rates, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import beta, norm, rankdata

from discreet.arrays import BoolArray, FloatArray
from discreet.errors import ParameterError

FALSE_POSITIVE_RATES = (0.01, 0.001)
"""At which hits are counted: an attack that accuses many who are innocent tells little of anyone."""
CONFIDENCE = 0.95
"""Two-sided, for every interval that a report of attacks prints."""


@dataclass(frozen=True)
class Rates:
    """What one attack reached. ``tpr_at_fpr`` holds (rate, lower, upper) by false-positive rate."""

    auc: float
    auc_interval: tuple[float, float]
    tpr_at_fpr: dict[float, tuple[float, float, float]]
    advantage: float
    pairs: int
    extra: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "auc": self.auc,
            "auc_interval": list(self.auc_interval),
            "tpr_at_fpr": {f"{rate:g}": found[0] for rate, found in self.tpr_at_fpr.items()},
            "tpr_intervals": {f"{rate:g}": list(found[1:]) for rate, found in self.tpr_at_fpr.items()},
            "advantage": self.advantage,
            "pairs": self.pairs,
            **self.extra,
        }


def rates_of(scores: FloatArray, positive: BoolArray, **extra: Any) -> Rates:
    """How well high scores mean ``positive``. A score that is no number counts as the lowest."""
    if len(scores) != len(positive) or positive.all() or not positive.any():
        raise ParameterError("an attack is measured on scores of both kinds, one score for each")
    cleaned = np.nan_to_num(np.asarray(scores, dtype=np.float64), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    hits, alarms = cleaned[positive], cleaned[~positive]
    area = _area(hits, alarms)
    return Rates(
        area,
        _area_interval(area, len(hits), len(alarms)),
        {rate: _at(hits, alarms, rate) for rate in FALSE_POSITIVE_RATES},
        _advantage(hits, alarms),
        len(scores),
        extra,
    )


def proportion_interval(hits: int, tries: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Clopper and Pearson's interval for a proportion."""
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, hits, tries - hits + 1)) if hits else 0.0
    high = float(beta.isf(tail, hits + 1, tries - hits)) if hits < tries else 1.0
    return low, high


def _area(hits: FloatArray, alarms: FloatArray) -> float:
    """The probability that a positive scores above a negative, ties counted as halves."""
    ranks = rankdata(np.concatenate([hits, alarms]))[: len(hits)]
    return float((ranks.sum() - len(hits) * (len(hits) + 1) / 2) / (len(hits) * len(alarms)))


def _area_interval(area: float, positives: int, negatives: int) -> tuple[float, float]:
    """Hanley and McNeil's (1982) normal interval."""
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (positives - 1) * (one - area**2) + (negatives - 1) * (two - area**2)
    half = float(norm.isf((1 - CONFIDENCE) / 2)) * math.sqrt(max(variance, 0.0) / (positives * negatives))
    return max(0.0, area - half), min(1.0, area + half)


def _at(hits: FloatArray, alarms: FloatArray, rate: float) -> tuple[float, float, float]:
    """The true-positive rate where at most a share ``rate`` of the negatives lies above the threshold."""
    allowed = int(rate * len(alarms))
    threshold = np.sort(alarms)[::-1][allowed]
    found = int((hits > threshold).sum())
    return (found / len(hits), *proportion_interval(found, len(hits)))


def _advantage(hits: FloatArray, alarms: FloatArray) -> float:
    """The largest difference between true- and false-positive rate over all thresholds."""
    cuts = np.unique(np.concatenate([hits, alarms]))
    above = [len(side) - np.searchsorted(np.sort(side), cuts, side="right") for side in (hits, alarms)]
    return float(max(0.0, (above[0] / len(hits) - above[1] / len(alarms)).max()))
