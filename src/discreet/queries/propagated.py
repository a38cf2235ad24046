"""Rows propagated with restart beside their targets: what objective perturbation minimises over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from dp_accounting.dp_event import DpEvent

from discreet.arrays import FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.graph.parts import PrivatePart
from discreet.ops.restart import INFINITE, Walk, check_restart, check_steps, propagate
from discreet.ops.rows import cut_rows
from discreet.privacy.levels import EdgeLevel, Level, NoPrivacy
from discreet.privacy.query import NO_BOUND, PUBLISHED, Bound, Query

Bounds = Literal["sharp", "paper"]
Ends = Literal["together", "apart"]

Arithmetic = Literal["bounded", "unbounded"]

GRADIENT_NORM = 1e-10
"""γ: where the solver must arrive, rounding included. Double precision reaches about 1e-13."""
ON_A_GRID, IN_DOUBLES = "objective-on-grid", "objective"
"""Mechanisms: with every rounding bounded and hidden, and as releases had it before that was proved."""


@dataclass(frozen=True)
class RestartQuery(Query):
    """What is asked through R_m, propagation with restart, at undirected edge level (or ``none``).

    ``everyone`` says whose rows enter: those of all nodes, or of the public training ids. Each enters once. ``ends``
    says how Ψ is proved where m = ∞.
    """

    level: Level
    alpha: float
    steps: tuple[float, ...]
    everyone: bool
    ends: Ends = field(default="together", kw_only=True)

    def psi(self) -> float:
        """Ψ of :func:`restart_sensitivity`; a level that its proof does not cover is refused."""
        if isinstance(self.level, NoPrivacy):
            return math.inf
        if not isinstance(self.level, EdgeLevel):
            raise UnsupportedError(f"propagation with restart has no sensitivity bound at level {self.level.spec}")
        if self.level.directed:
            raise UnsupportedError("propagation with restart has no bound on directed edges: use level edge")
        return restart_sensitivity(self.alpha, self.steps, self.ends)

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
    here) and ``usable``, a column of zeros and ones: rows that count. Where the query is ``weighed``, also ``shares``:
    for each node that enters, how much its loss counts, cut to [0, 1] here; they are one more column, [Z | Y | u].

    Guarantee. *Neighbours*: one undirected edge more or less. *Bound*: Σᵢ‖zᵢ − z′ᵢ‖ ≤ Ψ of :func:`restart_sensitivity`
    for every X, Y, ``usable`` and u; Y and u are the same on both. *Edge case*: rows that are not finite count as zero.
    The fields from ``loss`` on say what the mechanism does with it, see ``mechanisms.objective``. ``arithmetic`` tells
    plans of before, whose certificates do not bound what rounding does, from those of today; such a plan can be read
    and accounted, not run.
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
    weighed: bool = False
    num_nodes: int = field(kw_only=True)
    arithmetic: Arithmetic = field(default="bounded", kw_only=True)
    rounding: float = field(default=0.0, kw_only=True)
    proof: ClassVar[str] = PUBLISHED

    @property
    def answered_by(self) -> str:
        """The mechanism."""
        return ON_A_GRID if self.arithmetic == "bounded" else IN_DOUBLES

    @property
    def words(self) -> str:
        """What is asked."""
        return "the minimiser of the perturbed convex objective on propagated rows"

    @property
    def shape(self) -> tuple[int, ...]:
        """Z beside Y, and beside the shares of rows where they have any."""
        return (self.count, self.width + self.classes + self.weighed)

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

    @property
    def row_error(self) -> float:
        """e_z: how far a row of Z as computed may lie from exact propagation, whatever the graph: (n + 16)·2⁻⁵²/α.

        *Proof.* One step adds up k ≤ n rows at a node, divides by k, multiplies by 1 − α (itself rounded) and adds αx:
        no number passes through more than k + 4 roundings, so a step errs by at most 1.01·(n + 4)·2⁻⁵³·ρ in norm, ρ ≤ 1
        + 2⁻¹² being the length of the longest row so far. Errors of before are averaged and multiplied by 1 − α, so all
        together they stay below 1/α times that. Where m = ∞, the steps that are not taken add 2⁻⁵³ (``ops.restart``),
        and dividing by the number of steps one rounding. ∎ No edge and no degree is read for it.
        """
        return (self.num_nodes + 16) * 2.0**-52 / self.alpha

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
            **({"weighed": True} if self.weighed else {}),
        }
        if isinstance(self.level, NoPrivacy):
            return plain
        return {
            **plain,
            "omega": self.omega,
            "bounds": self.bounds,
            "noise_rate": self.noise_rate,
            "noise_std": math.sqrt(self.width + 1) / self.noise_rate,
            **({"rounding": self.rounding} if self.arithmetic == "bounded" else {}),
        }

    def answer(
        self,
        private: PrivatePart,
        *,
        rows: FloatArray,
        targets: FloatArray,
        usable: FloatArray,
        shares: FloatArray | None = None,
        **inputs: Any,
    ) -> FloatArray:
        """Propagate all rows, keep those of the nodes that enter."""
        counts = np.where(np.asarray(usable) > 0, 1.0, 0.0)
        found = self.spread(private, cut_rows(rows, 1.0)) * counts
        beside = [np.clip(np.nan_to_num(targets), 0.0, 1.0) * counts]
        if self.weighed:
            beside.append(cut_shares(shares, self.count)[:, None])
        return np.hstack([found, *beside])


def cut_shares(shares: FloatArray | None, count: int) -> FloatArray:
    """One number in [0, 1] for each row that enters; 1 where nothing is said, 0 for what is no number."""
    if shares is None:
        return np.ones(count)
    return np.asarray(np.clip(np.nan_to_num(np.asarray(shares, dtype=np.float64)), 0.0, 1.0)).reshape(count)


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


def joint_bound(alpha: float) -> float:
    """Ψ(R_∞X) ≤ ((1 − α)/α)·T, T = max{2α, h, 2α/(1+α) + 1 − α, 2(1+α)/(2+α), 2(1 − α)}, with
    h = 2α(2+α)/(2+5α−α²) + (1+α)/(2+α): below :func:`reversible_bound`, because its worst cases do not meet.

    Notation as there: node 1 contributes s₁r₁, s₁ the sum of column 1 of R′ and r₁ = ‖a − z₂‖/(k+2), a being the mean
    of z over node 1 and its k neighbours in G′; node 2 likewise with l neighbours and b. T bounds s₁r₁ + s₂r₂.

    *One end.* The walk stays at node 1 with probability 1/(k+1), so R′₁₁ ≥ α/(1 − (1−α)/(k+1)) = α(k+1)/(k+α), and
    s₁ ≤ R′₁₁ + (1 − R′₁₁)(k+1)/2 ≤ (k+1)(2α + k(1−α))/(2(k+α)); for k = 0 this is 1. With n the mean of z over the k
    neighbours, (k+1)a = z₁ + kn and z₁ = αx₁ + (1−α)((k+1)a + z₂)/(k+2) give
    a − z₂ = (k(n − z₂) + α(x₁ − z₂))(k+2)/((k+1)(k+1+α)), so r₁ ≤ 2(k+α)/((k+1)(k+1+α)). The product is at most
    f(k) = (2α + k(1−α))/(k+1+α), which is monotone in k, from f(1) = (1+α)/(2+α) to 1 − α.

    *Both k, l ≥ 1*: T ≤ 2·max{f(1), 1 − α}. *k = l = 0*: in G nodes 1 and 2 are a pair, z₁ − z₂ = α(x₁ − x₂), and each
    contributes α. *k = 0 and l ≥ 1*: s₁ = 1 and r₁ = (α/(1+α))‖w‖, w = x₁ − z₂, because z₁ = x₁ − ((1−α)/(1+α))w. Put
    into z₂ = αx₂ + (1−α)((l+1)b + z₁)/(l+2), this gives w·(1 − (1−α)²/((l+2)(1+α))) =
    x₁(l+1+α)/(l+2) − αx₂ − (1−α)(l+1)b/(l+2), of norm at most 2(l+1+α)/(l+2), and
    r₁ ≤ g(l) = 2α(l+1+α)/(l(1+α) + 1 + 4α − α²). Now g rises with l. If f rises too, g + f is largest for l → ∞. If
    f falls, g + f is a constant − m/(l+c) + q/(l+1+α) with c > 1 + α and m, q > 0, whose derivative changes its sign
    once at most, from − to +: it is largest at l = 1, where it is h, or for l → ∞, where it is 2α/(1+α) + 1 − α. ∎
    """
    at_one = 2 * alpha * (2 + alpha) / (2 + 5 * alpha - alpha**2) + (1 + alpha) / (2 + alpha)
    far = 2 * alpha / (1 + alpha) + 1 - alpha
    most = max(2 * alpha, at_one, far, 2 * (1 + alpha) / (2 + alpha), 2 * (1 - alpha))
    return (1 - alpha) / alpha * most


def restart_sensitivity(alpha: float, steps: Sequence[float], ends: Ends = "together") -> float:
    """How far Z = :func:`propagate` moves, Σ_i ‖z_i − z′_i‖₂ over *all* rows.

    Guarantee. *Neighbours*: one undirected edge more or less, same public features. *Bound*: the mean over the
    steps of Lemma 2 (finite m) or of the smaller :func:`joint_bound` (m = ∞; with ``ends`` apart that of before,
    :func:`reversible_bound`). *Needs*: rows of X of norm at most 1, and a symmetric graph (an in-star breaks it by an
    order of magnitude), both enforced here. *Edge cases*: isolated nodes keep their row; m = 0 costs nothing; any
    subset of rows is covered. *Reference*: Lemma 2 and eq. (26) of the GCON paper; the proofs for m = ∞ stand in both
    functions.
    """
    check_restart(alpha)
    listed = check_steps(steps)
    endless = joint_bound if ends == "together" else reversible_bound
    return sum(endless(alpha) if m == INFINITE else lemma_bound(alpha, m) for m in listed) / len(listed)


def restart_why(alpha: float, steps: Sequence[float]) -> str:
    """The reason in one line."""
    listed = ", ".join("inf" if m == INFINITE else str(m) for m in steps)
    return f"sum over rows of the change of R_m X, alpha {alpha:g}, m {listed} (queries.propagated)"


def row_norm_bound(steps: Sequence[float]) -> float:
    """‖z_i‖ ≤ 1/√s: each of the s parts is an average of unit rows, divided by s."""
    return 1 / math.sqrt(len(check_steps(steps)))
