"""The exact minimiser, as near as a gradient norm says: one small convex problem per class, in double precision.

Newton's method, damped, takes about ten steps. It has no proof in floating point, so a class at which it does not
arrive is handed to plain descent, which has one (``rounding``): there is no graph on which nothing comes out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from discreet.arrays import FloatArray
from discreet.errors import DiscreetError
from discreet.mechanisms.objective.losses import ScalarLoss
from discreet.ops.moments import cross_moments

MAX_NEWTON_STEPS = 200
"""Strongly convex problems take about ten; what takes more is left to descent."""
_ARMIJO = 1e-4  # the share of the predicted descent that a step must bring


class NotMinimisedError(DiscreetError, RuntimeError):
    """The solver stopped above the gradient norm that the guarantee needs; nothing may be released.

    Where the norm is that of ``rounding``, this cannot happen on a machine that keeps its assumptions.
    """


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
    """∇L at Θ, all classes side by side (d × c), or of one; ``rounding`` says how far off it may be."""
    z, y, ridge, tilt, loss, _ = problem
    return np.asarray((cross_moments(z, problem.weighed(loss.slope(z @ theta, y))) + tilt) / len(z) + ridge * theta)


def minimise(problem: Problem, tolerance: float, max_steps: int = MAX_NEWTON_STEPS) -> FloatArray:
    """Θ with ‖∇L(Θ)‖_F ≤ tolerance over all classes together.

    Guarantee: the gradient is evaluated afresh at the very array that is returned; above the tolerance
    :class:`NotMinimisedError` is raised instead. L is ridge-strongly convex, hence ‖Θ − Θ*‖_F ≤ tolerance/ridge.
    """
    classes = problem.targets.shape[1]
    share = 0.5 * tolerance / np.sqrt(classes)
    columns = [_solve_column(_column(problem, j), share, max_steps) for j in range(classes)]
    theta = np.column_stack(columns)
    if not float(np.linalg.norm(gradient(problem, theta))) <= tolerance:
        raise NotMinimisedError(
            f"the solver stopped at a gradient norm above the {tolerance:.3g} that the guarantee needs: nothing is "
            "released"
        )
    return theta


def _column(problem: Problem, j: int) -> Problem:
    return problem._replace(targets=problem.targets[:, j], tilt=problem.tilt[:, j])


def _solve_column(problem: Problem, tolerance: float, max_steps: int) -> FloatArray:
    with np.errstate(all="ignore"):  # a warning would tell of private values
        theta = _newton(problem, tolerance, max_steps)
    return _descend(problem, tolerance) if theta is None else theta


def _newton(problem: Problem, tolerance: float, max_steps: int) -> FloatArray | None:
    """θ within the tolerance, or None."""
    theta = np.zeros(problem.rows.shape[1])
    try:
        for _ in range(max_steps):
            slope = gradient(problem, theta)
            if np.linalg.norm(slope) <= tolerance:
                return theta
            theta = _step(problem, theta, slope, -cho_solve(cho_factor(_hessian(problem, theta)), slope))
    except (LinAlgError, ValueError):  # a Hessian that rounding made indefinite, or numbers that are none
        pass
    return None


def _descend(problem: Problem, tolerance: float) -> FloatArray:
    """θ within the tolerance by steps of one length; after as many as the proof in ``rounding`` needs, where it is."""
    theta = np.zeros(problem.rows.shape[1])
    for _ in range(descent_steps(problem, tolerance)):
        slope = gradient(problem, theta)
        if np.linalg.norm(slope) <= tolerance:
            break
        theta = theta - slope / (problem.ridge + 2 * problem.loss.c2)
    return theta


def descent_steps(problem: Problem, tolerance: float) -> int:
    """k with (Λ + 2c₂)·qᵏ·t at most a quarter of the tolerance, and one to see it: public but for the tilt's norm."""
    steep = problem.ridge + 2 * problem.loss.c2
    norm = 2 * (problem.loss.c1 + float(np.linalg.norm(problem.tilt)) / len(problem.rows)) / problem.ridge
    short = math.log(max(4 * steep * norm / tolerance, 1.0)) / -math.log1p(-problem.ridge / steep)
    return math.ceil(short) + 2


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
