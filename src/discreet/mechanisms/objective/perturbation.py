"""Objective perturbation for graph data: the equations of the GCON paper, and the mechanism that runs them.

The numbers in brackets are the paper's equations. Its Theorem 1 speaks of exact numbers and of the exact minimiser. A
machine has something near them, so the release adds a little Gaussian noise that hides the difference and is paid for:
``rounding`` proves how large the difference can be, ``tilt`` how near the noise inside the objective comes.

``bounds="paper"`` takes the equations as printed. ``bounds="sharp"`` keeps the proof and tightens two steps:

- Lemma 9 bounds ‖Σzᵢℓ′(zᵢᵀθ)‖ by n₁c₁. By convexity θᵀΣzᵢℓ′(zᵢᵀθ) ≥ θᵀΣzᵢℓ′(0), so the norm of the noise that
  takes the minimiser to norm c_θ is at least n₁(Λc_θ − sup|ℓ′(0)|), and c₁ gives way to the slope at zero.
- Lemma 8 bounds the change of zℓ′(zᵀθ) by (c₁ + c₂c_θ)‖z′ − z‖. Along the segment from z to z′ the derivative is
  at most |ℓ′(x)| + c_θℓ″(x) with one and the same |x| ≤ c_θ, whose supremum is ``loss.steepness(c_θ)``.

For the soft margin with a fair ridge this halves the noise; the statistical audit shows that the rest is needed.

*Weighed rows.* Where the loss of row i counts by a public uᵢ in [0, 1] (classes that count for less), nothing above
changes: uᵢℓ is convex, and its first three derivatives, its slope at zero and its steepness are uᵢ times those of ℓ, so
c₁, c₂, c₃ and both suprema bound them too. The proof reads the losses of rows one by one and through these bounds
alone, as it must where every row has a target of its own; n₁ stays the number of rows, whatever they count. So weights
cost no noise; the signal of rows that count for less is what they cost.

*These formulas in double precision.* They are computed for ε and δ less a relative 2⁻³⁶ (``rounding.SET_ASIDE``), which
pays for their own rounding: Λ is at least a little above its floor, so sums and differences here keep their digits but
for one, and quantiles of the Erlang law are good to a relative 10⁻¹² (tested). The one is Λc_θ − sup|ℓ′(0)|, which is
small where n₁ε is huge: it is taken less more than three roundings can add to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from dp_accounting.dp_event import DpEvent
from scipy.stats import gamma as gamma_law

from discreet.arrays import Array, FloatArray
from discreet.errors import ParameterError, PlanViolationError
from discreet.mechanisms.bits import ROUNDED_UP, Randomness, bits_of
from discreet.mechanisms.gaussian import Grid
from discreet.mechanisms.objective.losses import ScalarLoss, loss_by_name
from discreet.mechanisms.objective.minimise import Problem, minimise
from discreet.mechanisms.objective.rounding import MOST_ROW_ERROR, SET_ASIDE, Rounding
from discreet.mechanisms.objective.tilt import noise_matrix
from discreet.privacy import events
from discreet.privacy.events.gaussian import gaussian_mu
from discreet.privacy.plan import Stage
from discreet.queries.propagated import Bounds, PropagatedRows

OUTPUT_FINENESS = 8
"""The output noise hides a distance of 1e-10 or more, in steps of 1/2⁸ of it: finer ones would not fit int64."""
OUTPUT_SHARE = 0.01
"""The part of ε that hides the distance to the exact minimiser, and of δ tenfold."""
FLOOR_FACTOR = 2.0
"""Λ is kept at least this many times above its floor: at the floor itself c_θ has a pole."""


@dataclass(frozen=True, kw_only=True)
class ObjectiveFacts:
    """The public facts of one perturbed minimisation, as the equations read them.

    ``epsilon`` and ``delta`` are what the minimiser itself may spend; ``sensitivity`` is Ψ, the largest
    Σᵢ‖zᵢ − z′ᵢ‖ between neighbours, for rows of norm at most 1.
    """

    rows: int
    width: int
    classes: int
    sensitivity: float
    loss: ScalarLoss
    epsilon: float
    delta: float
    omega: float
    bounds: Bounds = "sharp"

    @classmethod
    def of(cls, query: PropagatedRows, event: DpEvent) -> ObjectiveFacts:
        """The facts of a query whose stage has the event of :func:`draft_event`, less what is set aside."""
        box = event.events[0]
        return cls(
            rows=query.count,
            width=query.width,
            classes=query.classes,
            sensitivity=query.bound().sensitivity,
            loss=loss_of(query),
            epsilon=box.epsilon * (1 - SET_ASIDE),
            delta=box.delta * (1 - SET_ASIDE),
            omega=query.omega,
            bounds=query.bounds,
        )

    def __post_init__(self) -> None:
        """Refuse a budget divider outside (0, 1) and unknown bounds."""
        if self.bounds not in ("sharp", "paper"):
            raise ParameterError(f"bounds must be sharp or paper, not {self.bounds!r}")
        if not 0 < self.omega < 1:
            raise ParameterError(f"omega must lie strictly between 0 and 1, not {self.omega}")


@lru_cache(maxsize=256)
def radius_quantile(facts: ObjectiveFacts) -> float:
    """c_sf (21): an Erlang(d, 1) radius exceeds it with probability δ/c."""
    return float(gamma_law.isf(facts.delta / facts.classes, facts.width))


def ridge_floor(facts: ObjectiveFacts) -> float:
    """Λ_min (22): Λ must exceed c·c₂·Ψ·c_sf/(n₁ωε), or the norm of the minimiser has no bound."""
    reach = facts.classes * facts.loss.c2 * facts.sensitivity * radius_quantile(facts)
    return reach / (facts.rows * facts.omega * facts.epsilon)


@lru_cache(maxsize=256)
def norm_bound(facts: ObjectiveFacts, ridge: float) -> float:
    """c_θ (23): every column of the minimiser is within it, but for an event of probability δ.

    Not circular: it is taken at the lowest β that (18) can give, the one at budget ωε.
    """
    if not ridge > ridge_floor(facts):
        raise ParameterError(f"Lambda must be above its floor {ridge_floor(facts):.6g} (eq. 22), not {ridge:.6g}")
    loss, c = facts.loss, facts.classes
    budget = facts.rows * facts.omega * facts.epsilon
    reach = c * facts.sensitivity * radius_quantile(facts)
    published = loss.c1 * (budget + reach) / (budget * ridge - loss.c2 * reach)
    if facts.bounds == "paper":
        return published

    def holds(radius: float) -> bool:
        rounded_away = 2.0**-50 * (ridge * radius + loss.slope_at_zero)
        return budget * (ridge * radius - loss.slope_at_zero - rounded_away) >= reach * loss.steepness(radius)

    return _least_above(loss.slope_at_zero / ridge, published, holds)


def _least_above(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """A point near the least at which ``holds``, found by bisection; ``high`` holds, and so does what is returned."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def steepness(facts: ObjectiveFacts, radius: float) -> float:
    """How fast zℓ′(zᵀθ) moves with z where ‖θ‖ ≤ radius and ‖z‖ ≤ 1: c₁ + c₂c_θ in the paper (Lemma 8)."""
    if facts.bounds == "paper":
        return facts.loss.c1 + facts.loss.c2 * radius
    return facts.loss.steepness(radius)


def jacobian_shift(facts: ObjectiveFacts, ridge: float) -> float:
    """(2c₂ + c₃c_θ)·Ψ: how far the sum of singular values of one class's Hessian can move (56)."""
    return (2 * facts.loss.c2 + facts.loss.c3 * norm_bound(facts, ridge)) * facts.sensitivity


def jacobian_epsilon(facts: ObjectiveFacts, ridge: float, total_ridge: float | None = None) -> float:
    """ε_Λ (24): what the ratio of Jacobians costs when the objective is ``total_ridge``-strongly convex.

    ``ridge`` is Λ, at which c_θ is taken; ``total_ridge`` is Λ + Λ′ and defaults to Λ, as in the paper.
    """
    strong = ridge if total_ridge is None else total_ridge
    d, c = facts.width, facts.classes
    return c * d * math.log1p(jacobian_shift(facts, ridge) / (d * facts.rows * strong))


def extra_ridge(facts: ObjectiveFacts, ridge: float) -> float:
    """Λ′ (17): nothing if ε_Λ fits its share (1 − ω)ε, else what brings it down to that share."""
    share = (1 - facts.omega) * facts.epsilon
    if jacobian_epsilon(facts, ridge) <= share:
        return 0.0
    return facts.classes * jacobian_shift(facts, ridge) / (facts.rows * share) - ridge


def noise_rate(facts: ObjectiveFacts, ridge: float) -> float:
    """β (18): the radius of each column of B is Erlang(d, rate β), of mean d/β."""
    budget = max(facts.epsilon - jacobian_epsilon(facts, ridge), facts.omega * facts.epsilon)
    return budget / (facts.classes * steepness(facts, norm_bound(facts, ridge)) * facts.sensitivity)


@dataclass(frozen=True)
class Perturbation:
    """Everything that a perturbed minimisation adds to the plain one."""

    ridge: float
    extra: float
    rate: float

    @property
    def total_ridge(self) -> float:
        """Λ + Λ′, the strong convexity of the perturbed objective."""
        return self.ridge + self.extra


def perturbation(facts: ObjectiveFacts, ridge: float) -> Perturbation:
    """Λ, Λ′ and β for these facts, from (17)–(24)."""
    return Perturbation(ridge, extra_ridge(facts, ridge), noise_rate(facts, ridge))


def rounding_of(query: PropagatedRows, facts: ObjectiveFacts, noise: Perturbation) -> Rounding:
    """What double precision may do to this minimisation."""
    return Rounding(
        rows=facts.rows,
        width=facts.width,
        classes=facts.classes,
        loss=facts.loss,
        ridge=noise.total_ridge,
        rate=noise.rate,
        epsilon=facts.epsilon,
        delta=facts.delta,
        row_error=query.row_error,
    )


def output_sensitivity(total_ridge: float, gradient_norm: float) -> float:
    """2γ/(Λ+Λ′): how far apart, given the same exact minimiser, the machine's may lie on two neighbours.

    Guarantee: what the solver returns is Θ* + E with ‖E‖_F ≤ γ/(Λ+Λ′) on every graph, roundings of the noise, of the
    rows and of the gradient included (``rounding``). So adding N(0, σ_o²) is a Gaussian mechanism of multiplier
    σ_o(Λ+Λ′)/(2γ) composed with the release of Θ*.
    """
    return 2 * gradient_norm / total_ridge * ROUNDED_UP


def draft_event(epsilon: float, delta: float) -> DpEvent:
    """The (ε, δ) of the exact minimiser and the Gaussian that pays for its approximation, within (ε, δ) together.

    The black box gets 99 % of ε and 90 % of δ; the Gaussian's multiplier is exact for what is left.
    """
    share, aside = OUTPUT_SHARE, 10 * OUTPUT_SHARE
    # Half of ε's share stays free: accountants on a grid round up.
    multiplier = 1 / gaussian_mu(share * epsilon / 2, aside * delta)
    box = events.ApproximateDpEvent((1 - share) * epsilon, (1 - aside) * delta)
    return events.ComposedDpEvent([box, events.GaussianDpEvent(multiplier)])


# -------------------------------------------------------------------- the mechanism


def release(value: Array, stage: Stage, randomness: Randomness) -> Array:
    """Θ (d × c): minimise the perturbed objective on rows [Z | Y] or [Z | Y | u], check the gradient, add output noise.

    Guarantee: if Σᵢ‖valueᵢ − value′ᵢ‖ ≤ ``stage.sensitivity`` between neighbours (rows-l2-sum; Y and u, being public,
    are the same on both) and rows of Z have norm at most 1, Y and u lying in [0, 1] (checked), the result has the
    privacy of ``stage.event``, in floating point too: the proof stands in ``rounding``. *Edge case*: on a machine that
    breaks its assumptions a solver that stops early raises, after which nothing has been released.
    """
    query = minimiser_of(stage)
    width, classes = query.width, query.classes
    z, y, beside = np.split(np.asarray(value, dtype=np.float64), [width, width + classes], axis=1)
    shares = beside[:, 0] if query.weighed else None
    _check_rows(z, y if shares is None else np.column_stack([y, shares]))
    loss = loss_of(query)
    if not stage.is_private:
        return minimise(Problem(z, y, query.ridge, np.zeros((width, classes)), loss, shares), query.gradient_norm)
    noise = perturbation(ObjectiveFacts.of(query, stage.event), query.ridge)
    bits = bits_of(randomness)
    tilt = noise_matrix(width, classes, noise.rate, bits)
    # Half of γ is for the gradient as computed, the rest for what that may be off.
    theta = minimise(Problem(z, y, noise.total_ridge, tilt, loss, shares), query.gradient_norm / 2)
    return output_grid(stage).release(theta, bits)


def output_grid(stage: Stage) -> Grid:
    """The public grid of the noise that hides how near the machine came."""
    query = minimiser_of(stage)
    noise = perturbation(ObjectiveFacts.of(query, stage.event), query.ridge)
    moved = output_sensitivity(noise.total_ridge, query.gradient_norm)
    size = query.width * query.classes
    return Grid.for_release(moved, stage.event.events[1].noise_multiplier, size, fineness=OUTPUT_FINENESS)


def minimiser_of(stage: Stage) -> PropagatedRows:
    """The query of a stage that minimises."""
    if not isinstance(stage.query, PropagatedRows):
        raise PlanViolationError(f"stage {stage.name!r} minimises nothing")
    return stage.query


def loss_of(query: PropagatedRows) -> ScalarLoss:
    """The loss that a query names."""
    return loss_by_name(query.loss, query.classes, query.loss_width)


def _check_rows(z: FloatArray, y: FloatArray) -> None:
    if np.linalg.norm(z, axis=1).max(initial=0) > 1 + MOST_ROW_ERROR:
        raise ParameterError("objective perturbation needs rows of norm at most 1")
    if y.min(initial=0) < 0 or y.max(initial=0) > 1:
        raise ParameterError("objective perturbation needs targets and shares between 0 and 1")


def objective_stage(name: str, query: PropagatedRows, event: DpEvent) -> Stage:
    """The stage of a plan, with the event of :func:`draft_event`; the answer is Θ."""
    facts = ObjectiveFacts.of(query, event)
    noise = perturbation(facts, query.ridge)
    planned = replace(query, extra_ridge=noise.extra, noise_rate=noise.rate)
    if query.arithmetic == "bounded":
        rounding = rounding_of(query, facts, noise)
        norm = rounding.gradient_norm(query.gradient_norm)
        planned = replace(planned, gradient_norm=norm, rounding=rounding.of_the_gradient())
    return Stage(name, planned, planned.bound(), event)
