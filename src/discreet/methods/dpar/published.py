"""Noise by the formulas of the DPAR paper: theorems 1 to 3 as printed, for reproducing its table, proving nothing.

Where the paper leaves a constant open (theorem 2: "there exist c₁ and c₂"), its own derivation before (11) gives it:
T·q²τ²λ²/σ² ≤ λε/2 and exp(−λε/2) ≤ δ together mean σ = 2qτ√(T·ln(1/δ))/ε, so c₂ = 2. The docs say why none
of this holds; see :mod:`discreet.methods.dpar.estimator` for what does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dp_accounting.dp_event import DpEvent
from scipy.optimize import brentq

from discreet.privacy import events
from discreet.queries.picks import Selection, TopPicks, gumbel_event

NODE_RATE, SOURCES, BATCH_SIZE = 0.09, 70, 60
"""What the DPAR paper uses, and as-published mode where nothing is given. (Its split of the budget is not stated.)"""


@dataclass(frozen=True)
class PublishedNoise:
    """What the paper would add, in units of each clip bound: Gumbel, Laplace and Gaussian scales, and σ of a step."""

    index: float | None
    value: float | None
    row: float | None
    step: float

    def picking_event(self, query: TopPicks) -> DpEvent:
        """The event of this noise on picks, over their true sensitivity."""
        if self.row is not None:
            return events.GaussianDpEvent(self.row * query.clip / query.bound().sensitivity)
        assert self.index is not None
        return gumbel_event(self.index, self.value, query.rows, query.picks)


@dataclass(frozen=True, kw_only=True)
class PublishedSetting:
    """The public figures that enter the formulas; ``share`` is the part of ε (and half of δ) for the rows."""

    epsilon: float
    delta: float
    node_rate: float
    share: float
    nodes: int
    rows: int
    picks: int
    batch: int
    steps: int
    column_norm: float

    @property
    def inner(self) -> tuple[float, float]:
        """(ε/q′, δ/q′): the paper multiplies both by q′ at the end."""
        return self.epsilon / self.node_rate, self.delta / self.node_rate


def published_noise(setting: PublishedSetting, selection: Selection) -> PublishedNoise:
    """All scales, from ε and δ."""
    epsilon, delta = setting.inner
    if setting.share == 0:
        return PublishedNoise(None, None, None, _step(setting, epsilon, delta))
    one, row_delta = _one_row(setting.share * epsilon, delta / 2, setting.rows)
    step = _step(setting, (1 - setting.share) * epsilon, delta / 2)
    if selection == "gm":
        return PublishedNoise(None, None, math.sqrt(2 * math.log(1.25 / row_delta)) / one, step)
    if selection == "em0":
        return PublishedNoise(1 / pick_epsilon(one, row_delta, setting.picks), None, None, step)
    return PublishedNoise(1 / pick_epsilon(one / 2, row_delta, setting.picks), setting.picks / (one / 2), None, step)


def _one_row(epsilon: float, delta: float, rows: int) -> tuple[float, float]:
    """Theorem 1's composition over M rows, solved for one of them: ε_g/(2√(M ln(e + ε_g/δ_g))) and δ_g/2M."""
    return epsilon / (2 * math.sqrt(rows * math.log(math.e + epsilon / delta))), delta / (2 * rows)


def pick_epsilon(epsilon: float, delta: float, picks: int) -> float:
    """Corollary 1 solved for ε: 2·min{Kε, Kε(e^{2ε} − 1)/(e^{2ε} + 1) + ε√(2K ln(1/δ))} is what a row may cost."""

    def cost(each: float) -> float:
        drift = picks * each * math.tanh(each)
        return 2 * min(picks * each, drift + each * math.sqrt(2 * picks * math.log(1 / delta)))

    return float(brentq(lambda each: cost(each) - epsilon, 0.0, epsilon, xtol=1e-12))


def _step(setting: PublishedSetting, epsilon: float, delta: float) -> float:
    """Theorem 2 with q = B/N and c₂ = 2, in units of the gradient's clip norm."""
    rate = setting.batch / setting.nodes
    return 2 * rate * setting.column_norm * math.sqrt(setting.steps * math.log(1 / delta)) / epsilon
