"""A limit on what adaptively chosen runs may spend together: the Rényi filter of Feldman and Zrnic (2021).

Ordinary composition takes the events as fixed beforehand. Where the next run is chosen after the results of the last
were seen (more noise or less, one more or none), its cost is itself random, and only a filter is proved: a budget
that is fixed first, and a rule that refuses the run that would exceed it.

Guarantee. Fix an order α > 1, a budget B and a share δ_A before the first run. Each run t states, before it starts
and from public values alone, a bound ρ_t on its Rényi divergence of order α (both orders of the neighbours) outside
an event of probability δ_t, and starts only if ρ_1 + … + ρ_t ≤ B and δ_1 + … + δ_t ≤ δ_A. Then all runs together are
(ε, δ_R + δ_A)-private for ε = B + ln(1 − 1/α) − ln(α·δ_R)/(α − 1).

Proof. Let P and Q be the laws of all outputs on two neighbours, r_t the ratio of the densities of run t given what
came before, and b_t = B − ρ_1 − … − ρ_t ≥ 0. First let all δ_t be 0. Claim: given the outputs before run t,
E_Q[(r_t·r_{t+1}·…)^α] ≤ exp((α − 1)·b_{t−1}). After the last run the product is empty and 1 ≤ exp((α − 1)·b). Going
back by one run, ρ_t is a function of the outputs before t and so a constant here: E_Q[r_t^α·E_Q[(r_{t+1}·…)^α]] ≤
E_Q[r_t^α]·exp((α − 1)·b_t) ≤ exp((α − 1)·(ρ_t + b_t)) = exp((α − 1)·b_{t−1}). At the start this says that the whole
has divergence at most B at order α. Since x − e^ε ≤ δ_R·exp((1 − α)·B)·x^α for every x ≥ 0 and the ε above, P(S) −
e^ε·Q(S) ≤ ∫(dP/dQ − e^ε)₊ dQ ≤ δ_R. With δ_t > 0, write each run as a coin that fails with probability δ_t, on both
neighbours, and a rest of divergence ρ_t. The same induction bounds the part of P and Q on which no coin failed, whose
mass only shrinks; on every path the δ_t add up to at most δ_A, so a coin fails with probability at most δ_A, and P(S)
≤ e^ε·Q(S) + δ_R + δ_A. ∎

The order is one, fixed by (ε, δ) alone: to take the best order at the end, when the path is known, is not covered by
the proof. A run whose divergence is not known counts as the black box that its own (ε_t, δ_t) makes of it. At δ = 0
the order is infinite: divergences are the runs' own ε, and the same proof, with r_t ≤ exp(ρ_t) everywhere, gives ε =
B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from dp_accounting.dp_event import DpEvent

from discreet.arrays import FloatArray
from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.events.black_box import pure_curve
from discreet.privacy.events.gaussian import gaussian_epsilon
from discreet.privacy.events.grids import RDP_ORDERS

ASIDE = 0.5
"""The part of δ that is kept for runs with a δ of their own; it costs the others ln 2/(α − 1) of ε."""
ROUNDING = 1e-9
"""What is left unused of the budget for the rounding of sums, relative: far more than they can lose."""


class Cost(NamedTuple):
    """What one run takes of a filter: divergence at its order, and δ."""

    divergence: float
    aside: float


@dataclass(frozen=True)
class RenyiFilter:
    """A limit of ε at δ for all runs together, whoever chooses them and when."""

    epsilon: float
    delta: float
    order: float = field(init=False)
    budget: float = field(init=False)

    def __post_init__(self) -> None:
        """Fix the order at which the most Gaussian noise fits, and the budget at that order."""
        if not (math.isfinite(self.epsilon) and self.epsilon > 0 and 0 <= self.delta < 1):
            raise PrivacyError(f"a limit is a positive epsilon, not {self.epsilon:g} (at delta {self.delta:g})")
        if self.delta == 0:
            self._fix(math.inf, self.epsilon)
            return
        failing = math.log(self.delta * (1 - ASIDE))
        budgets = self.epsilon - np.log1p(-1 / RDP_ORDERS) + (failing + np.log(RDP_ORDERS)) / (RDP_ORDERS - 1)
        best = int(np.argmax(budgets / RDP_ORDERS))
        if budgets[best] <= 0:
            raise PrivacyError(f"a limit of epsilon {self.epsilon:g} at delta {self.delta:g} leaves room for no run")
        self._fix(float(RDP_ORDERS[best]), float(budgets[best]) * (1 - ROUNDING))

    def _fix(self, order: float, budget: float) -> None:
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "budget", budget)

    def cost(self, event: DpEvent, epsilon: float, delta: float) -> Cost:
        """What a run takes; ``epsilon`` at ``delta`` is its own guarantee, used where its divergence is not known."""
        if math.isinf(self.order):
            return Cost(epsilon, delta)
        known = self._divergence(event)
        if known is not None:
            return known
        if not math.isfinite(epsilon):
            return Cost(math.inf, delta)
        return Cost(self._at_order(pure_curve(epsilon)), delta)

    def admits(self, spent: Cost, further: Cost) -> bool:
        """Whether a further run keeps within the limit."""
        return (
            spent.divergence + further.divergence <= self.budget and spent.aside + further.aside <= self.delta * ASIDE
        )

    def room(self, spent: Cost) -> float:
        """The ε, at the limit's δ, of the largest Gaussian run that would still be admitted; 0 for none."""
        left = self.budget - spent.divergence
        if not left > 0:
            return 0.0
        if math.isinf(self.order):
            return left
        return gaussian_epsilon(math.sqrt(2 * left / self.order), self.delta)

    def _divergence(self, event: DpEvent) -> Cost | None:
        total, aside = 0.0, 0.0
        for leaf, count in events.leaves(event):
            if events.is_free_of_noise(leaf):
                return Cost(math.inf, 0.0)
            kind = events.kind_of(leaf)
            curve = events.rdp_curve(leaf)
            if kind.sampling is not None or curve is None:
                return None
            aside += count * (kind.black_box(leaf)[1] if kind.black_box else 0.0)
            total += count * self._at_order(curve)
        return Cost(total, aside)

    def _at_order(self, curve: FloatArray) -> float:
        return float(curve[int(np.searchsorted(RDP_ORDERS, self.order))])


def together(costs: list[Cost]) -> Cost:
    """The cost of several runs."""
    return Cost(math.fsum(c.divergence for c in costs), math.fsum(c.aside for c in costs))
