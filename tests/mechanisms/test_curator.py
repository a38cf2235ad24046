"""The curator runs its plan and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.errors import PlanViolationError
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.noise import NoiseSource
from discreet.privacy import events
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, NoPrivacy
from discreet.privacy.plan import Stage, make_plan


def stage(name: str, runs: int = 1) -> Stage:
    return Stage(name, "q", "gaussian", 1.0, "l2", "w", events.GaussianDpEvent(1.0), (2, 3), runs)


@pytest.fixture
def curator() -> Curator:
    plan = make_plan("m", Privacy(EdgeLevel(), 1.0), 100, [stage("a", runs=2), stage("b")], "weights")
    return Curator(plan, NoiseSource())


def test_runs_the_plan_and_writes_the_ledger(curator: Curator) -> None:
    value = np.zeros((2, 3))
    answers = [curator.measure(name, value) for name in ("a", "a", "b")]
    curator.finish()
    assert [(entry.stage, entry.run) for entry in curator.ledger] == [("a", 0), ("a", 1), ("b", 0)]
    assert len({answer.tobytes() for answer in answers}) == 3
    assert list(events.leaves(curator.spent_event())) == [
        (s.event, 1) for s in curator.plan.stages for _ in range(s.runs)
    ]


def test_refuses_what_is_not_next(curator: Curator) -> None:
    with pytest.raises(PlanViolationError, match="next"):
        curator.measure("b", np.zeros((2, 3)))
    with pytest.raises(PlanViolationError, match="next"):
        curator.measure("c", np.zeros((2, 3)))


def test_refuses_more_than_planned(curator: Curator) -> None:
    for name in ("a", "a", "b"):
        curator.measure(name, np.zeros((2, 3)))
    with pytest.raises(PlanViolationError, match="run out"):
        curator.measure("b", np.zeros((2, 3)))


@pytest.mark.parametrize("value", [np.zeros((3, 2)), np.zeros(6), np.full((2, 3), np.nan), np.zeros((2, 3), dtype=int)])
def test_refuses_another_shape_or_kind(curator: Curator, value: np.ndarray) -> None:
    with pytest.raises(PlanViolationError):
        curator.measure("a", value)
    assert curator.ledger == []


def test_an_unfinished_plan_is_a_bug(curator: Curator) -> None:
    curator.measure("a", np.zeros((2, 3)))
    with pytest.raises(PlanViolationError, match="never ran"):
        curator.finish()


def test_private_stages_cannot_be_exposed(curator: Curator) -> None:
    with pytest.raises(PlanViolationError, match="private"):
        curator.expose("a")


def test_without_privacy_the_value_comes_back() -> None:
    plan = make_plan("m", Privacy(NoPrivacy()), 100, [stage("a")], "weights")
    value = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(Curator(plan, NoiseSource()).measure("a", value), value)
