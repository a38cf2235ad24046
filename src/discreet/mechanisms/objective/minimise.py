"""The exact minimiser, or an error: damped Newton in double precision on one small convex problem per class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from discreet.arrays import FloatArray
from discreet.errors import DiscreetError
from discreet.mechanisms.objective.losses import ScalarLoss

MAX_NEWTON_STEPS = 200
"""Strongly convex problems take about ten; what takes more is refused, never released half-way."""
_ARMIJO = 1e-4  # the share of the predicted descent that a step must bring


class NotMinimisedError(DiscreetError, RuntimeError):
    """The solver stopped above the gradient norm that the guarantee needs; nothing may be released."""


class Problem(NamedTuple):
    """(1/n₁)Σᵢ uᵢℓ(zᵢᵀθ; yᵢ) + (ridge/2)‖θ‖² + bᵀθ/n₁, a column of Y and of B for each class.

    Without ``shares`` every uᵢ is 1.
    """

    rows: FloatArray
    targets: FloatArray
    ridge: float
    tilt: FloatArray
    loss: ScalarLoss
    shares: FloatArray | None = None

    def weighed(self, losses: FloatArray) -> FloatArray:
        """Losses or their derivatives, one row per row of Z, times the shares of the rows."""
        if self.shares is None:
            return losses
        return losses * (self.shares if losses.ndim == 1 else self.shares[:, None])


def gradient(problem: Problem, theta: FloatArray) -> FloatArray:
    """∇L at Θ, all classes side by side (d × c)."""
    z, y, ridge, tilt, loss, _ = problem
    return np.asarray((z.T @ problem.weighed(loss.slope(z @ theta, y)) + tilt) / len(z) + ridge * theta)


def minimise(problem: Problem, tolerance: float, max_steps: int = MAX_NEWTON_STEPS) -> FloatArray:
    """Θ with ‖∇L(Θ)‖_F ≤ tolerance over all classes together.

    Guarantee: the gradient is evaluated afresh at the very array that is returned; above the tolerance
    :class:`NotMinimisedError` is raised instead. L is ridge-strongly convex, hence ‖Θ − Θ*‖_F ≤ tolerance/ridge.
    """
    classes = problem.targets.shape[1]
    share = 0.5 * tolerance / np.sqrt(classes)
    columns = [_newton(_column(problem, j), share, max_steps) for j in range(classes)]
    theta = np.column_stack(columns)
    if not float(np.linalg.norm(gradient(problem, theta))) <= tolerance:
        raise NotMinimisedError(
            f"the solver stopped at a gradient norm above the {tolerance:.3g} that the guarantee needs: nothing is "
            "released"
        )
    return theta


def _column(problem: Problem, j: int) -> Problem:
    return problem._replace(targets=problem.targets[:, j], tilt=problem.tilt[:, j])


def _newton(problem: Problem, tolerance: float, max_steps: int) -> FloatArray:
    theta = np.zeros(problem.rows.shape[1])
    for _ in range(max_steps):
        slope = gradient(problem, theta)
        if np.linalg.norm(slope) <= tolerance:
            break
        theta = _step(problem, theta, slope, -cho_solve(cho_factor(_hessian(problem, theta)), slope))
    return theta


def _hessian(problem: Problem, theta: FloatArray) -> FloatArray:
    z, y, ridge, _, loss, _ = problem
    weighted = z * problem.weighed(loss.curvature(z @ theta, y))[:, None]
    return np.asarray(z.T @ weighted / len(z) + ridge * np.eye(z.shape[1]))


def _objective(problem: Problem, theta: FloatArray) -> float:
    z, y, ridge, tilt, loss, _ = problem
    return float(problem.weighed(loss.value(z @ theta, y)).mean() + ridge / 2 * theta @ theta + tilt @ theta / len(z))


def _step(problem: Problem, theta: FloatArray, slope: FloatArray, direction: FloatArray) -> FloatArray:
    """Halve the step until it descends; near the minimum rounding hides descent and the full step is right."""
    start, along = _objective(problem, theta), float(slope @ direction)
    rounding = 1e-14 * (1 + abs(start))
    scale = 1.0
    while scale > 1e-10:
        candidate = theta + scale * direction
        if _objective(problem, candidate) <= start + _ARMIJO * scale * along + rounding:
            return candidate
        scale /= 2
    return theta + direction
