"""What ε and δ mean for a guess: the whole curve δ(ε) of an event, and how sure somebody can become.

Everything here is an upper bound for both orders of the neighbours; for Gaussians it is exact. The trade-off curve of
attacks is in :mod:`discreet.privacy.tradeoff`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from dp_accounting.dp_event import DpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp
from scipy.special import ndtr

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.accountants import PLD_ROUNDING, basic_epsilon, composed_losses, composed_mu
from discreet.privacy.events.gaussian import gaussian_delta
from discreet.privacy.events.grids import RDP_ORDERS
from discreet.privacy.events.node_sampling import before_sampling

_STEPS = np.geomspace(1e-3, 4.0, 40)


@dataclass(frozen=True)
class LossCurve:
    """The privacy loss of an event. Both functions return 1 where nothing better is known."""

    event: DpEvent

    def delta(self, epsilon: float) -> float:
        """The least δ that is proved at this ε ≥ 0."""
        if self._sampling < 1:
            inner, _ = before_sampling(epsilon, 0.0, self._sampling)
            return self._sampling * LossCurve(self._rest).delta(inner)
        if self._mu is not None:
            return 1.0 if math.isinf(self._mu) else gaussian_delta(self._mu, epsilon)
        pure = basic_epsilon(self._rest, 0.0)
        if pure is not None and epsilon >= pure:
            return 0.0
        found = [1.0]
        if self._losses is not None:
            runs = sum(count for _, count in events.leaves(self._rest))
            aside = PLD_ROUNDING * (runs if runs > 1 else 0)  # as in pld_epsilon
            found.append(float(self._losses.get_delta_for_epsilon(epsilon)) + aside)
        if self._curve is not None and np.isfinite(self._curve).any():
            found.append(float(rdp.compute_delta(RDP_ORDERS, self._curve, epsilon)[0]))
        return min(found)

    def exceeds(self, epsilon: float) -> float:
        """The probability that the privacy loss of what is released is above ε.

        Guarantee: with L the loss and any h > 0, δ(ε − h) = E[(1 − exp(ε − h − L))₊] ≥ (1 − exp(−h))·P(L ≥ ε); the best
        of several h is taken. For Gaussians P(L > ε) = Φ(μ/2 − ε/μ) is known.
        """
        if self._sampling == 1 and self._mu is not None:
            if self._mu == 0:
                return 0.0
            return 1.0 if math.isinf(self._mu) else float(ndtr(self._mu / 2 - epsilon / self._mu))
        if self.delta(epsilon) == 0:
            return 0.0
        steps = [h for h in _STEPS if h <= epsilon]
        return min([1.0, *(self.delta(epsilon - h) / -math.expm1(-h) for h in steps)])

    @cached_property
    def _split(self) -> tuple[float, DpEvent]:
        return events.split_sampling(self.event)

    @property
    def _sampling(self) -> float:
        return self._split[0]

    @property
    def _rest(self) -> DpEvent:
        return self._split[1]

    @cached_property
    def _mu(self) -> float | None:
        return composed_mu(self._rest)

    @cached_property
    def _losses(self) -> pld.PrivacyLossDistribution | None:
        if any(events.is_free_of_noise(leaf) for leaf, _ in events.leaves(self._rest)):
            return None
        return composed_losses(self._rest)

    @cached_property
    def _curve(self) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
        return events.composed_curve(self._rest)


def for_units(event: DpEvent, doublings: int) -> DpEvent | None:
    """The event when 2^doublings units change at once; None where a part of it has no rule for that."""
    try:
        for _ in range(doublings):
            event = events.for_two_units(event)
    except PrivacyError:
        return None
    return event


def surest(epsilon: float, before: float) -> float:
    """How sure somebody can become who was ``before`` sure, if the privacy loss is at most ε: odds grow by e^ε."""
    if before <= 0 or math.isinf(epsilon):
        return float(before > 0)
    return 1 / (1 + (1 - before) / before * math.exp(-min(epsilon, 700.0)))
