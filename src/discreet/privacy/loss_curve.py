"""What ε and δ mean for a guess: the whole curve δ(ε) of an event, and how sure somebody can become.

Everything here is an upper bound for both orders of the neighbours; for Gaussians it is exact. The trade-off curve of
attacks is in :mod:`discreet.privacy.tradeoff`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from dp_accounting.dp_event import DpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp
from scipy.special import ndtr

from discreet.arrays import FloatArray
from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.accountants import basic_epsilon, composed_losses, composed_mu, pld_rounding
from discreet.privacy.events.gaussian import gaussian_delta
from discreet.privacy.events.grids import RDP_ORDERS
from discreet.privacy.events.node_sampling import before_sampling

_STEPS = np.geomspace(1e-3, 4.0, 40)
"""The h that :meth:`LossCurve.exceeds` tries: each of them gives a bound, and the least is taken."""


@dataclass(frozen=True)
class LossCurve:
    """The privacy loss of an event. Both functions return 1 where nothing better is known."""

    event: DpEvent

    def delta(self, epsilon: float) -> float:
        """The least δ that is proved at this ε ≥ 0."""
        return self.deltas((epsilon,))[0]

    def deltas(self, epsilons: Sequence[float]) -> list[float]:
        """:meth:`delta` at each of these ε, which ascend; a long distribution is gone through once for all of them."""
        if self._sampling < 1:
            inner = [before_sampling(epsilon, 0.0, self._sampling)[0] for epsilon in epsilons]
            return [self._sampling * delta for delta in LossCurve(self._rest).deltas(inner)]
        if self._mu is not None:
            mu = self._mu
            return [1.0 if math.isinf(mu) else gaussian_delta(mu, epsilon) for epsilon in epsilons]
        found = np.ones(len(epsilons))
        if self._losses is not None:
            found = np.minimum(found, _deltas_of(self._losses, np.array(epsilons)) + pld_rounding(self._rest))
        if self._curve is not None and np.isfinite(self._curve).any():
            orders = self._curve
            found = np.minimum(found, [float(rdp.compute_delta(RDP_ORDERS, orders, e)[0]) for e in epsilons])
        pure = basic_epsilon(self._rest, 0.0)
        return [
            0.0 if pure is not None and epsilon >= pure else float(delta)
            for epsilon, delta in zip(epsilons, found, strict=True)
        ]

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
        steps = [float(h) for h in reversed(_STEPS) if h <= epsilon]
        found = self.deltas([epsilon - h for h in steps])
        return min([1.0, *(delta / -math.expm1(-h) for h, delta in zip(steps, found, strict=True))])

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


def _deltas_of(losses: pld.PrivacyLossDistribution, epsilons: FloatArray) -> FloatArray:
    """δ at each ε, for the worse order of the neighbours; as ``get_delta_for_epsilon`` of each, but for rounding.

    δ(ε) = Σ p·(1 − exp(ε − l)) over the losses l > ε. Losses between one ε and the next, ε′, are summed once, into
    S = Σ p·(1 − exp(ε′ − l)) and Q = Σ p·exp(ε′ − l): to an ε further below they add S + Q·(1 − exp(ε − ε′)). No
    term is negative, so nothing cancels, and the rounding is far below what ``pld_rounding`` sets aside.
    """
    both = [losses._pmf_remove] if losses._symmetric else [losses._pmf_remove, losses._pmf_add]
    return np.max([_deltas_of_order(order.to_dense_pmf(), epsilons) for order in both], axis=0)  # type: ignore[no-any-return]


def _deltas_of_order(order: Any, epsilons: FloatArray) -> FloatArray:
    values = (np.arange(order.size) + order._lower_loss) * order._discretization
    ends = np.append(np.searchsorted(values, epsilons, side="right"), order.size)
    sums, rests = np.zeros(len(epsilons)), np.zeros(len(epsilons))
    for place, epsilon in enumerate(epsilons):
        block = slice(ends[place], ends[place + 1])
        sums[place] = np.dot(order._probs[block], -np.expm1(epsilon - values[block]))
        rests[place] = np.dot(order._probs[block], np.exp(epsilon - values[block]))
    apart = -np.expm1(np.minimum(epsilons[:, None] - epsilons[None, :], 0.0))
    above = np.triu(np.ones((len(epsilons), len(epsilons))))
    found: FloatArray = order._infinity_mass + above @ sums + (above * apart) @ rests
    return found


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
    return 1 / (1 + (1 - before) / before * math.exp(-min(epsilon, 700.0)))  # e⁷¹⁰ overflows
