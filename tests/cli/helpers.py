"""The command in process, and what every refusal of bad input looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.cli import main

QUICK = ["--set", "epochs=1", "--set", "hidden=4"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Exit code 2, one sentence on standard error, nothing on standard output, nothing written."""
    before = set(Path.cwd().rglob("*"))
    code, out, err = run(capsys, *arguments)
    assert code == 2, (code, out, err)
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert set(Path.cwd().rglob("*")) == before
    return err
