"""``discreet plan``: the stages, and nothing trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.graph import save_npz
from discreet.graph.synthetic import csbm
from tests.cli.helpers import refused, run


def test_plan_shows_the_stages_and_trains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", "--method", "gap", "--epsilon", "1")
    assert code == 0
    assert "hop 1" in out
    assert "1.41421" in out
    assert "estimate: about" in out
    code, out, _ = run(capsys, "plan", "--method", "gap", "--epsilon", "1", "--json")
    plan = json.loads(out)
    assert plan["stages"][0]["noise_std"] == pytest.approx(3.7306 * 2**0.5, rel=1e-4)
    assert plan["epsilon_spent"] <= 1
    assert plan["estimate"]["bytes"] > 0


def test_seed_and_settings_reach_the_method(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", "--method", "gap", "--set", "hops=3", "--set", "width=5", "--json")
    assert code == 0
    assert [stage["name"] for stage in json.loads(out)["stages"]] == ["hop 1", "hop 2", "hop 3"]
    assert json.loads(out)["stages"][0]["shape"] == [2000, 5]


def test_a_device_that_is_not_there_is_refused_before_training(capsys: pytest.CaptureFixture[str]) -> None:
    assert "toaster" in refused(capsys, "plan", "--device", "toaster")
    assert "threads" in refused(capsys, "plan", "--method", "auto", "--threads", "0")


def test_features_are_left_on_disk_where_that_is_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = save_npz(csbm(200, 5), tmp_path / "graph.npz")
    code, out, _ = run(capsys, "plan", "--method", "gap", "--data", str(path), "--mmap", "--json")
    assert code == 0
    assert json.loads(out)["stages"]
    assert ".npz file" in refused(capsys, "plan", "--method", "gap", "--data", "csbm", "--mmap")


def test_level_none_needs_no_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "plan", "--data", "csbm", "--level", "none")
    assert code == 0, err
    assert (out + err).count("nothing to compare: edges carry no noise") == 1
    assert "contradict" in refused(capsys, "plan", "--data", "csbm", "--level", "none", "--epsilon", "2")
