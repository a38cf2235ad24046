"""Calibration: within the budget always, tight, and remembered."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from discreet.errors import PrivacyError
from discreet.privacy import calibration, events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.budget import Privacy
from discreet.privacy.calibration import calibrate
from discreet.privacy.events.group_sampling import GroupSampledGaussianDpEvent
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.plan import make_plan
from tests.mechanisms.draws import given_stage

DP_SGD = events.repeat(GroupSampledGaussianDpEvent(1.0, 0.1, 2, "replace"), 50)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 16.0])
@pytest.mark.parametrize("count", [1, 3])
def test_gaussian_calibration_is_exact(epsilon: float, count: int) -> None:
    unit = events.repeat(events.GaussianDpEvent(1.0), count)
    factor = calibrate(unit, epsilon, 1e-5)
    assert epsilon_of(events.scale_noise(unit, factor), 1e-5) <= epsilon
    assert epsilon_of(events.scale_noise(unit, factor * (1 - 1e-9)), 1e-5) > epsilon


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_numerical_calibration_never_overshoots(epsilon: float) -> None:
    factor = calibrate(DP_SGD, epsilon, 1e-5)
    assert epsilon_of(events.scale_noise(DP_SGD, factor), 1e-5) <= epsilon
    assert epsilon_of(events.scale_noise(DP_SGD, factor / 1.003), 1e-5) > epsilon


def test_remembered_and_robust_to_damage(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCREET_CACHE", str(tmp_path))
    first = calibrate(DP_SGD, 2.0, 1e-5)
    (entry,) = calibration.cache_dir().glob("*.json")
    monkeypatch.setattr(calibration, "_search", lambda *_: pytest.fail("searched although remembered"))
    assert calibrate(DP_SGD, 2.0, 1e-5) == first
    monkeypatch.undo()
    monkeypatch.setenv("DISCREET_CACHE", str(tmp_path))
    for damage in ("", "{", '{"factor": "x"}', '{"factor": -1}'):
        entry.write_text(damage)
        assert calibration._recall(entry.stem) is None
    assert calibrate(DP_SGD, 2.0, 1e-5) == first
    assert json.loads(entry.read_text())["factor"] == first


def test_fixed_cost_above_budget_is_refused() -> None:
    unit = events.compose([events.ApproximateDpEvent(2.0, 0.0), events.GaussianDpEvent(1.0)])
    with pytest.raises(PrivacyError, match="fixed"):
        calibrate(unit, 1.0, 1e-5)


def test_a_tampered_memory_cannot_overspend(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCREET_CACHE", str(tmp_path))
    stage = replace(given_stage("train", (1,), runs=50), event=DP_SGD.event)
    make_plan("m", Privacy(EdgeLevel(), 2.0, 1e-5), 100, [stage], "weights")
    (entry,) = calibration.cache_dir().glob("*.json")
    entry.write_text('{"factor": 0.3}')
    with pytest.raises(PrivacyError, match="spends"):
        make_plan("m", Privacy(EdgeLevel(), 2.0, 1e-5), 100, [stage], "weights")
