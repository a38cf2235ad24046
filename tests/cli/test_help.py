"""``--help``: every command has one, and it imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.cli.helpers import run

COMMANDS = ("train", "plan", "methods", "data", "predict", "verify", "audit", "doctor", "bench", "tune")
HEAVY = "{'torch', 'numpy', 'scipy', 'pandas', 'sklearn', 'matplotlib'}"


def test_help_teaches_and_is_quick() -> None:
    started = time.perf_counter()
    found = subprocess.run([sys.executable, "-m", "discreet.cli", "--help"], capture_output=True, text=True, check=True)
    assert time.perf_counter() - started < 5  # the real limit is measured in benchmarks; this catches a torch import
    for command in COMMANDS:
        assert command in found.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert f"Usage: discreet {command}" in out
    assert "--json" in out


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from discreet.cli import main; code = main(['--help']) or main(['train', '--help']);"
        f"heavy = {HEAVY} & set(sys.modules); print(sorted(heavy), file=sys.stderr); sys.exit(code or bool(heavy))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
