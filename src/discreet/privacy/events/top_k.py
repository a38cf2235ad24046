"""One-shot Gumbel top-K selection: the K best of public candidates, by private scores with Gumbel noise.

Every score moves by at most Δ between neighbours, all of them at once and in any directions. Gumbel noise of scale
λΔ is added to each, and the indices of the K largest are released in order; ``noise_multiplier`` is λ.

Guarantee. The K indices are distributed as K exponential mechanisms in turn, each on what is left, with
Pr[j] ∝ exp(s_j/(λΔ)) (Durfee and Rogers 2019, lemma 4.2). For such a pick the privacy loss of outcome j is
(s_j − s′_j)/(λΔ) plus a constant, so its values for different outcomes are at most η = 2/λ apart: the pick has
*bounded range* η. Now let losses lie in [t − η, t] for some t. Among all such pairs the hockey-stick divergence is
largest when only the two ends occur (it is convex in the law of the loss), where both laws must sum to one:
p = (e^η − e^t)/(e^η − 1) for loss t, and δ_t(ε) = p(1 − e^{ε−t}). Over t it is largest at t = (η + ε)/2:

    δ(ε) = (e^{η/2} − e^{ε/2})² / (e^η − 1)   for −η ≤ ε ≤ η,

1 − e^ε below and 0 above (Dong, Durfee and Rogers 2020, for one mechanism). This is a decreasing convex function of
e^ε, so some pair of laws has it as its own profile, and that pair dominates every pick, in both orders; dominating
pairs compose adaptively (Zhu, Dong and Wang 2022). Rényi: η²/8-zCDP (Cesar and Rogers 2021), which is ρ = 1/(2λ²)
a pick, and never more than η. For one pick or a few the profile is the tighter bound; for many the Rényi one is,
because the worst t for every ε at once is worse than any t (a loss of variance η²/3 against η²/4). Both are computed.

Edge cases: candidates must be the same on both graphs (a candidate that exists on one side only breaks the
bound at once); ties have probability zero; fewer picks than K are a part of the release.
"""

from __future__ import annotations

import math
from functools import lru_cache

import attr
import numpy as np
from dp_accounting.dp_event import DpEvent
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.arrays import FloatArray
from discreet.privacy.events.fields import check_multiplier, check_whole
from discreet.privacy.events.grids import PLD_INTERVAL, RDP_ORDERS, everything_lost, hopeless


@attr.s(frozen=True, slots=True, auto_attribs=True)
class OneShotTopKDpEvent(DpEvent):  # type: ignore[misc]
    """``picks`` indices out of one vector of scores; ``noise_multiplier`` is the Gumbel scale over Δ."""

    noise_multiplier: float = attr.ib(validator=check_multiplier)
    picks: int = attr.ib(validator=check_whole)


def bounded_range_delta(epsilon: FloatArray, spread: float) -> FloatArray:
    """δ(ε) of the pair that dominates every pick whose losses are at most ``spread`` = η apart."""
    inside = np.clip(epsilon, -spread, spread)
    # (e^{η/2} − e^{ε/2})²/(e^η − 1) with everything divided by e^η, so that nothing overflows
    curve = np.square(-np.expm1((inside - spread) / 2)) / -math.expm1(-spread)
    return np.where(epsilon < -spread, -np.expm1(np.minimum(epsilon, 0.0)), curve)


def top_k_pld(event: OneShotTopKDpEvent, count: int) -> pld.PrivacyLossDistribution:
    """The dominating pair of every pick, composed over all picks."""
    spread, picks = 2 / event.noise_multiplier, count * event.picks
    if hopeless(min(spread, spread**2 / 8), picks) or spread > 100:
        return everything_lost()
    return _one_pick(spread, PLD_INTERVAL).self_compose(picks)


@lru_cache(maxsize=8)
def _one_pick(spread: float, interval: float) -> pld.PrivacyLossDistribution:
    """The dominating pair of one pick on a grid: pessimistic, exact at grid points ("connect the dots")."""
    last = math.ceil(spread / interval)
    deltas = bounded_range_delta(np.arange(-last, last + 1, dtype=np.float64) * interval, spread)
    return pld.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -last, last, deltas)
    )


def top_k_curve(event: OneShotTopKDpEvent) -> FloatArray:
    """η²/8-zCDP a pick, and never more than η."""
    spread = 2 / event.noise_multiplier
    return event.picks * np.minimum(RDP_ORDERS * spread**2 / 8, spread)
