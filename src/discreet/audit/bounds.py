"""From two samples of a statistic to an ε that the mechanism cannot be better than.

An (ε, δ)-private mechanism admits no test whose true rate exceeds e^ε times its false rate plus δ, whichever of
two neighbours is the alarm. So a test with a proven true rate and a proven false rate proves a lower bound on ε.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, norm

from discreet.arrays import FloatArray, IntArray
from discreet.errors import ParameterError
from discreet.privacy.events.gaussian import gaussian_epsilon

LEAST_RUNS = 20
"""In the half that proves: with fewer the interval is too wide to refute anything."""
_THRESHOLDS = 400
"""Candidates that the first half chooses from; the second half tests one, so their number costs no confidence."""


@dataclass(frozen=True)
class LowerBound:
    """ε is at least :attr:`epsilon`, but for a probability of ``alpha``.

    ``hits`` and ``alarms`` are how often the chosen test fired on either side among ``judged`` runs of each.
    ``epsilon_if_gaussian`` is the tighter figure that holds *if* the mechanism is a Gaussian one, and only then; None
    where it does not even claim to be.
    """

    epsilon: float
    epsilon_if_gaussian: float | None
    statistic: str
    hits: int
    alarms: int
    judged: int
    delta: float
    alpha: float

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def epsilon_lower_bound(
    one: Mapping[str, FloatArray],
    two: Mapping[str, FloatArray],
    delta: float,
    alpha: float,
    *,
    gaussian: bool = False,
    learned: int = 0,
) -> LowerBound:
    """The ε that the best test of any of these statistics proves; ``one`` and ``two`` come from two neighbours.

    Guarantee: if the mechanism is (ε, δ)-private, the bound exceeds ε with probability at most ``alpha``, whatever
    the statistics are and however their values are distributed, as long as runs are independent. The
    statistic, the side that is the alarm, and the threshold are chosen on the first half of the runs; the second
    half is used once, with Clopper–Pearson limits at alpha/2 on each of the two rates. Statistics that were learned
    from the first ``learned`` runs are not compared on those, where they look too good.
    """
    names = list(one)
    if not names or names != list(two):
        raise ParameterError("both sides need the same statistics, at least one")
    runs = len(one[names[0]])
    half = runs // 2
    if any(len(side[name]) != runs for side in (one, two) for name in names) or half - learned < LEAST_RUNS:
        raise ParameterError(f"both sides need the same number of runs, at least {2 * (LEAST_RUNS + learned)}")
    found = [_choose(name, one[name][learned:half], two[name][learned:half], delta, alpha) for name in names]
    plain = max(found, key=lambda choice: choice.plain)
    smooth = max(found, key=lambda choice: choice.smooth)
    hits, alarms, judged = plain.test.count(one, two, half)
    return LowerBound(
        max(0.0, _proved(hits, alarms, judged, delta, alpha)),
        _proved_if_gaussian(*smooth.smooth_test.count(one, two, half), delta, alpha) if gaussian else None,
        str(plain.test),
        hits,
        alarms,
        judged,
        delta,
        alpha,
    )


# -------------------------------------------------------------------- choosing a test on the first half


@dataclass(frozen=True)
class _Test:
    """Fires where sign·statistic exceeds the threshold; ``swapped`` makes the second side the one to be hit."""

    statistic: str
    sign: float
    threshold: float
    swapped: bool

    def count(self, one: Mapping[str, FloatArray], two: Mapping[str, FloatArray], half: int) -> tuple[int, int, int]:
        """Hits, alarms and runs of each side in the second half."""
        fired = [int((self.sign * side[self.statistic][half:] > self.threshold).sum()) for side in (one, two)]
        hits, alarms = reversed(fired) if self.swapped else fired
        return hits, alarms, len(one[self.statistic]) - half

    def __str__(self) -> str:
        sense = "above" if self.sign > 0 else "below"
        return f"{self.statistic} {sense} {self.sign * self.threshold:.4g}"


@dataclass(frozen=True)
class _Choice:
    plain: float
    test: _Test
    smooth: float
    smooth_test: _Test


def _choose(name: str, one: FloatArray, two: FloatArray, delta: float, alpha: float) -> _Choice:
    """The tests that would prove most on these runs: without assumptions, and if the mechanism is Gaussian."""
    best = _Choice(-math.inf, _Test(name, 1.0, 0.0, False), -math.inf, _Test(name, 1.0, 0.0, False))
    for sign in (1.0, -1.0):
        for swapped in (False, True):
            hit, alarm = (two, one) if swapped else (one, two)
            cuts = _thresholds(sign * hit, sign * alarm)
            hits, alarms = (_above(sign * side, cuts) for side in (hit, alarm))
            low, high = _limits(hits, alarms, len(hit), alpha)
            with np.errstate(divide="ignore", invalid="ignore"):
                plain = np.where(low > delta, np.log((low - delta) / high), -np.inf)
            smooth = norm.ppf(low) - norm.ppf(high)
            tests = [_Test(name, sign, float(cuts[int(np.argmax(score))]), swapped) for score in (plain, smooth)]
            if plain.max() > best.plain:
                best = _Choice(float(plain.max()), tests[0], best.smooth, best.smooth_test)
            if smooth.max() > best.smooth:
                best = _Choice(best.plain, best.test, float(smooth.max()), tests[1])
    return best


def _thresholds(hit: FloatArray, alarm: FloatArray) -> FloatArray:
    """Quantiles of both samples, dense in the tails, where small false rates live."""
    share = 1 / (1 + np.exp(-np.linspace(-8, 8, _THRESHOLDS)))
    cuts = np.unique(np.concatenate([np.quantile(hit, share), np.quantile(alarm, share)]))
    # A threshold on an atom excludes it; one just below takes it in.
    return np.unique(np.concatenate([cuts, np.nextafter(cuts, -np.inf)]))


def _above(values: FloatArray, cuts: FloatArray) -> IntArray:
    return len(values) - np.searchsorted(np.sort(values), cuts, side="right")


# -------------------------------------------------------------------- judging it on the second


def _limits(hits: IntArray | int, alarms: IntArray | int, runs: int, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Clopper–Pearson: the true rate is above the first and the false rate below the second, each but for alpha/2."""
    hits, alarms = np.asarray(hits), np.asarray(alarms)
    low = np.where(hits > 0, beta.ppf(alpha / 2, np.maximum(hits, 1), runs - hits + 1), 0.0)
    high = np.where(alarms < runs, beta.isf(alpha / 2, alarms + 1, np.maximum(runs - alarms, 1)), 1.0)
    return low, high


def _proved(hits: int, alarms: int, runs: int, delta: float, alpha: float) -> float:
    low, high = (float(limit) for limit in _limits(hits, alarms, runs, alpha))
    return math.log((low - delta) / high) if low > delta else -math.inf


def _proved_if_gaussian(hits: int, alarms: int, runs: int, delta: float, alpha: float) -> float:
    """Between N(0, 1) and N(μ, 1) a test's rates are Φ(−t) and Φ(μ − t), so limits on both give one on μ, and μ ε."""
    low, high = (float(limit) for limit in _limits(hits, alarms, runs, alpha))
    mu = float(norm.ppf(low) - norm.ppf(high))
    return gaussian_epsilon(mu, delta) if mu > 0 else 0.0
