"""Reports as stages: the curator makes them row by row, or takes what owners made and refuses what they cannot have."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet import local
from discreet.errors import GraphError, ParameterError, PlanViolationError
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.local_stages import encoder_of, feature_stage, in_alphabet, label_stage
from discreet.mechanisms.noise import NoiseSource
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import LocalLevel, NoPrivacy
from discreet.privacy.plan import Plan, Stage, make_plan

ROWS = np.random.default_rng(0).integers(0, 2, (30, 20)).astype(np.float32)
CLASSES = np.arange(30.0) % 4


def features(mechanism: str = "multi-bit", epsilon: float = 0.7, **options: object) -> Stage:
    given = {"feature_range": (0, 1), "outside": "refuse", **options}
    return feature_stage("features", mechanism, (30, 20), epsilon=epsilon, **given)  # type: ignore[arg-type]


def plan(*stages: Stage, epsilon: float = 1.0, delta: float | str = "auto") -> Plan:
    return make_plan("m", Privacy(LocalLevel(), epsilon, delta), 30, stages, "weights+predictions")  # type: ignore[arg-type]


def test_epsilon_is_the_sum_and_delta_is_zero() -> None:
    made = plan(features(), label_stage("labels", 30, 4, 0.3))
    assert made.epsilon == 1.0
    assert made.delta == 0
    assert made.stages[0].noise_std == pytest.approx(encoder_of(made.stages[0]).noise_std)
    assert "local multi-bit" in str(made)


@pytest.mark.parametrize("rows", [ROWS, sp.csr_array(ROWS)], ids=["dense", "sparse"])
def test_the_curator_makes_reports(rows: object) -> None:
    made = plan(features(), label_stage("labels", 30, 4, 0.3))
    curator = Curator(made, NoiseSource())
    reports = curator.measure("features", rows)  # type: ignore[arg-type]
    told = curator.measure("labels", CLASSES)
    curator.finish()
    assert sp.issparse(reports)
    assert encoder_of(made.stages[0]).admits(reports)
    assert set(told) <= {0, 1, 2, 3}


def test_without_privacy_records_come_back() -> None:
    made = make_plan("m", Privacy(NoPrivacy()), 30, [features()], "weights")
    assert np.array_equal(Curator(made, NoiseSource()).measure("features", ROWS), ROWS)


def test_reports_of_owners_are_taken_as_they_are() -> None:
    made = plan(features(), label_stage("labels", 30, 4, 0.3))
    curator = Curator(made, NoiseSource())
    reports = np.array([local.encode(row, feature_range=(0, 1), epsilon=0.7) for row in ROWS], dtype=np.float32)
    told = local.encode_labels(CLASSES.astype(int), num_classes=4, epsilon=0.3).astype(float)
    assert np.array_equal(curator.receive("features", reports), reports)
    assert np.array_equal(curator.receive("labels", told), told)
    curator.finish()


@pytest.mark.parametrize("reports", [ROWS, 2 * ROWS, np.zeros_like(ROWS)])
def test_records_are_not_reports(reports: np.ndarray) -> None:
    with pytest.raises(GraphError, match="cannot have come from"):
        Curator(plan(features()), NoiseSource()).receive("features", reports)
    with pytest.raises(GraphError, match="cannot have come from"):
        Curator(plan(label_stage("labels", 30, 4, 1.0)), NoiseSource()).receive("labels", CLASSES + 3)


def test_only_reports_are_received() -> None:
    from discreet.privacy import events

    stage = Stage("sum", "q", "gaussian", 1.0, "l2", "w", events.GaussianDpEvent(1.0), (30, 20))
    with pytest.raises(PlanViolationError, match="not by reports"):
        Curator(plan(stage, delta=1e-5), NoiseSource()).receive("sum", ROWS)


def test_gaussian_reports_need_a_delta() -> None:
    with pytest.raises(ParameterError, match="delta"):
        features("gaussian")
    made = plan(features("gaussian", delta=1e-5), label_stage("labels", 30, 4, 0.3), delta=1e-5)
    assert made.epsilon <= 1.0
    assert made.epsilon == pytest.approx(1.0, abs=1e-3)


def test_a_planned_range_is_demanded_and_kept() -> None:
    with pytest.raises(ParameterError, match="feature_range must be given"):
        features(feature_range=None)
    curator = Curator(plan(features()), NoiseSource())
    with pytest.raises(ParameterError, match="feature 3 of node 5 is 2"):
        curator.measure("features", np.where(np.arange(600).reshape(30, 20) == 103, 2.0, ROWS).astype(np.float32))
    assert curator.ledger == []


@pytest.mark.parametrize("mechanism", ["multi-bit", "one-bit"])
def test_an_adversary_stays_in_the_alphabet(mechanism: str) -> None:
    stage = features(mechanism)
    for value in (np.zeros((30, 20)), -1e6 * ROWS, np.random.default_rng(1).standard_normal((30, 20))):
        assert encoder_of(stage).admits(in_alphabet(value, stage))
    labels = label_stage("labels", 30, 4, 1.0)
    assert set(in_alphabet(np.array([-5.0, 1e9, 0.2]), labels)) <= {0, 1, 2, 3}
