"""Objective perturbation: the equations one by one, and ε once more by integrating the density of the release."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from discreet.errors import ParameterError, PlanViolationError
from discreet.mechanisms.objective import minimise as minimise_module
from discreet.mechanisms.objective import perturbation as objective
from discreet.mechanisms.objective.losses import PseudoHuber, SoftMargin
from discreet.mechanisms.objective.minimise import NotMinimisedError
from discreet.mechanisms.objective.perturbation import ObjectiveFacts
from discreet.privacy import events
from discreet.privacy.accountants import spend
from discreet.privacy.events.gaussian import gaussian_epsilon
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.plan import Stage
from discreet.privacy.query import Exposed
from discreet.queries.propagated import PropagatedRows


def facts(**changes):
    given = ObjectiveFacts(
        rows=500,
        width=6,
        classes=3,
        sensitivity=1.2,
        loss=SoftMargin(3),
        epsilon=1.0,
        delta=1e-5,
        omega=0.9,
        bounds="paper",
    )
    return replace(given, **changes)


# -------------------------------------------------------------------- equations, each by itself


def test_radius_quantile_is_equation_21():
    q = facts()
    density = lambda x: x ** (q.width - 1) * math.exp(-x) / math.factorial(q.width - 1)  # noqa: E731
    tail = integrate.quad(density, objective.radius_quantile(q), np.inf, epsabs=1e-14)[0]
    assert tail == pytest.approx(q.delta / q.classes, rel=1e-6)


def test_ridge_floor_is_equation_22():
    q = facts()
    expected = 3 * (1 / 12) * 1.2 * objective.radius_quantile(q) / (500 * 0.9 * 1.0)
    assert objective.ridge_floor(q) == pytest.approx(expected)


def test_norm_bound_is_equation_23_and_solves_lemma_9():
    q, ridge = facts(), 0.2
    csf = objective.radius_quantile(q)
    expected = (500 * 0.9 / 3 + 3 / 3 * 1.2 * csf) / (500 * 0.9 * ridge - 3 / 12 * 1.2 * csf)
    bound = objective.norm_bound(q, ridge)
    assert bound == pytest.approx(expected)
    lowest_rate = 0.9 * 1.0 / (3 * (1 / 3 + bound / 12) * 1.2)
    assert lowest_rate * 500 * (ridge * bound - 1 / 3) == pytest.approx(csf)


def test_the_sharp_norm_bound_solves_its_own_inequality_and_is_smaller():
    sharp, paper, ridge = facts(bounds="sharp"), facts(), 0.2
    bound = objective.norm_bound(sharp, ridge)
    assert bound < objective.norm_bound(paper, ridge)
    lowest_rate = 0.9 / (3 * sharp.loss.steepness(bound) * 1.2)
    reached = lowest_rate * 500 * (ridge * bound - 1 / 6)
    assert reached >= objective.radius_quantile(sharp)
    assert reached == pytest.approx(objective.radius_quantile(sharp), rel=1e-6)


def test_the_sharp_norm_bound_holds_where_doubles_cancel():
    """With so many rows its two sides are differences of the last few digits: compared as fractions."""
    for number in range(40):
        q, ridge = facts(bounds="sharp", rows=10**13), 0.01 * 1.1**number
        bound = objective.norm_bound(q, ridge)
        reached = (
            Fraction(q.rows) * Fraction(q.omega * q.epsilon) * (Fraction(ridge) * Fraction(bound) - Fraction(1, 6))
        )
        reach = q.classes * q.sensitivity * objective.radius_quantile(q) * q.loss.steepness(bound)
        assert reached >= Fraction(reach)


def test_jacobian_epsilon_is_equation_24():
    q, ridge = facts(), 0.2
    shift = (2 / 12 + objective.norm_bound(q, ridge) / (18 * math.sqrt(3))) * 1.2
    assert objective.jacobian_epsilon(q, ridge) == pytest.approx(18 * math.log(1 + shift / (6 * 500 * ridge)))


def test_extra_ridge_is_equation_17_and_brings_the_jacobian_within_its_share():
    roomy, tight = facts(), facts(rows=30, epsilon=0.5)
    assert objective.extra_ridge(roomy, 0.5) == 0
    ridge = 1.2 * objective.ridge_floor(tight)
    extra = objective.extra_ridge(tight, ridge)
    assert extra > 0
    shift = objective.jacobian_shift(tight, ridge)
    assert ridge + extra == pytest.approx(3 * shift / (30 * 0.1 * 0.5))
    assert objective.jacobian_epsilon(tight, ridge, ridge + extra) <= 0.1 * 0.5


def test_noise_rate_is_equation_18():
    q, ridge = facts(), 0.2
    budget = max(1.0 - objective.jacobian_epsilon(q, ridge), 0.9)
    expected = budget / (3 * (1 / 3 + objective.norm_bound(q, ridge) / 12) * 1.2)
    assert objective.noise_rate(q, ridge) == pytest.approx(expected)
    assert objective.noise_rate(facts(bounds="sharp"), ridge) > expected


def test_a_ridge_at_its_floor_is_refused_with_the_floor():
    q = facts()
    floor = objective.ridge_floor(q)
    with pytest.raises(ParameterError, match=f"floor {floor:.6g}"):
        objective.norm_bound(q, floor)


@pytest.mark.parametrize("omega", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_omega_outside_its_range_is_refused(omega):
    with pytest.raises(ParameterError, match="omega"):
        facts(omega=omega)


def test_noise_is_uniform_in_direction_and_erlang_in_radius():
    b = objective.noise_matrix(5, 4000, 2.5, np.random.default_rng(0))
    radius = np.linalg.norm(b, axis=0)
    assert stats.kstest(radius, stats.gamma(5, scale=1 / 2.5).cdf).pvalue > 1e-3
    first = (b / radius)[0]
    # the first coordinate of a uniform direction in five dimensions: u² is Beta(1/2, 2)
    assert stats.kstest(first**2, stats.beta(0.5, 2).cdf).pvalue > 1e-3
    assert abs(np.mean(first)) < 4 / math.sqrt(5 * 4000)


# -------------------------------------------------------------------- ε a second way: integrate the density


def exact_epsilon(z, neighbour, targets, q, ridge, *, rate_factor=1.0, shares=1.0):
    """The least ε of the exact minimiser at q.delta for one-dimensional rows, from its density, both ways."""
    noise = objective.perturbation(q, ridge)
    reach = 8 * objective.norm_bound(q, ridge)
    grid = np.linspace(-reach, reach, 8001)
    step = grid[1] - grid[0]

    def density(rows, y):
        scores = rows[:, None] * grid
        b = -((shares * rows) @ q.loss.slope(scores, y[:, None]) + len(rows) * noise.total_ridge * grid)
        jacobian = (shares * rows**2) @ q.loss.curvature(scores, y[:, None]) + len(rows) * noise.total_ridge
        rate = noise.rate * rate_factor
        return jacobian * rate / 2 * np.exp(-rate * np.abs(b)) + 1e-300

    def divergence(p, r, epsilon):
        """Hockey stick of the product over classes, losses on a grid of 0.005."""
        total, low = np.ones(1), 0
        for one, two in zip(p, r, strict=True):
            loss = np.round(np.clip(np.log(one / two), -80, 80) / 0.005).astype(int)
            total = np.convolve(total, np.bincount(loss - loss.min(), weights=one * step))
            low += loss.min()
        losses = (np.arange(len(total)) + low) * 0.005
        return float((total * np.maximum(0, -np.expm1(epsilon - losses))).sum())

    ours = [density(z, targets[:, j]) for j in range(q.classes)]
    theirs = [density(neighbour, targets[:, j]) for j in range(q.classes)]
    low, high = 0.0, 40.0
    for _ in range(25):
        middle = (low + high) / 2
        worst = max(divergence(ours, theirs, middle), divergence(theirs, ours, middle))
        low, high = (middle, high) if worst > q.delta else (low, middle)
    return high


@pytest.mark.parametrize("bounds", ["sharp", "paper"])
@pytest.mark.parametrize("loss", [SoftMargin(2), PseudoHuber(2, 0.1), PseudoHuber(2, 1.0)], ids=repr)
def test_the_exact_minimiser_keeps_its_epsilon(loss, bounds):
    """Two nodes with opposite features, their edge there or not, and random rows; many ridges and budgets."""
    rng = np.random.default_rng(0)
    worst = 0.0
    pairs = [(np.array([1.0, -1.0]), 0.1 * np.array([1.0, -1.0]), np.eye(2))]
    for _ in range(3):
        z = rng.uniform(-1, 1, 4)
        pairs.append((z, np.clip(z + rng.uniform(-0.6, 0.6, 4), -1, 1), np.eye(2)[rng.integers(2, size=4)]))
    for (z, other, targets), epsilon, delta, factor in itertools.product(
        pairs, (0.5, 4.0), (1e-4, 1e-2), (1.2, 2, 100)
    ):
        psi = float(np.abs(z - other).sum())
        q = facts(
            rows=len(z), width=1, classes=2, sensitivity=psi, loss=loss, epsilon=epsilon, delta=delta, bounds=bounds
        )
        found = exact_epsilon(z, other, targets, q, factor * objective.ridge_floor(q))
        worst = max(worst, found / epsilon)
    print(f"{loss} {bounds}: {worst:.3f} of epsilon")
    assert worst <= 1 + 1e-6
    if bounds == "sharp" and isinstance(loss, SoftMargin):
        assert worst > 0.9  # the sharp bounds leave little to gain


@pytest.mark.parametrize("bounds", ["sharp", "paper"])
@pytest.mark.parametrize(
    ("loss", "share"),
    [(SoftMargin(1), 0.5), (PseudoHuber(1, 0.1), 0.994), (PseudoHuber(1, 0.5), 0.893), (PseudoHuber(1, 1.0), 0.706)],
    ids=repr,
)
def test_far_above_the_floor_the_share_of_epsilon_is_that_of_the_slope_at_zero(loss, share, bounds):
    """The figures of docs/gcon.md; the sharp bounds read that slope off the soft margin."""
    q = facts(rows=1, width=1, classes=1, sensitivity=0.2, loss=loss, epsilon=4.0, delta=1e-6, omega=0.5, bounds=bounds)
    ridge = 1000 * objective.ridge_floor(q)
    found = exact_epsilon(np.array([0.5]), np.array([0.3]), np.ones((1, 1)), q, ridge) / 4
    expected = 1.0 if bounds == "sharp" and isinstance(loss, SoftMargin) else share
    assert found == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(("delta", "share"), [(1e-6, 0.447), (1e-12, 0.626), (1e-60, 0.701)])
def test_near_the_floor_tiny_deltas_reach_more_of_the_published_bounds(delta, share):
    """The climb of docs/gcon.md at one place: the tail of Θ reaches where its slope is nearly what is charged."""
    loss = SoftMargin(1)
    q = facts(rows=1, width=1, classes=1, sensitivity=0.28, loss=loss, epsilon=1.12, delta=delta, omega=0.97)
    ridge = 3.5 * objective.ridge_floor(q)
    found = exact_epsilon(np.array([1.0]), np.array([0.72]), np.zeros((1, 1)), q, ridge) / 1.12
    assert found == pytest.approx(share, abs=0.01)


def test_weighed_rows_keep_its_epsilon():
    """Shares from 0 to 1, the planted fault being one of 2: a class that counts for twice what noise was made for."""
    rng = np.random.default_rng(0)
    z, other = np.array([1.0, -1.0, 0.5]), np.array([0.1, -0.1, 0.5])
    q = facts(rows=3, width=1, classes=2, sensitivity=1.8, loss=SoftMargin(2), delta=1e-2, bounds="sharp")
    targets, ridge = np.eye(2)[[0, 1, 1]], 20 * objective.ridge_floor(q)
    for shares in (*rng.random((6, 3)), np.array([1.0, 0.05, 0.05]), np.zeros(3)):
        assert exact_epsilon(z, other, targets, q, ridge, shares=shares) <= 1.0
    assert exact_epsilon(z, other, targets, q, ridge, shares=np.full(3, 2.0)) > 1.5


def test_half_the_noise_breaks_the_promise():
    """The planted fault: β doubled. The integration above sees it at once."""
    z, other = np.array([1.0, -1.0]), np.array([0.1, -0.1])
    q = facts(rows=2, width=1, classes=2, sensitivity=1.8, loss=SoftMargin(2), delta=1e-2, bounds="sharp")
    ridge = 100 * objective.ridge_floor(q)
    assert exact_epsilon(z, other, np.eye(2), q, ridge) <= 1.0
    assert exact_epsilon(z, other, np.eye(2), q, ridge, rate_factor=2) > 1.5


@pytest.mark.parametrize("loss", [SoftMargin(3), PseudoHuber(3, 0.2)], ids=repr)
def test_the_two_steps_of_the_proof_hold_in_several_dimensions(loss):
    """Lemma 8 (how far the noise must move) and Lemma 7 (the ratio of Jacobians), random rows in three dimensions."""
    rng = np.random.default_rng(0)
    steepest = 0.0
    for _ in range(3000):
        radius = float(rng.choice([0.1, 1.0, 5.0, 50.0]))
        theta = rng.standard_normal(3)
        theta *= radius * rng.choice([rng.random(), 1.0]) / np.linalg.norm(theta)
        z, other = (v / max(1, np.linalg.norm(v)) for v in rng.standard_normal((2, 4, 3)) * rng.choice([0.3, 2.0]))
        z = z / np.maximum(1, np.linalg.norm(z, axis=1, keepdims=True))
        other = z + rng.choice([0.01, 1.0]) * (other - z)
        y = rng.choice([0.0, 1.0], size=4)
        psi = np.linalg.norm(z - other, axis=1).sum()
        moved = z.T @ loss.slope(z @ theta, y) - other.T @ loss.slope(other @ theta, y)
        steepest = max(steepest, np.linalg.norm(moved) / (loss.steepness(radius) * psi))
        ridge = 4 * rng.choice([0.01, 1.0])
        hessians = [(m.T * loss.curvature(m @ theta, y)) @ m + ridge * np.eye(3) for m in (z, other)]
        log_ratio = abs(np.subtract(*(np.linalg.slogdet(h)[1] for h in hessians)))
        shift = (2 * loss.c2 + loss.c3 * radius) * psi
        assert log_ratio <= 3 * math.log1p(shift / (3 * ridge)) + 1e-12
    assert 0.5 < steepest <= 1 + 1e-9


# -------------------------------------------------------------------- the release


def stage(n=40, d=2, classes=2, epsilon=1.0, delta=1e-5, weighed=False):
    query = PropagatedRows(
        EdgeLevel(),
        0.6,
        (1,),
        True,
        n,
        d,
        classes,
        loss="soft-margin",
        loss_width=1.0,
        ridge=1.0,
        weighed=weighed,
        num_nodes=n,
    )
    return objective.objective_stage("minimiser", query, objective.draft_event(epsilon, delta))


def rows(n=40, d=2, classes=2):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, d))
    z /= np.maximum(1, np.linalg.norm(z, axis=1, keepdims=True))
    return np.hstack([z, np.eye(classes)[rng.integers(classes, size=n)]])


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 4.0, 16.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 1e-2])
def test_minimiser_and_output_noise_stay_within_the_budget_together(epsilon, delta):
    event = objective.draft_event(epsilon, delta)
    box, gaussian = event.events
    bounds = spend(event, delta)
    assert min(bounds.values()) <= epsilon
    # a second way: basic composition of the black box with the exact Gaussian
    basic = box.epsilon + gaussian_epsilon(1 / gaussian.noise_multiplier, delta - box.delta)
    assert basic <= epsilon
    assert min(bounds.values()) >= 0.9 * box.epsilon  # and hardly any of it lies idle


def test_the_release_is_the_minimiser_plus_output_noise():
    given = stage()
    answer = objective.release(rows(), given, np.random.default_rng(3))
    assert answer.shape == given.query.answer_shape
    rng = np.random.default_rng(3)
    tilt = objective.noise_matrix(2, 2, given.query.noise_rate, rng)
    problem = minimise_module.Problem(rows()[:, :2], rows()[:, 2:], given.query.total_ridge, tilt, SoftMargin(2))
    # the Hessian is at most ridge + c₂: so far from the minimiser at least
    gap = np.linalg.norm(minimise_module.gradient(problem, answer)) / (given.query.total_ridge + 0.25)
    std = objective.output_sensitivity(given.query.total_ridge, 1e-10) * given.event.events[1].noise_multiplier
    assert 0 < gap < 10 * std  # not the minimiser itself, but within its noise
    again = objective.release(rows(), given, np.random.default_rng(4))
    assert not np.allclose(again, answer)


def test_output_noise_covers_twice_the_distance_to_the_minimiser():
    assert objective.output_sensitivity(0.5, 1e-10) == pytest.approx(4e-10)


def test_an_early_stop_releases_nothing(monkeypatch):
    monkeypatch.setattr(minimise_module, "descent_steps", lambda problem, tolerance: 1)
    monkeypatch.setattr(objective, "minimise", lambda p, tolerance: minimise_module.minimise(p, tolerance, max_steps=1))
    with pytest.raises(NotMinimisedError):
        objective.release(rows(), stage(), np.random.default_rng(0))


def test_rows_beyond_norm_one_and_targets_outside_the_unit_interval_are_refused():
    with pytest.raises(ParameterError, match="norm at most 1"):
        objective.release(rows() * np.array([3, 3, 1, 1]), stage(), np.random.default_rng(0))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        objective.release(rows() * np.array([1, 1, 2, 2]), stage(), np.random.default_rng(0))


def test_rows_count_by_their_shares():
    """Ones change nothing, a row of share zero is not there, and the noise is the same; beyond one they are refused."""
    plain, weighed = stage(), stage(weighed=True)
    assert plain.event == weighed.event
    assert plain.noise_std == weighed.noise_std

    def found(value, given=weighed):
        return objective.release(value, given, np.random.default_rng(3))

    ones, half = np.ones((40, 1)), np.repeat([[1.0], [0.0]], 20, axis=0)
    np.testing.assert_array_equal(found(np.hstack([rows(), ones])), found(rows(), plain))
    others = rows().copy()
    others[20:, :2] *= -1
    one, two = (found(np.hstack([value, half])) for value in (rows(), others))
    np.testing.assert_array_equal(one, two)
    assert not np.allclose(one, found(rows(), plain))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        found(np.hstack([rows(), 2 * ones]))


def test_without_privacy_the_plain_minimiser_comes_back():
    plain = stage().without_noise()
    one, two = (objective.release(rows(), plain, np.random.default_rng(s)) for s in (0, 1))
    np.testing.assert_array_equal(one, two)
    assert plain.noise_std == 0


def test_the_stage_survives_json():
    given = stage()
    stored = json.loads(json.dumps(given.to_json()))
    read = Stage.from_json(stored)
    assert read.to_json() == stored
    assert (read.event, read.sensitivity, read.noise_std) == (given.event, given.sensitivity, given.noise_std)
    assert isinstance(read.event.events[0], events.ApproximateDpEvent)


def test_the_certificate_names_everything_that_was_chosen():
    assert set(stage().query.parameters()) == {
        *("loss", "loss_width", "classes", "ridge", "gradient_norm", "extra_ridge"),
        *("omega", "bounds", "noise_rate", "noise_std", "rounding"),
    }


def test_a_stage_that_minimises_nothing_is_refused():
    with pytest.raises(PlanViolationError, match="minimises nothing"):
        objective.minimiser_of(Stage.of("other", Exposed()))
