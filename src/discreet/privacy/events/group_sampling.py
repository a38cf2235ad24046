"""DP-SGD in which one protected unit stands in several examples: the group-subsampled Gaussian.

A step adds the clipped terms of a random batch and noise N(0, σ²) on every coordinate. One unit changes at
most k terms (``group_size``), each of norm at most C before and after; ``noise_multiplier`` is λ = σ/C.
Under the change *replace* all k terms may go anywhere within the ball. Under *null* one of them, the unit's
own example, is present on one side and zero on the other; the remaining k − 1 may go anywhere.

Guarantee (Poisson batches, rate q). Let B be one run of k independent coins of bias q.

    P* = law of Σ B_i c_i + σZ,   Q* = law of −Σ B_i d_i + σZ,   c_i = d_i = C, but d_1 = 0 under null

dominates every pair (P, Q) of such steps on neighbours, in both orders: H_γ(P‖Q) ≤ H_γ(P*‖Q*) and
H_γ(Q‖P) ≤ H_γ(Q*‖P*) for every γ ≥ 0.

Proof. Condition on the coins of all other examples: H_γ is jointly convex, so it is enough to bound it for
each outcome, and their common sum is a translation. So let P be the law of Σ B_i x_i + σZ and Q that of
Σ B_i y_i + σZ with ‖x_i‖ ≤ c_i, ‖y_i‖ ≤ d_i. Take any test A (randomised or not) and put
f(m) = σ·Φ⁻¹(Pr[m + σZ ∈ A]). By the Neyman–Pearson lemma between two Gaussians, f is 1-Lipschitz. Hence for
every outcome S of the coins f(Σ_S x_i) ≤ f(0) + Σ_S c_i and f(Σ_S y_i) ≥ f(0) − Σ_S d_i, and with
τ = −f(0) the rule {t ≥ τ} has P*(t ≥ τ) = E Φ((f(0) + Σ_S c_i)/σ) ≥ P(A) and Q*(t ≥ τ) ≤ Q(A). So
P(A) − γQ(A) ≤ H_γ(P*‖Q*). The other order is the same statement with the roles exchanged, and the mirror
image t → −t. ∎  The bound is attained by collinear gradients, so it is tight. (For *replace* the pair is
that of Schuchardt et al., NeurIPS 2024; for k = 1 under *null* it is the classical pair of Poisson DP-SGD.)

Edge cases: fewer than k terms may change (x_i = y_i = 0 is allowed); an empty batch must still take its
noisy step; the coins must be fresh in every step and independent of everything else; n is public.

Fixed-size batches without replacement: the batch is the same on both graphs, so revealing how many of the
unit's examples it holds can only help the adversary. With j of them the sums differ by at most 2jC (replace;
(2j − 1)C if the unit's own is among them, null), and j is hypergeometric: the DP-GNN paper, Theorem 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import attr
import numpy as np
from dp_accounting.dp_event import DpEvent, GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import logsumexp
from scipy.stats import binom, hypergeom

from discreet.arrays import FloatArray, IntArray
from discreet.errors import PrivacyError
from discreet.privacy.events.fields import check_multiplier, check_probability, check_whole
from discreet.privacy.events.gaussian import OppositeMixtures, binomial_head
from discreet.privacy.events.grids import PLD_INTERVAL, RDP_ORDERS, curve_by_dp_accounting, everything_lost, hopeless

Change = Literal["null", "replace"]

_SPARE = 1e-21
"""Batches that hold more of the unit's examples than a tail of this mass are charged as infinite loss."""


def _check_change(event: Any, field: Any, value: Any) -> None:
    if value not in ("null", "replace"):
        raise PrivacyError(f"change must be null or replace, not {value!r}")


@attr.s(frozen=True, slots=True, auto_attribs=True)
class GroupSampledGaussianDpEvent(DpEvent):  # type: ignore[misc]
    """One noisy step on a Poisson batch in which one unit changes at most ``group_size`` clipped terms.

    ``noise_multiplier`` is σ/C: noise per coordinate over the clip norm of a *single* term, whatever k.
    """

    noise_multiplier: float = attr.ib(validator=check_multiplier)
    sampling_probability: float = attr.ib(validator=check_probability)
    group_size: int = attr.ib(validator=check_whole)
    change: Change = attr.ib(default="null", validator=_check_change)


@attr.s(frozen=True, slots=True, auto_attribs=True)
class GroupFixedSampledGaussianDpEvent(DpEvent):  # type: ignore[misc]
    """The same step on a batch of ``batch_size`` out of ``dataset_size`` (public) examples, without replacement."""

    noise_multiplier: float = attr.ib(validator=check_multiplier)
    dataset_size: int = attr.ib(validator=check_whole)
    batch_size: int = attr.ib(validator=check_whole)
    group_size: int = attr.ib(validator=check_whole)
    change: Change = attr.ib(default="null", validator=_check_change)

    def __attrs_post_init__(self) -> None:
        """A batch cannot hold more than there is."""
        if self.batch_size > self.dataset_size:
            raise PrivacyError(f"batch_size {self.batch_size} is larger than dataset_size {self.dataset_size}")


def group_for_two(event: Any) -> Any:
    """Two units change at most 2k terms, each anywhere within the clip norm."""
    return attr.evolve(event, group_size=2 * event.group_size, change="replace")


# -------------------------------------------------------------------- Poisson batches


def dominating_pair(event: GroupSampledGaussianDpEvent) -> tuple[OppositeMixtures, OppositeMixtures, float]:
    """(P*, Q*), (Q*, P*) in units of C, and the mass of the coin outcomes left out of both."""
    shared = event.group_size - (event.change == "null")
    common, spare = binomial_head(shared, event.sampling_probability, _SPARE)
    with_own = common
    if event.change == "null":
        with_own = np.convolve(common, [1 - event.sampling_probability, event.sampling_probability])
    forth = OppositeMixtures(with_own, common, event.noise_multiplier)
    back = OppositeMixtures(common, with_own, event.noise_multiplier)
    return forth, back, spare


def _is_classical(event: GroupSampledGaussianDpEvent) -> bool:
    return event.group_size == 1 and event.change == "null"


def _as_classical(event: GroupSampledGaussianDpEvent) -> DpEvent:
    return PoissonSampledDpEvent(event.sampling_probability, GaussianDpEvent(event.noise_multiplier))


def group_poisson_pld(event: GroupSampledGaussianDpEvent, count: int) -> pld.PrivacyLossDistribution:
    """The dominating pair in both orders, composed with itself."""
    forth, back, _ = dominating_pair(event)
    if hopeless(max(forth.mean_loss(), back.mean_loss()), count):
        return everything_lost()
    return _one_poisson_step(event, PLD_INTERVAL).self_compose(count)


@lru_cache(maxsize=8)
def _one_poisson_step(event: GroupSampledGaussianDpEvent, interval: float) -> pld.PrivacyLossDistribution:
    forth, back, spare = dominating_pair(event)
    if event.change == "replace":
        return pld.PrivacyLossDistribution(forth.pmf(interval, spare))
    return pld.PrivacyLossDistribution(forth.pmf(interval, spare), back.pmf(interval, spare))


@lru_cache(maxsize=8)
def group_poisson_curve(event: GroupSampledGaussianDpEvent) -> FloatArray:
    """The coins revealed: looser than the pair, in closed form; the classical bound for k = 1 under null."""
    if _is_classical(event):
        curve = curve_by_dp_accounting(_as_classical(event))
        return np.full_like(RDP_ORDERS, np.inf) if curve is None else curve
    shared = event.group_size - (event.change == "null")
    hits = np.arange(shared + 1)
    log_weights = binom.logpmf(hits, shared, event.sampling_probability)
    own = event.sampling_probability if event.change == "null" else 0.0
    return _revealed_curve(*_with_own(_doubled(hits), log_weights, own, step=1), event.noise_multiplier)


# -------------------------------------------------------------------- fixed-size batches


def _shifts_of_fixed_batch(event: GroupFixedSampledGaussianDpEvent) -> tuple[FloatArray, FloatArray]:
    """How far the two sums can be apart, in units of C, and the logarithm of each distance's probability."""
    group = min(event.group_size, event.dataset_size)
    hits = np.arange(group + 1)
    log_weights = hypergeom.logpmf(hits, event.dataset_size, group, event.batch_size)
    log_weights = log_weights - logsumexp(log_weights)
    # With more touched than there are examples, a unit that is no example itself can change all of them freely.
    null = event.change == "null" and event.group_size <= event.dataset_size
    own = hits / group if null else 0.0
    return _with_own(_doubled(hits), log_weights, own, step=-1)


def _doubled(hits: IntArray) -> FloatArray:
    return (2 * hits).astype(np.float64)


def _with_own(
    shifts: FloatArray, log_weights: FloatArray, own: FloatArray | float, step: int
) -> tuple[FloatArray, FloatArray]:
    """Split every shift by whether the unit's own example, which moves the sum by one C only, is in the batch."""
    with np.errstate(divide="ignore"):
        present, absent = np.log(own), np.log1p(-np.asarray(own))
    return np.concatenate([shifts, shifts + step]), np.concatenate([log_weights + absent, log_weights + present])


def group_fixed_curve(event: GroupFixedSampledGaussianDpEvent) -> FloatArray:
    """Theorem 1 of the DP-GNN paper: the number of the unit's examples in the batch revealed."""
    return _revealed_curve(*_shifts_of_fixed_batch(event), event.noise_multiplier)


def _revealed_curve(shifts: FloatArray, log_weights: FloatArray, multiplier: float) -> FloatArray:
    """ln Σ w_i·exp(α(α−1)s_i²/2λ²)/(α−1): Rényi divergence when the shift is revealed (the DP-GNN paper, Lemma 4)."""
    orders = RDP_ORDERS[:, None]
    exponent = orders * (orders - 1) * (shifts / multiplier) ** 2 / 2
    return np.asarray(logsumexp(exponent + log_weights, axis=1) / (orders[:, 0] - 1), dtype=np.float64)


def group_fixed_pld(event: GroupFixedSampledGaussianDpEvent, count: int) -> pld.PrivacyLossDistribution:
    """The same by privacy loss distributions, composed with themselves."""
    shifts, log_weights = _shifts_of_fixed_batch(event)
    if hopeless(float(np.exp(log_weights) @ (shifts / event.noise_multiplier) ** 2 / 2), count):
        return everything_lost()
    return _one_fixed_step(event, PLD_INTERVAL).self_compose(count)


@lru_cache(maxsize=8)
def _one_fixed_step(event: GroupFixedSampledGaussianDpEvent, interval: float) -> pld.PrivacyLossDistribution:
    """The same revealed shift, by privacy loss distributions: a mixture of Gaussian ones, symmetric."""
    shifts, log_weights = _shifts_of_fixed_batch(event)
    weights = np.exp(log_weights)
    moved = shifts > 0
    used = moved & (weights > _SPARE)
    losses = [_gaussian_pmf(int(shift), event.noise_multiplier, interval) for shift in shifts[used]]
    at_zero, left_out = float(weights[~moved].sum()), float(weights[moved & ~used].sum())
    return pld.PrivacyLossDistribution(_mixture(losses, weights[used], at_zero, left_out, interval))


def _gaussian_pmf(shift: int, multiplier: float, interval: float) -> pld_pmf.DensePLDPmf:
    """N(+a, λ²) against N(−b, λ²) with a + b the shift: one Gaussian pair, on the grid of this module."""
    up, down = np.zeros(shift + 1), np.zeros(shift + 1)
    up[shift - shift // 2] = down[shift // 2] = 1.0
    return OppositeMixtures(up, down, multiplier).pmf(interval)


def _mixture(
    parts: list[pld_pmf.DensePLDPmf], weights: FloatArray, at_zero: float, infinite: float, interval: float
) -> pld_pmf.DensePLDPmf:
    """Σ w_i·part_i, with ``at_zero`` more at loss 0 and ``infinite`` more at infinity."""
    first = min([0, *(part._lower_loss for part in parts)])
    last = max([0, *(part._lower_loss + part.size - 1 for part in parts)])
    probs = np.zeros(last - first + 1)
    probs[-first] = at_zero
    for part, weight in zip(parts, weights, strict=True):
        start = part._lower_loss - first
        probs[start : start + part.size] += weight * part._probs
        infinite += weight * part._infinity_mass
    return pld_pmf.DensePLDPmf(interval, first, probs, infinite, True)
