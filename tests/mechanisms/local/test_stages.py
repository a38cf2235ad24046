"""Reports as stages: the curator makes them row by row, or takes what owners made and refuses what they cannot have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from discreet import local
from discreet.errors import GraphError, ParameterError, PlanViolationError
from discreet.graph.graph import Graph
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.local.stages import encoder_of, feature_stage, in_alphabet, label_stage, response_of
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, LocalLevel, NoPrivacy
from discreet.privacy.plan import Plan, Stage, make_plan
from discreet.queries.sums import NeighbourSums

ROWS = np.random.default_rng(0).integers(0, 2, (30, 20)).astype(np.float32)
CLASSES = np.arange(30) % 4


def features(mechanism: str = "multi-bit", epsilon: float = 0.7, **options: object) -> Stage:
    given = {"feature_range": (0, 1), "outside": "refuse", **options}
    return feature_stage("features", mechanism, (30, 20), epsilon=epsilon, **given)  # type: ignore[arg-type]


def plan(*stages: Stage, epsilon: float = 1.0, delta: float | str = "auto") -> Plan:
    return make_plan("m", Privacy(LocalLevel(), epsilon, delta), 30, stages, "weights+predictions")  # type: ignore[arg-type]


def curator_of(made: Plan, records: Any = ROWS, labels: Any = CLASSES) -> Curator:
    """Holds the records of thirty training nodes."""
    graph = Graph.from_edges([], [], records, labels, directed=False, num_classes=8)
    graph = graph.with_masks(np.arange(30), None, None)
    return Curator(made, NoiseSource(), [made.privacy.level.split(graph)[1]])


def test_epsilon_is_the_sum_and_delta_is_zero() -> None:
    made = plan(features(), label_stage("labels", 30, 4, 0.3))
    assert made.epsilon == 1.0
    assert made.delta == 0
    assert made.stages[0].noise_std == pytest.approx(encoder_of(made.stages[0]).noise_std)
    assert "local multi-bit" in str(made)


@pytest.mark.parametrize("rows", [ROWS, sp.csr_array(ROWS)], ids=["dense", "sparse"])
def test_the_curator_makes_reports(rows: object) -> None:
    made = plan(features(), label_stage("labels", 30, 4, 0.3))
    curator = curator_of(made, rows)
    reports, classes = curator.ask("features"), curator.ask("labels")
    curator.finish()
    assert sp.issparse(reports)
    assert encoder_of(made.stages[0]).admits(reports)
    assert set(classes) <= {0, 1, 2, 3}


def test_without_privacy_records_come_back() -> None:
    made = make_plan("m", Privacy(NoPrivacy()), 30, [features()], "weights")
    assert np.array_equal(curator_of(made).ask("features"), ROWS)


def test_reports_of_owners_are_taken_as_they_are() -> None:
    made = plan(features(), label_stage("labels", 30, 4, 0.3))
    reports = np.array([local.encode(row, feature_range=(0, 1), epsilon=0.7) for row in ROWS], dtype=np.float32)
    classes = local.encode_labels(CLASSES, num_classes=4, epsilon=0.3)
    curator = curator_of(made, reports, classes)
    assert np.array_equal(curator.receive("features"), reports)
    assert np.array_equal(curator.receive("labels"), classes)
    curator.finish()


@pytest.mark.parametrize("reports", [ROWS, 2 * ROWS, np.zeros_like(ROWS)])
def test_records_are_not_reports(reports: np.ndarray) -> None:
    with pytest.raises(GraphError, match="cannot have come from"):
        curator_of(plan(features()), reports).receive("features")
    with pytest.raises(GraphError, match="cannot have come from"):
        curator_of(plan(label_stage("labels", 30, 4, 1.0)), labels=CLASSES + 3).receive("labels")


def test_only_reports_are_received() -> None:
    stage = Stage.of("sum", NeighbourSums(EdgeLevel(), 30, 20))
    with pytest.raises(PlanViolationError, match="not by reports"):
        curator_of(plan(stage, delta=1e-5)).receive("sum")
    for read in (encoder_of, response_of):
        with pytest.raises(PlanViolationError, match="asks for no reports"):
            read(stage)


def test_gaussian_reports_need_a_delta() -> None:
    with pytest.raises(ParameterError, match="delta"):
        features("gaussian")
    made = plan(features("gaussian", delta=1e-5), label_stage("labels", 30, 4, 0.3), delta=1e-5)
    assert made.epsilon <= 1.0
    assert made.epsilon == pytest.approx(1.0, abs=1e-3)


def test_a_planned_range_is_demanded_and_kept() -> None:
    with pytest.raises(ParameterError, match="feature_range must be given"):
        features(feature_range=None)
    curator = curator_of(plan(features()), np.where(np.arange(600).reshape(30, 20) == 103, 2.0, ROWS))
    with pytest.raises(ParameterError, match="a feature lies outside"):
        curator.ask("features")
    assert curator.ledger == []


@pytest.mark.parametrize("mechanism", ["multi-bit", "one-bit"])
def test_an_adversary_stays_in_the_alphabet(mechanism: str) -> None:
    stage = features(mechanism)
    for value in (np.zeros((30, 20)), -1e6 * ROWS, np.random.default_rng(1).standard_normal((30, 20))):
        assert encoder_of(stage).admits(in_alphabet(value, stage))
    labels = label_stage("labels", 30, 4, 1.0)
    assert set(in_alphabet(np.array([-5.0, 1e9, 0.2]), labels)) <= {0, 1, 2, 3}
