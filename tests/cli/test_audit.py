"""``discreet audit``: a method, a release, a planted fault, and what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.methods.registry import list_methods
from discreet.privacy.query import Bound
from discreet.queries import sums
from tests.cli.helpers import refused, run, small_graph_file


def test_it_replays_attacks_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", "--method", "gap", "--pairs", "10", "--fits", "80", "--samples", "500", "--alpha", "1e-6"]
    code, out, _ = run(capsys, *arguments, "--json", "--out", "report.json")
    assert code == 0
    found = json.loads(out)
    assert found["passed"] is True
    assert 0.99 < found["replay"]["largest_ratio"]["hop 1"] <= 1
    assert found["statistics"]["curator"]["epsilon"] <= 1
    assert found["statistics"]["pipeline"]["judged"] == 40
    assert json.loads(Path("report.json").read_text())["digest"] == found["digest"]
    assert "report.json" in refused(capsys, *arguments, "--out", "report.json")


def test_a_planted_fault_is_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "edge_sensitivity", lambda aggregation, level: Bound(1.0, "l2", "a planted fault"))
    code, out, _ = run(capsys, "audit", "--pairs", "5", "--fits", "0", "--samples", "0")
    assert code == 1
    assert "declared sensitivity" in out
    assert "DOES NOT HOLD" in out


def test_of_a_release_is_attached_and_verified(capsys: pytest.CaptureFixture[str], csbm_release: Path) -> None:
    quick = ["--pairs", "5", "--fits", "0", "--samples", "500", "--alpha", "1e-6"]
    code, out, _ = run(capsys, "audit", str(csbm_release), *quick, "--attach", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["params"]["hops"] == 2
    assert found["epsilon"] == 4
    assert found["delta"] == pytest.approx(1e-5)  # of the 2000 nodes that it was trained on
    code, out, _ = run(capsys, "verify", str(csbm_release), "--json")
    assert code == 0
    assert json.loads(out)["checks"][-1]["check"] == "audit"
    report = csbm_release / "audit.json"
    report.write_text(report.read_text().replace("true", "false"))
    assert run(capsys, "verify", str(csbm_release))[0] == 1


def test_it_refuses_what_it_cannot_do(capsys: pytest.CaptureFixture[str], csbm_release: Path) -> None:
    assert "none" in refused(capsys, "audit", "--level", "none", "--epsilon", "inf")
    assert "release" in refused(capsys, "audit", "somewhere", "--method", "gap")
    assert "release" in refused(capsys, "audit", "somewhere", "--delta", "0.001")  # given, if with its default
    assert "somewhere" in refused(capsys, "audit", "somewhere")
    assert "attach" in refused(capsys, "audit", "--attach")
    assert "at least 80" in refused(capsys, "audit", "--fits", "3")
    assert "auto" in refused(capsys, "audit", "--method", "auto")
    assert "toaster" in refused(capsys, "audit", "--device", "toaster")
    assert "toaster" in refused(capsys, "audit", str(csbm_release), "--device", "toaster")


@pytest.mark.parametrize("method", sorted(set(list_methods()) - {"mlp", "gcn", "sage", "gat"}))
def test_every_method_can_be_audited(capsys: pytest.CaptureFixture[str], method: str) -> None:
    level = next(level for level in ("edge", "node", "local") if level in list_methods()[method].levels)
    few = ["--pairs", "1", "--fits", "80", "--samples", "0", "--alpha", "1e-6"]
    ranged = ["--set", "feature_range=[-8,8]", "--set", "outside=clip"] if level == "local" else []
    code, out, err = run(capsys, "audit", "--method", method, "--level", level, "--epsilon", "2", *few, *ranged)
    assert code == 0, out + err


def test_of_a_release_whose_method_chooses_its_steps(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = ["train", "--data", small_graph_file(), "--method", "hop-bayes", "--out", str(tmp_path / "release")]
    assert run(capsys, *made)[0] == 0
    few = ["--pairs", "1", "--fits", "0", "--samples", "0"]
    assert run(capsys, "audit", str(tmp_path / "release"), *few)[0] == 0
