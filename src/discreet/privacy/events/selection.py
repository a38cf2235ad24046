"""Private selection: repeat a mechanism a random number of times and release only the best output.

Guarantee (Papernot and Steinke, "Hyperparameter Tuning with Rényi Differential Privacy", ICLR 2022, Theorem 2). Let Q
be a mechanism whose outputs are totally ordered, (λ, ε(λ))-RDP for every λ. Draw K from the truncated negative binomial
law D(η, γ), run Q independently K times and release the best output alone. The whole is (λ, ε′)-RDP with

    ε′ = ε(λ) + (1 + η)·min over λ̂ of [(1 − 1/λ̂)·ε(λ̂) + ln(1/γ)/λ̂] + ln E[K] / (λ − 1).

What it needs, and who sees to it:

- *The order is on Q's output.* A score read off private data must be part of the output, with its own noise and its own
  cost (``discreet.tuning.score``); a score that is a function of what Q releases anyway costs nothing.
- *K is independent of the data and stays secret*: it is drawn from the curator's entropy and is not in the release. The
  outputs that lost are not released either.
- *Q is one mechanism.* Drawing a candidate setting at random and running it is one, and its divergence is at most that
  of the worst candidate: :class:`OneOfDpEvent`.

Edge cases: an event with a δ of its own (an (ε, δ) black box) has no Rényi curve and is refused, because the theorem
says nothing of what repeating does to that δ. η = 0 is the logarithmic law, η = 1 the geometric one; K ≥ 1 always.
"""

from __future__ import annotations

import math
from typing import Protocol

import attr
import numpy as np
from dp_accounting.dp_event import DpEvent, RepeatAndSelectDpEvent
from scipy.optimize import brentq

from discreet.arrays import BoolArray, FloatArray, IntArray
from discreet.errors import PrivacyError
from discreet.limits import TRIALS, shown
from discreet.privacy.events.grids import RDP_ORDERS

LOGARITHMIC, GEOMETRIC = 0.0, 1.0  # η of the law
SHAPES = {"logarithmic": LOGARITHMIC, "geometric": GEOMETRIC}
_HAIR = 1e-9
"""γ is rounded to the side on which the bound holds: up where it is drawn with, down where it is accounted."""
_MOST_AT_ONCE = 1 << 20  # coins: 8 MB of random bits


@attr.s(frozen=True, slots=True, auto_attribs=True)
class OneOfDpEvent(DpEvent):  # type: ignore[misc]
    """One of several events runs; which one is known, and was chosen without looking at private data."""

    events: list[DpEvent]


def select_event(candidates: list[DpEvent], mean: float, shape: float) -> DpEvent:
    """Repeat "run one of the candidates" a random number of times, ``mean`` on average, and release the best."""
    distinct = [event for place, event in enumerate(candidates) if event not in candidates[:place]]
    return RepeatAndSelectDpEvent(distinct[0] if len(distinct) == 1 else OneOfDpEvent(distinct), mean, shape)


# -------------------------------------------------------------------- how often


def gamma_for(mean: float, shape: float) -> float:
    """The γ at which D(η, γ) has this mean."""
    check_repeats(mean, shape)
    if shape == GEOMETRIC:
        return 1 / mean
    return float(brentq(lambda gamma: mean_of(gamma, shape) - mean, 1e-12, 1 - 1e-12, xtol=1e-300, rtol=1e-14))


def mean_of(gamma: float, shape: float) -> float:
    """E[K] under D(η, γ)."""
    if shape == LOGARITHMIC:
        return (1 / gamma - 1) / -math.log(gamma)
    return shape * (1 / gamma - 1) / -math.expm1(shape * math.log(gamma))


def generating(shape: float, gamma: float, x: FloatArray) -> FloatArray:
    """E[xᴷ] under D(η, γ): the probability that every run stays below a level that one run stays below with x."""
    if shape == LOGARITHMIC:
        found: FloatArray = np.log1p(-(1 - gamma) * x) / math.log(gamma)
        return found
    powers: FloatArray = (1 - (1 - gamma) * x) ** -shape
    return np.asarray((powers - 1) / (gamma**-shape - 1))


class Coins(Protocol):
    """What tosses exact coins: a stream of the tuner's secret source."""

    def coins(self, probability: float, size: int) -> BoolArray:
        """``size`` independent coins, each True with exactly this probability."""

    def integers(self, bound: int, size: int) -> IntArray:
        """``size`` independent whole numbers, exactly uniform on 0 … bound − 1."""


def draw_repeats(mean: float, shape: float, secret: Coins) -> int:
    """A secret K.

    Guarantee: K follows D(η, γ) exactly, for a double γ that is a hair above the one that is charged: the bound falls
    as γ grows, so rounding never runs against it. *Proof.* For η = 1, K is the number of coins of bias γ up to the
    first heads. For η = 0 such a k, which has probability γ(1 − γ)ᵏ⁻¹, is kept with probability 1/k and otherwise
    drawn again: what is kept has probability proportional to (1 − γ)ᵏ/k. Coins and whole numbers are exact. ∎
    """
    gamma = min(gamma_for(mean, shape) * (1 + _HAIR), 1.0)
    if shape not in SHAPES.values():
        raise PrivacyError(f"no way to draw the number of runs with shape {shape}: use 0 or 1")
    while True:
        count = _first_heads(gamma, secret)
        if shape == GEOMETRIC or secret.integers(count, 1)[0] == 0:
            return count


def _first_heads(gamma: float, secret: Coins) -> int:
    """The number of coins up to the first heads, that one included."""
    tossed, block = 0, min(math.ceil(2 / gamma), _MOST_AT_ONCE)
    while True:
        heads = np.flatnonzero(secret.coins(gamma, block))
        if len(heads):
            return tossed + int(heads[0]) + 1
        tossed += block


def check_repeats(mean: float, shape: float) -> None:
    """Refuse a law that is none."""
    if not mean > 1:
        raise PrivacyError(f"the expected number of runs must be above 1, not {shown(mean)}")
    if mean > TRIALS.high:
        raise PrivacyError(f"the expected number of runs must be at most {TRIALS.high}, not {shown(mean)}")
    if not (math.isfinite(shape) and shape >= 0):
        raise PrivacyError(f"the shape of the number of runs must be a number of at least 0, not {shape}")


# -------------------------------------------------------------------- accounting


def repeated_curve(curve: FloatArray, mean: float, shape: float) -> FloatArray:
    """Theorem 2 above on a Rényi curve at :data:`RDP_ORDERS`, then made to rise with the order, as divergences do."""
    gamma = gamma_for(mean, shape) * (1 - _HAIR)
    constant = (1 + shape) * np.min((1 - 1 / RDP_ORDERS) * curve - math.log(gamma) / RDP_ORDERS)
    bound = curve + math.log(mean) / (RDP_ORDERS - 1) + constant
    rising: FloatArray = np.minimum.accumulate(bound[::-1])[::-1]
    return rising


def one_of_curve(curves: list[FloatArray | None]) -> FloatArray | None:
    """The worst candidate's Rényi curve, order by order; None where one of them has none."""
    known = [curve for curve in curves if curve is not None]
    return np.max(known, axis=0) if known and len(known) == len(curves) else None
