"""``--help``: every command has one, and it imports nothing heavy."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tests.cli.helpers import run

COMMANDS = ("train", "plan", "methods", "data", "predict", "verify", "audit", "doctor", "bench", "tune")
HEAVY = "{'torch', 'numpy', 'scipy', 'pandas', 'sklearn', 'matplotlib'}"


def test_help_teaches_and_is_quick() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    found = subprocess.run([sys.executable, "-m", "discreet.cli", "--help"], capture_output=True, text=True, check=True)
    # The real limit is measured in benchmarks; this catches an import of torch. Of work, not of a busy machine's time.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 5
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


def test_help_speaks_no_python(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("train", "predict", "bench", "data", "doctor"):
        _, out, _ = run(capsys, command, "--help")
        assert "list[" not in out
        assert "<str>" not in out
        assert "<path>" not in out
        assert "--log-level TEXT" in out
    assert "Usage: discreet predict [OPTIONS] RELEASE\n" in run(capsys, "predict", "--help")[1]
    assert "Usage: discreet bench [OPTIONS] [SUITE]\n" in run(capsys, "bench", "--help")[1]
