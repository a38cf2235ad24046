"""Commands that are killed at random times: nothing torn, nobody orphaned, and the same command works afterwards.

``DISCREET_KILLS`` says how often each is killed; ``python -m tests.crash`` prints the table of ``docs/reliability.md``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.kills import NAMES, whats_wrong

KILLS = int(os.environ.get("DISCREET_KILLS", "100"))


def kill(name: str, kills: int, seed: int = 0) -> str:
    """Run the script: a process of many threads, which a test may be, is not to be forked."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.crash", "--kills", str(kills), "--only", name, "--seed", str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_killed_at_any_time(name: str) -> None:
    kill(name, KILLS)


def test_a_ledger_is_killed_while_it_is_written() -> None:
    for seed in range(10):
        name, kills, finished = kill("ledger", 4, seed).splitlines()[1].split()[:3]
        assert (name, kills) == ("ledger", "4")
        if int(finished) < 4:  # on a busy machine the run that is measured may be the longest by far
            return
    raise AssertionError("no kill met a run at work: the test shows nothing")


def test_what_was_lost_is_seen(tmp_path: Path) -> None:
    from discreet.privacy.events import GaussianDpEvent
    from discreet.privacy.ledger import Ledger, Run

    entry = Ledger(tmp_path / "ledger.db").reserve(Run("train", "gap", "edge", GaussianDpEvent(4.0), 1e-5), "d")
    (tmp_path / "stdout").write_text(f"reserved {entry}\nreserved {'0' * 16}\nreleased {entry}\n")
    assert whats_wrong("ledger", tmp_path) == [
        f"entry {'0' * 16} is lost",
        f"the release of entry {entry} is lost",
    ]
    (tmp_path / "out").mkdir()
    assert any("certificate" in sentence for sentence in whats_wrong("train", tmp_path))
