"""The Gaussian mechanism in closed form: exact δ(ε), exact ε(δ), exact noise (Balle and Wang, 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from dp_accounting.dp_event import GaussianDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.optimize import brentq
from scipy.special import log_ndtr

from discreet.arrays import FloatArray
from discreet.privacy.events.gaussian_pairs import OppositeMixtures
from discreet.privacy.events.grids import PLD_INTERVAL, RDP_ORDERS, everything_lost, hopeless


def gaussian_variance(event: GaussianDpEvent) -> float:
    """σ²/Δ²: k Gaussians compose to one whose inverse is the sum of their inverses."""
    return float(event.noise_multiplier**2)


def gaussian_pld(event: GaussianDpEvent, count: int) -> pld.PrivacyLossDistribution:
    """The distribution of the one Gaussian that ``count`` of them are: the same both ways round, and pessimistic.

    (``OppositeMixtures`` has the proof. dp_accounting's own answers agree to eleven digits, a Python call per point of
    the grid at a time.)
    """
    if hopeless(1 / (2 * event.noise_multiplier**2), count):
        return everything_lost()
    pair = OppositeMixtures(np.array([0.0, 1.0]), np.array([1.0]), event.noise_multiplier / math.sqrt(count))
    return pld.PrivacyLossDistribution(pair.pmf(PLD_INTERVAL))


def gaussian_curve(event: GaussianDpEvent) -> FloatArray:
    """Rényi divergences α/(2σ²) at :data:`RDP_ORDERS`."""
    curve: FloatArray = RDP_ORDERS / (2 * event.noise_multiplier**2)
    return curve


# -------------------------------------------------------------------- closed form


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) of N(μ, 1) against N(0, 1): Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ), without cancellation in the tails."""
    if mu == 0:
        return -math.expm1(epsilon) if epsilon < 0 else 0.0
    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least ε ≥ 0 with δ(ε) ≤ delta, rounded up."""
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if delta <= 0:
        return math.inf  # no Gaussian is pure; δ(ε) only underflows
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    root = float(brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, high, xtol=1e-14, rtol=1e-14))
    return _nudge_up(root, lambda e: gaussian_delta(mu, e) <= delta)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ = Δ/σ that is (ε, δ)-private, rounded down: the noise is σ = Δ/μ."""
    high = 1.0
    while gaussian_delta(high, epsilon) <= delta:
        high *= 2
    root = float(brentq(lambda m: gaussian_delta(m, epsilon) - delta, 0.0, high, xtol=1e-300, rtol=1e-14))
    return 1 / _nudge_up(1 / root, lambda inverse: gaussian_delta(1 / inverse, epsilon) <= delta)


def _nudge_up(value: float, holds: Callable[[float], bool]) -> float:
    """The root finder may stop a hair on the wrong side; walk up until the bound holds in fact."""
    step = 1e-15
    while not holds(value):
        value *= 1 + step
        step *= 2
    return value
