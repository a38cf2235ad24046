"""Mechanisms of which one figure is known and no more: (ε, δ), ρ, or nothing at all."""

from __future__ import annotations

import attr
import numpy as np
from dp_accounting.dp_event import DpEvent, ZCDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.arrays import FloatArray
from discreet.privacy.events.grids import PLD_INTERVAL, RDP_ORDERS


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ApproximateDpEvent(DpEvent):  # type: ignore[misc]
    """A black box that is (ε, δ)-differentially private and of which nothing more is known.

    With ε = 0 it stands for an event of probability δ in which some other bound does not hold.
    """

    epsilon: float
    delta: float


def black_box_pld(event: ApproximateDpEvent, count: int) -> pld.PrivacyLossDistribution:
    """The distribution that dominates every (ε, δ) mechanism, composed with itself."""
    # dp_accounting rounds the two atoms of this distribution to its grid pessimistically.
    one = pld.from_privacy_parameters(
        pld.common.DifferentialPrivacyParameters(event.epsilon, event.delta),
        value_discretization_interval=PLD_INTERVAL,
    )
    return one.self_compose(count)


def black_box_curve(event: ApproximateDpEvent) -> FloatArray:
    """Rényi divergences outside the event of probability δ, which the accountant sets aside."""
    return pure_curve(event.epsilon)


def pure_curve(epsilon: float) -> FloatArray:
    """Rényi divergence of a pure ε mechanism: that of randomised response with two outcomes (Mironov 2017).

    Its (α − 1)-fold is ln((e^{αε} + e^{(1−α)ε})/(1 + e^ε)) = ln(1 + (e^{αε} − 1)(1 − e^{(1−α)ε})/(1 + e^ε)). In the
    latter nothing cancels; in the former, for a small ε, what is left is rounding, and many runs add it up.
    """
    a = RDP_ORDERS
    near = np.minimum(epsilon, 1 / a)
    small = np.log1p(np.expm1(a * near) * -np.expm1((1 - a) * near) / (1 + np.exp(near)))
    large = (a - 1) * epsilon + np.log1p(np.exp((1 - 2 * a) * epsilon)) - np.log1p(np.exp(-epsilon))
    return np.asarray(np.minimum(np.where(epsilon < 1 / a, small, large) / (a - 1), epsilon), dtype=np.float64)


def black_box_for_two(event: ApproximateDpEvent) -> ApproximateDpEvent | None:
    """A bound that fails with probability δ fails with at most 2δ; a box with an ε of its own has no rule."""
    return ApproximateDpEvent(0.0, min(1.0, 2 * event.delta)) if event.epsilon == 0 else None


def scaled_zcdp(event: ZCDpEvent, factor: float) -> ZCDpEvent:
    """ρ falls with the square of the noise."""
    return attr.evolve(event, rho=event.rho / factor**2)
