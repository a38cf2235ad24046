"""``discreet verify``: a sound release, a changed one, and none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import refused, run


def test_a_sound_release(capsys: pytest.CaptureFixture[str], release: Path) -> None:
    code, out, _ = run(capsys, "verify", str(release))
    assert (code, "NOT VERIFIED" in out) == (0, False)


def test_a_changed_release_is_refused(capsys: pytest.CaptureFixture[str], csbm_release: Path) -> None:
    weights = csbm_release / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    code, out, _ = run(capsys, "verify", str(csbm_release), "--json")
    assert code == 1
    assert json.loads(out)["verified"] is False
    assert run(capsys, "predict", str(csbm_release), "--data", "csbm", "--out", "p.csv")[0] == 1
    assert not Path("p.csv").exists()


def test_missing_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere" in refused(capsys, "verify", "nowhere")


def test_it_warns_and_passes(capsys: pytest.CaptureFixture[str], release: Path) -> None:
    code, out, _ = run(capsys, "verify", str(release))
    assert code == 0
    assert "WARNING  FEATURES AND LABELS ARE NOT PROTECTED" in out
    code, out, _ = run(capsys, "verify", str(release), "--json")
    assert code == 0
    assert len(json.loads(out)["warnings"]) == 1


def test_raw_data_beside_the_weights_is_refused(capsys: pytest.CaptureFixture[str], csbm_release: Path) -> None:
    (csbm_release / "edges.csv").write_text("source,target\n0,1\n")
    code, out, error = run(capsys, "verify", str(csbm_release))
    assert code == 1
    assert "edges.csv, which its certificate does not list" in out
    assert "Traceback" not in out + error
    assert run(capsys, "predict", str(csbm_release), "--data", "csbm", "--out", "p.csv")[0] in (1, 2)
    assert not Path("p.csv").exists()
