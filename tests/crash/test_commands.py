"""Commands that are killed at random times: nothing torn, nobody orphaned, and the same command works afterwards.

``DISCREET_KILLS`` says how often each is killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.files import PARTIAL
from tests.fuzz.grammars import SUITE

KILLS = int(os.environ.get("DISCREET_KILLS", "100"))
SMALL = ["--set", "epochs=2", "--set", "hidden=4"]
COMMANDS = {
    "train": ["train", *SMALL, "--out", "out"],
    "tune": ["tune", *SMALL, "--search", "hidden=4,6", "--trials", "2", "--out", "out"],
    "audit": ["audit", *SMALL, "--pairs", "2", "--fits", "0", "--samples", "80", "--workers", "2", "--out", "out"],
    "bench": ["bench", "suite.toml", "--jobs", "2", "--no-figures", "--out", "out"],
}


def in_session(leader: int) -> list[int]:
    """Processes that are alive in the session of the command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def start(name: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "discreet.cli", *COMMANDS[name]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, start_new_session=True, stdout=-3, stderr=subprocess.PIPE, text=True
    )


def check_output(name: str, folder: Path) -> None:
    """What is there is whole."""
    out = folder / "out"
    if not out.exists():
        return
    if name in ("train", "tune"):
        assert main(["verify", str(out)]) == 0
    elif name == "audit":
        json.loads(out.read_text())
    else:
        rows = out / "results.jsonl"
        lines = rows.read_text().splitlines(keepends=True) if rows.exists() else []
        assert all(json.loads(line) for line in lines if line.endswith("\n"))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_any_time(name: str, tmp_path: Path) -> None:
    rng, place = random.Random(name), tmp_path / "whole"
    place.mkdir()
    (place / "suite.toml").write_text(SUITE)
    began = time.monotonic()
    process = start(name, place)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    longest = time.monotonic() - began
    for run in range(KILLS):
        folder, number = tmp_path / str(run), (signal.SIGTERM, signal.SIGKILL)[run % 2]
        folder.mkdir()
        (folder / "suite.toml").write_text(SUITE)
        process = start(name, folder)
        time.sleep(rng.uniform(0, longest))
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert "Traceback" not in err, (run, err)
        until = time.monotonic() + 10
        while (orphans := in_session(process.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        assert orphans == [], (run, number)
        check_output(name, folder)
        if number == signal.SIGTERM:
            assert not list(folder.rglob(f"*{PARTIAL}")), run
    again = start(name, folder)  # where it was killed last
    if not (folder / "out").exists() or name == "bench":
        _, err = again.communicate(timeout=300)
        assert again.returncode == 0, err
    again.kill()
    again.communicate()
