"""The example with an encoder of one's own runs as it is written."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import discreet

SCRIPT = Path(__file__).parents[2] / "examples" / "own_encoder" / "own_encoder.py"


def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tmp_path / "release")])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert "layers: ('linear 32', 'layer-norm', 'gelu', ('linear 32', 'gelu'))" in capsys.readouterr().out
    discreet.verify(tmp_path / "release")
