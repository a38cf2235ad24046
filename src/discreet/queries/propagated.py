"""Rows propagated with restart beside their targets: what objective perturbation minimises over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from dp_accounting.dp_event import DpEvent

from discreet.arrays import FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.graph.parts import PrivatePart
from discreet.ops.restart import INFINITE, Walk, check_restart, check_steps, propagate
from discreet.ops.rows import cut_rows
from discreet.privacy.assurance import PUBLISHED
from discreet.privacy.levels import EdgeLevel, Level, NoPrivacy
from discreet.privacy.query import NO_BOUND, Bound, Query

Bounds = Literal["sharp", "paper"]

GRADIENT_NORM = 1e-10
"""γ: where the solver must arrive. Double precision reaches about 1e-15; this leaves room for rounding."""


@dataclass(frozen=True)
class RestartQuery(Query):
    """What is asked through R_m, propagation with restart, at undirected edge level (or ``none``).

    ``everyone`` says whose rows enter: those of all nodes, or of the public training ids. Each enters once.
    """

    level: Level
    alpha: float
    steps: tuple[float, ...]
    everyone: bool

    def psi(self) -> float:
        """Ψ of :func:`restart_sensitivity`; a level that its proof does not cover is refused."""
        if isinstance(self.level, NoPrivacy):
            return math.inf
        if not isinstance(self.level, EdgeLevel):
            raise UnsupportedError(f"propagation with restart has no sensitivity bound at level {self.level.spec}")
        if self.level.directed:
            raise UnsupportedError("propagation with restart has no bound on directed edges: use level edge")
        return restart_sensitivity(self.alpha, self.steps)

    def bound_at(self, sensitivity: float, metric: str) -> Bound:
        """The bound with the reason in one line."""
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, metric, NO_BOUND)
        return Bound(sensitivity, metric, restart_why(self.alpha, self.steps))

    @property
    def adds_over_edges(self) -> bool:
        """Every step of the propagation is one sum over edges."""
        return True

    def nodes(self, private: PrivatePart) -> IntArray:
        """The public ids whose rows enter."""
        graph = private.graph
        return np.arange(graph.num_nodes, dtype=np.int64) if self.everyone else np.flatnonzero(graph.mask("train"))

    def spread(self, private: PrivatePart, rows: FloatArray) -> FloatArray:
        """(1/s)(R_{m₁}X ⊕ … ⊕ R_{m_s}X) of all rows, at those nodes."""
        return propagate(Walk(private.graph), rows, self.alpha, self.steps)[self.nodes(private)]


@dataclass(frozen=True)
class PropagatedRows(RestartQuery):
    """[Z | Y]: Z = R_m X for public rows X of norm at most 1, one row per node that enters, beside public targets Y.

    Inputs: ``rows`` (X, one per node, cut at norm 1 here); for each node that enters, ``targets`` (Y, cut to [0, 1]
    here) and ``usable``, a column of zeros and ones: rows that count.

    Guarantee. *Neighbours*: one undirected edge more or less. *Bound*: Σᵢ‖zᵢ − z′ᵢ‖ ≤ Ψ of
    :func:`restart_sensitivity` for every X, Y and ``usable``; Y is the same on both. *Edge case*: rows that are not
    finite count as zero.
    The fields from ``loss`` on say what the mechanism does with it, see ``mechanisms.objective``.
    """

    count: int
    width: int
    classes: int
    loss: str
    loss_width: float
    ridge: float
    gradient_norm: float = GRADIENT_NORM
    omega: float = 0.9
    bounds: Bounds = "sharp"
    extra_ridge: float = 0.0
    noise_rate: float = math.inf
    mechanism: ClassVar[str] = "objective"
    proof: ClassVar[str] = PUBLISHED

    @property
    def words(self) -> str:
        """What is asked."""
        return "the minimiser of the perturbed convex objective on propagated rows"

    @property
    def shape(self) -> tuple[int, ...]:
        """Z beside Y."""
        return (self.count, self.width + self.classes)

    @property
    def answer_shape(self) -> tuple[int, ...]:
        """One column per class."""
        return (self.width, self.classes)

    @property
    def total_ridge(self) -> float:
        """Λ + Λ′, the strong convexity of the perturbed objective."""
        return self.ridge + self.extra_ridge

    def bound(self) -> Bound:
        """Ψ."""
        return self.bound_at(self.psi(), "rows-l2-sum")

    def noise_std(self, event: DpEvent, sensitivity: float) -> float:
        """Per entry of the tilt B: its radius is Erlang(d, β), so E‖b‖² = d(d+1)/β² over d entries."""
        return math.sqrt(self.width + 1) / self.noise_rate

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        plain = {
            "loss": self.loss,
            "loss_width": self.loss_width,
            "classes": self.classes,
            "ridge": self.ridge,
            "gradient_norm": self.gradient_norm,
            "extra_ridge": self.extra_ridge,
        }
        if isinstance(self.level, NoPrivacy):
            return plain
        return {
            **plain,
            "omega": self.omega,
            "bounds": self.bounds,
            "noise_rate": self.noise_rate,
            "noise_std": math.sqrt(self.width + 1) / self.noise_rate,
        }

    def answer(
        self, private: PrivatePart, *, rows: FloatArray, targets: FloatArray, usable: FloatArray, **inputs: Any
    ) -> FloatArray:
        """Propagate all rows, keep those of the nodes that enter."""
        counts = np.where(np.asarray(usable) > 0, 1.0, 0.0)
        found = self.spread(private, cut_rows(rows, 1.0)) * counts
        return np.hstack([found, np.clip(np.nan_to_num(targets), 0.0, 1.0) * counts])


def lemma_bound(alpha: float, m: float) -> float:
    """Ψ(R_m X) = (2(1 − α)/α)·[1 − (1 − α)^m], Lemma 2 of the GCON paper; attained at m = 1 on two nodes."""
    decay = 0.0 if m == INFINITE else (1 - alpha) ** m
    return 2 * (1 - alpha) / alpha * (1 - decay)


def reversible_bound(alpha: float) -> float:
    """Ψ(R_∞X) ≤ (2(1 − α)/α)·max{2α/(1+α), 2/3, 1 − α}: below Lemma 2 for every α.

    Let G′ be G without the edge {1, 2}, k the degree of node 1 in G′, and Δ = Ã′ − Ã, whose rows 1 and 2 alone
    are not zero. Then R′ − R = ((1−α)/α)·R′ΔR, so node 1 contributes at most (sum of column 1 of R′) ×
    ‖row 1 of ΔZ‖, and so does node 2. The walk is reversible with weights degree + 1, hence column 1 of R′ sums
    to Σ_j R′₁ⱼ(k+1)/(k_j+1), where j = 1 has mass R′₁₁ ≥ α and any j ≠ 1 that is reached has k_j ≥ 1:

    - k ≥ 1: the sum is at most α + (1−α)(k+1)/2 and the row has norm at most 2/(k+2). The product
      (2α + (1−α)(k+1))/(k+2) is monotone in k, from 2/3 at k = 1 to 1 − α in the limit.
    - k = 0: the sum is 1. In G node 1 hangs on node 2, so z₁ = αx₁ + (1−α)(z₁+z₂)/2, which gives
      z₁ − z₂ = (2α/(1+α))(x₁ − z₂), and the row ‖z₁ − z₂‖/2 is at most 2α/(1+α).
    """
    return 2 * (1 - alpha) / alpha * max(2 * alpha / (1 + alpha), 2 / 3, 1 - alpha)


def restart_sensitivity(alpha: float, steps: Sequence[float]) -> float:
    """How far Z = :func:`propagate` moves, Σ_i ‖z_i − z′_i‖₂ over *all* rows.

    Guarantee. *Neighbours*: one undirected edge more or less, same public features. *Bound*: the mean over the
    steps of Lemma 2 (finite m) or of the smaller :func:`reversible_bound` (m = ∞). *Needs*: rows of X of norm
    at most 1, and a symmetric graph (an in-star breaks it by an order of magnitude), both enforced here.
    *Edge cases*: isolated nodes keep their row; m = 0 costs nothing; any subset of rows is covered.
    *Reference*: Lemma 2 and eq. (26) of the GCON paper; the proof for m = ∞ stands in ``reversible_bound``.
    """
    check_restart(alpha)
    listed = check_steps(steps)
    return sum(reversible_bound(alpha) if m == INFINITE else lemma_bound(alpha, m) for m in listed) / len(listed)


def restart_why(alpha: float, steps: Sequence[float]) -> str:
    """The reason in one line."""
    listed = ", ".join("inf" if m == INFINITE else str(m) for m in steps)
    return f"sum over rows of the change of R_m X, alpha {alpha:g}, m {listed} (queries.propagated)"


def row_norm_bound(steps: Sequence[float]) -> float:
    """‖z_i‖ ≤ 1/√s: each of the s parts is an average of unit rows, divided by s."""
    return 1 / math.sqrt(len(check_steps(steps)))
