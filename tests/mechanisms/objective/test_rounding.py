"""What double precision does to a perturbed minimiser, against arithmetic of 50 digits on rows built to cancel."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import gamma

from discreet.errors import ParameterError
from discreet.mechanisms.bits import BitStream
from discreet.mechanisms.objective import minimise as solver
from discreet.mechanisms.objective import perturbation as objective
from discreet.mechanisms.objective.losses import PseudoHuber, SoftMargin
from discreet.mechanisms.objective.minimise import Problem, gradient, minimise
from discreet.mechanisms.objective.rounding import Rounding
from discreet.mechanisms.objective.tilt import noise_matrix
from discreet.ops.restart import INFINITE, Walk, propagate
from discreet.privacy.levels import EdgeLevel
from discreet.queries.propagated import PropagatedRows
from tests.queries.test_propagated import graph_of

LOSSES = [SoftMargin(2), PseudoHuber(2, 0.1), PseudoHuber(2, 1.0)]
ROWS, WIDTH = 600, 3  # more rows than one product adds up


def rounding(loss, **changes):
    given = Rounding(
        rows=ROWS, width=WIDTH, classes=2, loss=loss, ridge=0.02, rate=0.05, epsilon=1.0, delta=1e-5, row_error=0.0
    )
    return replace(given, **changes)


def hostile_rows(kind, rng):
    z = rng.standard_normal((ROWS, WIDTH))
    if kind == "cancelling":  # slopes of rows that nearly agree, with opposite signs
        z[1::2] = -z[::2] * (1 + 1e-15)
    if kind == "aligned":
        z[:] = [1.0, 1e-9, -1e-16]
    z /= np.linalg.norm(z, axis=1, keepdims=True) * (1 + 1e-12)
    return z * (10.0 ** -rng.integers(0, 12, size=(ROWS, 1)) if kind == "uneven" else 1.0)


def exact_slope(loss, x, y):
    if isinstance(loss, SoftMargin):
        return (1 / (1 + mpmath.exp(-x)) - y) / loss.classes
    return (x - y) / (mpmath.sqrt(1 + ((x - y) / mpmath.mpf(loss.width)) ** 2) * loss.classes)


def exact_gradient(problem, theta, rows=None):
    """Of one class, in 50 digits."""
    rows = [[mpmath.mpf(float(v)) for v in row] for row in problem.rows] if rows is None else rows
    shares = np.ones(len(rows)) if problem.shares is None else problem.shares
    point = [mpmath.mpf(float(v)) for v in theta]
    total = [mpmath.mpf(float(v)) for v in problem.tilt]
    for row, y, share in zip(rows, problem.targets, shares, strict=True):
        pull = exact_slope(problem.loss, sum(a * b for a, b in zip(row, point, strict=True)), mpmath.mpf(float(y)))
        total = [sum_ + a * pull * mpmath.mpf(float(share)) for sum_, a in zip(total, row, strict=True)]
    return [a / len(rows) + mpmath.mpf(problem.ridge) * b for a, b in zip(total, point, strict=True)]


def norm(numbers):
    return float(mpmath.sqrt(sum(number**2 for number in numbers)))


def hostile_problem(loss, kind, rng):
    z = hostile_rows(kind, rng)
    bound = rounding(loss)
    theta = rng.standard_normal(WIDTH)
    theta *= bound.theta_norm / np.linalg.norm(theta)
    tilt = -z.T @ loss.slope(z @ theta, 0.0) - ROWS * bound.ridge * theta  # so that the gradient is what rounding left
    tilt *= min(1.0, (bound._pull - loss.c1) * ROWS / np.linalg.norm(tilt))
    return Problem(z, rng.integers(0, 2, ROWS).astype(float), bound.ridge, tilt, loss, rng.random(ROWS)), theta


@pytest.mark.parametrize("kind", ["cancelling", "aligned", "uneven"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_computed_gradient_is_as_near_as_is_proved(loss, kind):
    problem, theta = hostile_problem(loss, kind, np.random.default_rng(3))
    with mpmath.workdps(50):
        exact = exact_gradient(problem, theta)
        off = norm([mpmath.mpf(float(a)) - b for a, b in zip(gradient(problem, theta), exact, strict=True)])
        rough = gradient(problem._replace(rows=problem.rows.astype(np.float32).astype(float)), theta)
        rough_off = norm([mpmath.mpf(float(a)) - b for a, b in zip(rough, exact, strict=True)])
    bound = rounding(loss).of_the_machine(rounding(loss).theta_norm)
    assert off <= bound < 1e-10
    assert kind == "aligned" or rough_off > bound  # rows in single precision are not


@pytest.mark.parametrize("steps", [(INFINITE,), (0, 2, INFINITE)])
def test_computed_rows_are_as_near_exact_propagation_as_is_proved(steps):
    """A star and a path on it, so that one row adds up nearly all; exact propagation in 50 digits."""
    n, width, alpha = 120, 2, 0.3
    edges = {(0, leaf) for leaf in range(1, 90)} | {(node, node + 1) for node in range(89, n - 1)}
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, width)) * 10.0 ** -rng.integers(0, 9, size=(n, 1))
    x[1::2] = -x[::2] * (1 + 1e-14)
    x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True)) * (1 + 1e-10)
    query = PropagatedRows(
        EdgeLevel(), alpha, steps, True, n, width * len(steps), 2, "soft-margin", 1.0, 1.0, num_nodes=n
    )
    _, private = query.level.split(graph_of(n, edges).with_masks(np.arange(n), None, None))
    found = query.spread(private, x)
    near = {node: [node] for node in range(n)}
    for one, two in edges:
        near[one].append(two)
        near[two].append(one)
    with mpmath.workdps(50):
        restart = mpmath.mpf(alpha)
        start = [[mpmath.mpf(float(v)) for v in row] for row in x]

        def walked(m):
            rows = start
            for _ in range(m):
                rows = [
                    [
                        (1 - restart) * mpmath.fsum(rows[j][k] for j in near[i]) / len(near[i]) + restart * start[i][k]
                        for k in range(width)
                    ]
                    for i in range(n)
                ]
            return rows

        parts = [walked(160 if m == INFINITE else m) for m in steps]
        for i in range(n):
            exact = [number / len(steps) for part in parts for number in part[i]]
            off = norm([mpmath.mpf(float(a)) - b for a, b in zip(found[i], exact, strict=True)])
            assert off <= query.row_error
    assert query.row_error < 1e-12
    single = propagate(Walk(private.graph), x.astype(np.float32), alpha, [2])
    with mpmath.workdps(50):
        pairs = zip(single, walked(2), strict=True)
        off = [norm([mpmath.mpf(float(a)) - b for a, b in zip(*pair, strict=True)]) for pair in pairs]
    assert max(off) > query.row_error  # in single precision they are not


def test_the_logistic_function_is_as_near_as_is_assumed():
    points = np.concatenate([np.linspace(-40, 40, 3001), np.random.default_rng(0).standard_normal(1000) * 10])
    with mpmath.workdps(40):
        off = max(abs(mpmath.mpf(float(expit(x))) - 1 / (1 + mpmath.exp(-mpmath.mpf(float(x))))) for x in points)
    assert off <= 2.0**-51  # the proof assumes 2⁻⁴⁸


@pytest.mark.parametrize("width", [1, 7, 64, 1024])
def test_quantiles_of_the_erlang_law_are_as_near_as_is_assumed(width):
    for chance in (0.05, 1e-5, 1e-12, 1e-60):
        found = gamma.isf(chance, width)
        with mpmath.workdps(40):
            exact = mpmath.gammainc(width, mpmath.mpf(found), regularized=True)
            assert abs(exact / mpmath.mpf(chance) - 1) < 1e-11


# -------------------------------------------------------------------- the solver


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_where_newton_gives_up_descent_arrives(loss, monkeypatch):
    bound = rounding(loss)
    problem, _ = hostile_problem(loss, "cancelling", np.random.default_rng(1))
    problem = problem._replace(targets=problem.targets[:, None], tilt=problem.tilt[:, None])
    tolerance = bound.gradient_norm(1e-10) / 2
    expected = minimise(problem, tolerance)
    for broken in (None, "raises"):
        if broken is None:
            monkeypatch.setattr(solver, "_newton", lambda *given: None)
        else:
            monkeypatch.undo()
            monkeypatch.setattr(solver, "cho_factor", lambda matrix: (_ for _ in ()).throw(np.linalg.LinAlgError))
        found = minimise(problem, tolerance)
        assert np.linalg.norm(gradient(problem, found)) <= tolerance
        np.testing.assert_allclose(found, expected, atol=2 * tolerance / problem.ridge)


def stage(nodes=40, n=40, d=2, classes=2, epsilon=1.0, **changes):
    query = PropagatedRows(
        EdgeLevel(), 0.6, (1,), True, n, d, classes, loss="soft-margin", loss_width=1.0, ridge=1.0, num_nodes=nodes
    )
    return objective.objective_stage("minimiser", replace(query, **changes), objective.draft_event(epsilon, 1e-5))


def test_the_gradient_norm_of_the_plan_covers_rounding_whatever_the_size():
    """Once more from the formula of the dominant term: rows of a graph of 10⁸ nodes."""
    for nodes in (40, 10**4, 10**8):
        query = stage(nodes).query
        assert query.gradient_norm >= max(1e-10, 4 * math.sqrt(2) * (nodes + 16) * 2.0**-52 / 0.6 * query_c1(query))
        assert 0 < 4 * query.rounding <= query.gradient_norm
    assert stage(40).query.gradient_norm == 1e-10


def query_c1(query):
    return objective.loss_of(query).c1


def test_a_ridge_below_what_double_precision_carries_is_refused():
    with pytest.raises(ParameterError, match="too small for double precision"):
        rounding(SoftMargin(2), ridge=1e-9, row_error=1e-6).gradient_norm(1e-10)


def given_rows():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((40, 2))
    return z / np.maximum(1, np.linalg.norm(z, axis=1, keepdims=True)), np.eye(2)[rng.integers(2, size=40)]


def problem_of(given, key):
    """The objective that a release with this key minimises."""
    z, y = given_rows()
    return Problem(
        z, y, given.query.total_ridge, noise_matrix(2, 2, given.query.noise_rate, BitStream(key)), SoftMargin(2)
    )


def releases(count=60):
    """Minimisers, found once more from the same tilts, and what was released of them; one row each."""
    given = stage()
    keys = [bytes([number]) * 32 for number in range(count)]
    minimisers = [minimise(problem_of(given, key), 1e-13).ravel() for key in keys]
    answers = [objective.release(np.hstack(given_rows()), given, BitStream(key)).ravel() for key in keys]
    scale = 2e-10 / given.query.total_ridge * given.event.events[1].noise_multiplier
    return np.array(minimisers), np.array(answers), scale


def test_what_is_released_is_the_exact_minimiser_within_its_noise():
    """The exact gradient, in 50 digits, at what the solver found before noise was added."""
    given = stage()
    problem = problem_of(given, bytes(32))
    theta = minimise(problem, given.query.gradient_norm / 2)
    with mpmath.workdps(50):
        columns = [problem._replace(targets=problem.targets[:, j], tilt=problem.tilt[:, j]) for j in range(2)]
        norms = [norm(exact_gradient(column, theta[:, j])) for j, column in enumerate(columns)]
    assert math.hypot(*norms) <= given.query.gradient_norm


def test_the_noise_on_the_minimiser_has_the_scale_of_the_plan():
    """What is left besides the minimiser is noise, whose scale follows from γ and Λ."""
    minimisers, answers, scale = releases()
    spread = float(np.sqrt(np.mean(np.square((answers - minimisers) / scale))))
    assert 0.8 < spread < 1.2  # 240 numbers: four standard deviations
