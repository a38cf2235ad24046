"""The minimiser: against an independent optimiser, and its refusal to pass when stopped early."""

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.mechanisms.objective import minimise as solver
from discreet.mechanisms.objective.losses import PseudoHuber, SoftMargin
from discreet.mechanisms.objective.minimise import NotMinimisedError, Problem, gradient, minimise
from discreet.ops.rows import unit_rows


def problem(loss, ridge=0.01, tilt=30.0, n=200, d=5, seed=0):
    rng = np.random.default_rng(seed)
    z = unit_rows(rng.standard_normal((n, d)))
    y = np.eye(loss.classes)[rng.integers(loss.classes, size=n)]
    return Problem(z, y, ridge, tilt * rng.standard_normal((d, loss.classes)), loss, rng.random(n))


@pytest.mark.parametrize("loss", [SoftMargin(3), PseudoHuber(3, 0.1), PseudoHuber(3, 1.0)], ids=repr)
@pytest.mark.parametrize(("ridge", "tilt"), [(1e-4, 0.0), (0.01, 30.0), (2.0, 1e4)])
def test_agrees_with_an_independent_optimiser(loss, ridge, tilt):
    given = problem(loss, ridge, tilt)
    theta = minimise(given, 1e-10)
    assert np.linalg.norm(gradient(given, theta)) <= 1e-10

    def total(flat):
        t = flat.reshape(theta.shape)
        scores = given.rows @ t
        fit = (given.shares @ loss.value(scores, given.targets)).sum() / len(scores)
        return fit + ridge / 2 * (t**2).sum() + (given.tilt * t).sum() / len(scores)

    reference = minimize(
        total,
        np.zeros(theta.size),
        jac=lambda f: gradient(given, f.reshape(theta.shape)).ravel(),
        method="L-BFGS-B",
        options={"maxiter": 10000, "ftol": 1e-16, "gtol": 1e-10},
    )
    assert total(theta.ravel()) <= reference.fun + 1e-12 * (1 + abs(reference.fun))


def test_the_gradient_is_that_of_the_perturbed_objective():
    given = problem(SoftMargin(2), n=20, d=3)
    theta = np.random.default_rng(1).standard_normal((3, 2))

    def total(t):
        fit = (given.shares @ given.loss.value(given.rows @ t, given.targets)).sum() / 20
        return fit + given.ridge / 2 * (t**2).sum() + (given.tilt * t).sum() / 20

    numeric = np.zeros_like(theta)
    for at in np.ndindex(theta.shape):
        step = np.zeros_like(theta)
        step[at] = 1e-6
        numeric[at] = (total(theta + step) - total(theta - step)) / 2e-6
    np.testing.assert_allclose(gradient(given, theta), numeric, atol=1e-8)


def test_a_solver_stopped_early_raises(monkeypatch):
    """Newton after two steps, and descent after one: no machine should, but if one does, nothing is released."""
    monkeypatch.setattr(solver, "descent_steps", lambda problem, tolerance: 1)
    with pytest.raises(NotMinimisedError, match="nothing is released"):
        minimise(problem(SoftMargin(3)), 1e-10, max_steps=2)
