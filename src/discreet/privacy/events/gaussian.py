"""The Gaussian mechanism in closed form: exact δ(ε), exact ε(δ), exact noise (Balle and Wang, 2018); and the privacy
losses of two Gaussian mixtures that lie on opposite sides of zero.

P = Σ p_i N(+i, λ²) against Q = Σ q_j N(−j, λ²), i, j = 0, 1, 2, …: the pairs that dominate DP-SGD when one
person stands in several examples. The log-likelihood ratio log P/Q rises with t, because the posterior
mean of the component under P is never below that under Q, so each loss is met at one t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from dp_accounting.dp_event import GaussianDpEvent
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import binom

from discreet.arrays import FloatArray
from discreet.privacy.events.grids import LARGEST_LOSS, PLD_INTERVAL, RDP_ORDERS, everything_lost, hopeless


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
    # A root far below 1 is found by halving: 1075 halvings lead through all doubles.
    root = float(brentq(lambda m: gaussian_delta(m, epsilon) - delta, 0.0, high, xtol=1e-300, rtol=1e-14, maxiter=2000))
    return 1 / _nudge_up(1 / root, lambda inverse: gaussian_delta(1 / inverse, epsilon) <= delta)


def _nudge_up(value: float, holds: Callable[[float], bool]) -> float:
    """The root finder may stop a hair on the wrong side; walk up until the bound holds in fact."""
    step = 1e-15
    while not holds(value):
        value *= 1 + step
        step *= 2
    return value


# -------------------------------------------------------------------- pairs of mixtures

TAIL_DEVIATIONS = 9.5
"""Beyond it a normal variable has less than 1.1e-21 of its mass, which is charged as infinite loss."""

_COARSE_POINTS = 4001
"""Of the grid that Newton starts from; its answers do not depend on it."""
_CHUNK = 1 << 15
"""Losses that are solved at once, so that memory stays small."""


@dataclass(frozen=True)
class OppositeMixtures:
    """The pair: ``up`` are the weights of N(+i, λ²) in P, ``down`` those of N(−j, λ²) in Q."""

    up: FloatArray
    down: FloatArray
    deviation: float

    def loss(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log P(t)/Q(t), and its derivative."""
        log_p, slope_p = _log_mixture(self.up, t, self.deviation)
        log_q, slope_q = _log_mixture(self.down, -t, self.deviation)
        return log_p - log_q, slope_p + slope_q

    def masses(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P and Q of the intervals between rising edges, each accurate relative to its own size."""
        p = _interval_masses(self.up, edges, self.deviation)
        q = _interval_masses(self.down, -edges[::-1], self.deviation)[::-1]
        return p, q

    def delta(self, epsilon: float) -> float:
        """H(P‖Q) at e^ε, straight from the definition: P(t ≥ τ) − e^ε·Q(t ≥ τ) where the loss at τ is ε."""
        grid = self._grid(reach=38.0)
        threshold = self._solve(np.array([epsilon]), grid)
        p, q = self.masses(np.concatenate([[-np.inf], threshold, [np.inf]]))
        return float(max(0.0, p[1] - np.exp(epsilon) * q[1]))

    def mean_loss(self) -> float:
        """E_P[log P/Q], roughly: to tell hopeless cases before any work is done."""
        t = self._grid(TAIL_DEVIATIONS)[::5]
        density = np.exp(_log_mixture(self.up, t, self.deviation)[0])
        return float(self.loss(t)[0] @ density / density.sum())

    def pmf(self, interval: float, spare: float = 0.0) -> pld_pmf.DensePLDPmf:
        """The loss under P on a grid, pessimistic, with ``spare`` mass at infinity beside the tail.

        Guarantee: its δ(ε) is at least the pair's for every ε. Between two grid losses a < b the
        interval's P- and Q-mass go to the two ends so that both are kept; H is the expectation under Q of
        a convex function of the likelihood ratio, so moving the ratio to the ends, at the same mean, can
        only raise it (the "connect the dots" construction of Doroshenko et al., 2022, written with interval
        masses, which keeps tails accurate). Mass below the grid is moved up to it; mass above is infinite.
        """
        grid = self._grid(TAIL_DEVIATIONS)
        attained = self.loss(grid[[0, -1]])[0]
        low, high = np.clip(attained, -LARGEST_LOSS, LARGEST_LOSS)
        first, last = int(np.floor(low / interval)), int(np.ceil(high / interval))
        losses = np.arange(first, last + 1, dtype=np.float64) * interval
        edges = self._solve(losses, grid)
        below, probs, above = self._split(edges, losses, interval)
        probs[0] += below
        scale = 1.0 - spare
        return pld_pmf.DensePLDPmf(interval, first, probs * scale, above * scale + spare, True)

    def _split(self, edges: FloatArray, losses: FloatArray, interval: float) -> tuple[float, FloatArray, float]:
        p, q = self.masses(np.concatenate([[-np.inf], edges, [np.inf]]))
        inside_p, inside_q = p[1:-1], q[1:-1]
        right = (inside_p - np.exp(losses[:-1]) * inside_q) / -np.expm1(-interval)
        right = np.clip(right, 0.0, inside_p)
        probs = np.zeros(len(losses))
        probs[1:] += right
        probs[:-1] += inside_p - right
        return float(p[0]), probs, float(p[-1])

    def _grid(self, reach: float) -> FloatArray:
        """Points over all components, ``reach`` standard deviations beyond the outermost."""
        width = reach * self.deviation
        return np.linspace(-width, _top(self.up) + width, _COARSE_POINTS)

    def _solve(self, losses: FloatArray, grid: FloatArray) -> FloatArray:
        """The t in the grid's range at which each of the rising losses is met; its end for a loss beyond it."""
        value = np.maximum.accumulate(self.loss(grid)[0])
        right = np.clip(np.searchsorted(value, losses), 1, len(grid) - 1)
        parts = [self._newton(losses[i : i + _CHUNK], grid, value, right[i : i + _CHUNK]) for i in _chunks(losses)]
        return np.maximum.accumulate(np.concatenate(parts))

    def _newton(
        self, losses: FloatArray, grid: FloatArray, value: FloatArray, right: npt.NDArray[np.intp]
    ) -> FloatArray:
        """Newton from linear interpolation, kept inside the bracket that the grid gives."""
        low, high = grid[right - 1], grid[right]
        span = np.maximum(value[right] - value[right - 1], np.finfo(np.float64).tiny)
        t = np.clip(low + (high - low) * (losses - value[right - 1]) / span, low, high)
        for _ in range(20):
            found, slope = self.loss(t)
            moved = np.clip(t + (losses - found) / np.maximum(slope, np.finfo(np.float64).tiny), low, high)
            settled = np.abs(moved - t) <= 1e-12 * self.deviation
            t = moved
            if settled.all():
                break
        return t


def binomial_head(trials: int, probability: float, spare: float) -> tuple[FloatArray, float]:
    """Weights of Bin(trials, probability) on 0 … m, rescaled to sum to one, and the mass ≤ ``spare`` beyond m."""
    counts = np.arange(trials + 1)
    beyond = binom.sf(counts, trials, probability)
    last = int(np.argmax(beyond <= spare))
    weights = binom.pmf(counts[: last + 1], trials, probability)
    return weights / weights.sum(), float(beyond[last])


def _top(weights: FloatArray) -> int:
    return int(np.flatnonzero(weights)[-1])


def _chunks(values: FloatArray) -> range:
    return range(0, len(values), _CHUNK)


def _log_mixture(weights: FloatArray, t: FloatArray, deviation: float) -> tuple[FloatArray, FloatArray]:
    """log Σ w_i N(t; i, λ²) without its constant, and the derivative of it, by t."""
    used = np.flatnonzero(weights)
    exponent = np.log(weights[used]) - 0.5 * ((t[:, None] - used) / deviation) ** 2
    log_density = logsumexp(exponent, axis=1)
    mean = np.exp(exponent - log_density[:, None]) @ used
    return log_density, (mean - t) / deviation**2


def _interval_masses(weights: FloatArray, edges: FloatArray, deviation: float) -> FloatArray:
    """Differences of the distribution function on the left and of the survival function on the right."""
    below = np.zeros(len(edges))
    above = np.zeros(len(edges))
    for i in np.flatnonzero(weights):
        z = (edges - i) / deviation
        below += weights[i] * ndtr(z)
        above += weights[i] * ndtr(-z)
    left = np.diff(below)
    right = -np.diff(above)
    return np.maximum(np.where(above[:-1] > 0.5, left, right), 0.0)
