"""``discreet verify``: a sound release, a changed one, and none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import refused, run


def test_a_sound_release(capsys: pytest.CaptureFixture[str], release: Path) -> None:
    code, out, _ = run(capsys, "verify", str(release))
    assert (code, "NOT" in out) == (0, False)


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
