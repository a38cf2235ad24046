"""Statistical audit of gcon and gcon-ssp on worst-case pairs: below ε as built, above it with half the noise."""

import math

import numpy as np
import pytest

from discreet.audit.bounds import epsilon_lower_bound
from discreet.graph.graph import Graph
from discreet.mechanisms import gaussian, objective
from discreet.mechanisms.losses import SoftMargin
from discreet.mechanisms.objective import ObjectiveQuery
from discreet.ops.restart import propagate, restart_sensitivity, transition
from discreet.privacy import events
from discreet.privacy.gaussian import gaussian_mu
from discreet.privacy.plan import Stage

EPSILON, DELTA, RUNS = 1.0, 1e-3, 4000
FALSE_ALARM = 1e-6
both_kinds = pytest.mark.parametrize(
    ("kind", "alpha", "steps"), [("two nodes", 0.05, [1]), ("double star", 0.3, [math.inf])]
)


def pair(kind):
    """Two graphs that differ in the edge {0, 1}: two nodes, or two stars joined at their hubs."""
    leaves = 0 if kind == "two nodes" else 80
    source = [0] * leaves + [1] * leaves
    target = list(range(2, 2 + 2 * leaves))
    side = np.array([0, 1] + [0] * leaves + [1] * leaves)
    features = (1.0 - 2.0 * side)[:, None]
    graphs = [
        Graph.from_edges(source + more[0], target + more[1], features, side, directed=False, num_classes=2)
        for more in (([], []), ([0], [1]))
    ]
    return graphs, features, side


def rows_of(kind, alpha, steps):
    graphs, features, side = pair(kind)
    # one column of targets: a budget shared by several columns is harder to see in one number
    return [propagate(transition(g), features, alpha, steps) for g in graphs], side[:, None].astype(float)


def lower_bound(statistic_0, statistic_1, *, alpha=0.05, gaussian=False):
    """ε that the best test of one number proves with confidence 1 − α."""
    found = epsilon_lower_bound({"x": statistic_0}, {"x": statistic_1}, DELTA, alpha, gaussian=gaussian)
    return found.epsilon_if_gaussian if gaussian else found.epsilon


def gcon_runs(kind, alpha, steps, monkeypatch, rate_factor):
    """One number of each run on both sides, under fresh noise."""
    values, targets = rows_of(kind, alpha, steps)
    event = objective.draft_event(EPSILON, DELTA)
    box = event.events[0]
    psi = restart_sensitivity(alpha, steps)
    query = ObjectiveQuery(len(targets), 1, 1, psi, SoftMargin(1), box.epsilon, box.delta, 0.9)
    ridge = 1000 * objective.ridge_floor(query)  # where the bounds are tightest
    stage = objective.objective_stage("minimiser", "?", "?", query, ridge, event, "soft-margin")
    honest = objective.noise_rate
    monkeypatch.setattr(objective, "noise_rate", lambda q, r: rate_factor * honest(q, r))
    found = []
    rng = np.random.default_rng()
    for rows in values:
        value = np.hstack([rows, targets])
        thetas = np.array([objective.release(value, stage, rng) for _ in range(RUNS)])
        found.append(thetas[:, 0, 0])  # along x₁ − x₂, which is one-dimensional here
    return found


@both_kinds
def test_gcon_stays_below_epsilon(kind, alpha, steps, monkeypatch):
    assert lower_bound(*gcon_runs(kind, alpha, steps, monkeypatch, 1.0), alpha=FALSE_ALARM) <= EPSILON


@pytest.mark.chance
@both_kinds
def test_the_audit_of_gcon_comes_near_and_half_the_noise_is_caught(kind, alpha, steps, monkeypatch):
    honest = lower_bound(*gcon_runs(kind, alpha, steps, monkeypatch, 1.0))
    monkeypatch.undo()
    planted = lower_bound(*gcon_runs(kind, alpha, steps, monkeypatch, 2.0))
    print(f"gcon, {kind}: lower bound {honest:.2f}, with half the noise {planted:.2f}, of epsilon {EPSILON}")
    assert honest > 0.3 * EPSILON
    assert planted > EPSILON


@both_kinds
def test_gcon_ssp_stays_below_epsilon_and_half_the_noise_is_caught(kind, alpha, steps):
    """Xᵀ·R_m·Y with centred labels: the projection of the released matrix on the difference of the two values."""
    graphs, features, side = pair(kind)
    labels = np.eye(2)[side] - 0.5
    values = [features.T @ propagate(transition(g), labels, alpha, steps) for g in graphs]
    sensitivity = restart_sensitivity(alpha, steps) * math.sqrt(0.5)
    direction = values[1] - values[0]
    assert np.linalg.norm(direction) <= sensitivity * (1 + 1e-12)
    bounds = []
    for factor in (1.0, 0.5):
        stage = Stage(
            "moments",
            "?",
            "gaussian",
            sensitivity,
            "l2",
            "?",
            events.GaussianDpEvent(1 / gaussian_mu(EPSILON, DELTA)),
            values[0].shape,
        ).scaled(factor)
        runs = [
            np.array(
                [np.sum(gaussian.release(v, stage, np.random.default_rng((n, i))) * direction) for i in range(RUNS)]
            )
            for n, v in enumerate(values)
        ]
        bounds.append(lower_bound(*runs, gaussian=True))
    print(f"gcon-ssp, {kind}: lower bound {bounds[0]:.2f}, with half the noise {bounds[1]:.2f}, of epsilon {EPSILON}")
    assert bounds[0] <= EPSILON
    assert bounds[1] > EPSILON
