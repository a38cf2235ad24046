"""The most that any attack can reach against an event: its trade-off curve, an upper bound on every ROC curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from dp_accounting.dp_event import DpEvent

from discreet.arrays import FloatArray
from discreet.privacy.loss_curve import LossCurve

EPSILONS = (0.0, *(float(epsilon) for epsilon in np.geomspace(1e-3, 60.0, 150)))
"""Where the curve is computed: each ε gives one valid bound, and the least of them is used."""
_STEPS = 10_000
"""Of the sum that stands for the area under the curve."""


@dataclass(frozen=True)
class TradeOff:
    """Pairs (ε, δ) that all hold for one event.

    Guarantee. Let an attack tell two neighbours apart, with true-positive rate t at false-positive rate f. Each pair
    gives t ≤ e^ε·f + δ, and with the roles of the neighbours exchanged 1 − f ≤ e^ε·(1 − t) + δ, so
    t ≤ 1 − e^(−ε)·(1 − δ − f). Both hold for every pair, whatever the attack computes (Wasserman and Zhou 2010; Dong,
    Roth and Su 2022). More pairs bring the curve closer to the exact one, always from above.
    """

    pairs: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, event: DpEvent) -> TradeOff:
        """The curve of an event, from the least δ that is proved at each of :data:`EPSILONS`."""
        return cls(tuple(zip(EPSILONS, LossCurve(event).deltas(EPSILONS), strict=True)))

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """The most that the true-positive rate of any attack can be at this false-positive rate."""
        return float(self.true_positive_rates(np.array([false_positive_rate]))[0])

    def area(self) -> float:
        """The most that the area under the ROC curve of any attack can be, rounded up (the curve never falls)."""
        return float(self.true_positive_rates(np.arange(1, _STEPS + 1) / _STEPS).mean())

    def true_positive_rates(self, rates: FloatArray) -> FloatArray:
        """:meth:`true_positive_rate` at each of these false-positive rates."""
        best = np.ones_like(rates)
        for epsilon, delta in self.pairs:
            if math.isinf(epsilon):
                continue
            with np.errstate(over="ignore"):
                first = np.exp(epsilon) * rates + delta
            second = 1 - math.exp(-epsilon) * np.maximum(1 - delta - rates, 0)
            best = np.minimum(best, np.minimum(first, second))
        return best
