"""The statistical audit on honest methods: nothing found, bounds below ε, and near it where stages are plain."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from discreet.audit.attacks import attack_on, register_attack
from discreet.audit.small_graphs import small_graph
from discreet.audit.statistical import StatisticalReport, audit_curator, audit_pipeline, worst_inputs
from discreet.audit.trials import CuratorTask, run_trials
from discreet.audit.worst_pairs import shaped_pairs, worst_pair
from discreet.methods.base import NodeClassifier
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NodeLevel, parse_level
from discreet.privacy.plan import Plan, make_plan
from tests.contracts.cases import make
from tests.mechanisms.steps import steps_stage

DELTA = 1e-3
ALPHA = 1e-6  # the chance of a false alarm: noise comes from entropy, and the suite runs often


def honest(name: str, spec: str, epsilon: float, **parameters: object) -> NodeClassifier:
    privacy = Privacy(parse_level(spec), epsilon, DELTA)
    return make(name, spec).set_params(privacy=privacy, insecure_noise_seed=None, **parameters)


def gaussian_plan(epsilon: float) -> Plan:
    return honest("gap", "edge", epsilon, hops=2).plan(small_graph(np.random.default_rng(0)).public)


GAUSSIAN_RUNS = {1.0: 15_000, 4.0: 3_000, 8.0: 3_000}
"""By ε: a bound that may be wrong once in a million audits needs many runs to show anything of a small one."""
every_epsilon = pytest.mark.parametrize(
    "epsilon", [pytest.param(1.0, marks=pytest.mark.slow), 4.0, pytest.param(8.0, marks=pytest.mark.slow)]
)


@cache
def audited_gaussians(epsilon: float, attempt: int) -> StatisticalReport:
    """Run once for the tests that look at the same outcome; a further attempt draws anew."""
    return audit_curator(gaussian_plan(epsilon), runs=GAUSSIAN_RUNS[epsilon], alpha=ALPHA)


@every_epsilon
def test_plain_gaussian_stages_pass(epsilon: float) -> None:
    found = audited_gaussians(epsilon, 1)
    assert found.passed, found.violations


@pytest.mark.chance
@every_epsilon
def test_plain_gaussian_stages_come_near(epsilon: float, attempt: int) -> None:
    found = audited_gaussians(epsilon, attempt)
    assert found.curator is not None
    # At ε = 4 the bounds are 0.29 ± 0.03 and 0.65 ± 0.06 of it; `discreet audit` makes more runs.
    assert found.curator.epsilon > 0.15 * epsilon
    assert found.curator.epsilon_if_gaussian > 0.3 * epsilon


def steps_plan(epsilon: float, batch_size: int | None, sampling: str, change: str) -> Plan:
    stage = steps_stage(
        parameters=5, examples=8, steps=2, batch_size=batch_size, sampling=sampling, clip_norm=0.5, touched=3,
        change=change,
    )  # fmt: skip
    return make_plan("audit", Privacy(NodeLevel(1, change=change), epsilon, 0.01), 10, [stage], "weights")


every_batch = pytest.mark.parametrize(
    ("batch_size", "sampling", "change"),
    [(4, "poisson", "replace"), (3, "fixed", "replace"), (None, "poisson", "null")],
)


@cache
def audited_steps(batch_size: int | None, sampling: str, change: str, attempt: int) -> StatisticalReport:
    """Run once for the tests that look at the same outcome; a further attempt draws anew."""
    return audit_curator(steps_plan(4.0, batch_size, sampling, change), runs=1500, alpha=ALPHA)


@every_batch
def test_noisy_steps_pass(batch_size: int | None, sampling: str, change: str) -> None:
    found = audited_steps(batch_size, sampling, change, 1)
    assert found.passed, found.violations


@pytest.mark.chance
@every_batch
def test_noisy_steps_come_near(batch_size: int | None, sampling: str, change: str, attempt: int) -> None:
    found = audited_steps(batch_size, sampling, change, attempt)
    assert found.curator is not None
    # accounting for fixed-size batches is not tight, so its attack is further away
    assert found.curator.epsilon > (0.02 if sampling == "fixed" else 0.15) * 4.0


@pytest.mark.parametrize(("name", "spec"), [("dp-gnn", "node:owned,max_degree=3,change=null"), ("gcon", "edge")])
def test_whole_fits(name: str, spec: str) -> None:
    """Those of gap are looked at beside the faults that are planted in it (tests/soundness)."""
    whole = {"batch_size": None} if name == "dp-gnn" else {}  # exact, so calibrated in no time
    estimator = honest(name, spec, 8.0, **whole)
    pair = worst_pair(estimator, tries=2)
    assert pair.score > 0
    found = audit_pipeline(estimator, pair, runs=70, alpha=ALPHA)
    assert found.passed, found.violations
    assert found.pipeline is not None


def test_the_search_finds_the_worst_there_is() -> None:
    """At edge level the two nodes made by hand meet the sensitivity: (Δ/σ)², and no pair can do more."""
    estimator = honest("gap", "edge", 1.0)
    pair = worst_pair(estimator, tries=5)
    stage = estimator.plan(pair.graph.public).stages[0]
    assert pair.score == pytest.approx((stage.sensitivity / stage.noise_std) ** 2, rel=1e-3)


@pytest.mark.parametrize(
    "spec",
    [
        "edge",
        "edge:directed",
        "neighbor:2,max_degree=3",
        "node:owned,max_degree=3",
        "node:promised",
        "local",
        "local:features",
        "local:labels",
    ],
)
def test_pairs_made_by_hand_are_neighbours(spec: str) -> None:
    level = parse_level(spec)
    for graph, neighbor in shaped_pairs(level):
        one, two = level.view(graph), level.view(neighbor)
        assert one.public == two.public
        rows = (np.asarray(one.features) != np.asarray(two.features)).any(axis=1) | (one.labels != two.labels)
        changed = (one.adjacency != two.adjacency).nnz
        assert rows.sum() <= (0 if spec.startswith("edge") else 1)
        assert changed == {"edge": 2, "edge:directed": 1}.get(spec, changed)
        assert (one.labels == two.labels).all() == (spec in ("edge", "edge:directed", "local:features"))
        assert (np.asarray(one.features) == np.asarray(two.features)).all() == (
            spec in ("edge", "edge:directed", "local:labels")
        )


def test_workers_draw_noise_of_their_own() -> None:
    """Two spawned workers and this process: no answer twice."""
    plan = honest("gap", "edge", 1.0).plan(small_graph(np.random.default_rng(0)).public)
    inputs = worst_inputs(plan)
    assert inputs is not None
    spread = run_trials(lambda side, n: CuratorTask(plan, inputs, side, n), 600, workers=2)
    here = run_trials(lambda side, n: CuratorTask(plan, inputs, side, n), 300)
    prints = np.concatenate([part.prints for part in (*spread, *here)])
    assert len(np.unique(prints)) == len(prints) == 1800


def test_an_unknown_mechanism_is_left_to_whole_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.audit import attacks

    plan = honest("gap", "edge", 1.0).plan(small_graph(np.random.default_rng(0)).public)
    known = attack_on(plan.stages[0])
    assert known is not None
    monkeypatch.delitem(attacks._ATTACKS, "gaussian")
    found = audit_curator(plan, runs=100)
    assert found.curator is None
    assert "gaussian" in found.notes[0]
    register_attack("gaussian", known)
    assert audit_curator(plan, runs=100).curator is not None
