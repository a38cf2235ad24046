"""Worker processes: results in order, errors and deaths reported, and nobody left when the parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from discreet.workers import map_in_workers

PATIENCE = 300.0
"""Seconds until what must come is given up, however busy the machine is: far less than workers would sleep."""
SLEEPERS = """
import signal, sys
from discreet.cli.boundary import exit_code
from discreet.workers import map_in_workers
from tests.test_workers import announce_and_sleep

if __name__ == "__main__":
    with exit_code() as ending:
        for _ in map_in_workers(announce_and_sleep, [sys.argv[1]] * 2, 2):
            pass
    sys.exit(ending.code)
"""


def announce_and_sleep(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(3600)


def work(task: int) -> int:
    if task < 0:
        raise ValueError(f"no {task}")
    if task == 99:
        os.kill(os.getpid(), signal.SIGKILL)
    return task * task


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False


def test_results_come_in_order() -> None:
    assert list(map_in_workers(work, range(5), 2)) == [0, 1, 4, 9, 16]


def test_errors_and_deaths_are_raised_here() -> None:
    with pytest.raises(ValueError, match="no -1"), closing(map_in_workers(work, [1, -1], 1)) as results:
        list(results)
    with (
        pytest.raises(ChildProcessError, match="killed by signal 9"),
        closing(map_in_workers(work, [99], 1)) as results,
    ):
        list(results)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_workers_end_with_their_parent(number: signal.Signals, tmp_path: Path) -> None:
    script, marks = tmp_path / "sleepers.py", tmp_path / "marks"
    script.write_text(SLEEPERS)
    marks.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])}
    command = [sys.executable, str(script), str(marks)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    workers = _wait_for(marks)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does: to all of them
    else:
        process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}[number]
    assert "Traceback" not in err
    until = time.monotonic() + PATIENCE
    while any(map(is_alive, workers)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not [pid for pid in workers if is_alive(pid)]


# A function whose module says that it is being imported, and takes long over it in a worker.
SLOW = """
import os, time
from pathlib import Path
if str(os.getpid()) != os.environ["PARENT"]:
    Path(os.environ["MARKS"], str(os.getpid())).touch()
    time.sleep(3600)
def run(task):
    return task
"""
SLOW_PARENT = """
import os
from discreet.workers import map_in_workers
if __name__ == "__main__":
    os.environ["PARENT"] = str(os.getpid())
    import slow
    list(map_in_workers(slow.run, [1, 2], 2))
"""


def test_workers_that_are_still_importing_end_with_their_parent(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "parent.py").write_text(SLOW_PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(tmp_path)]), "MARKS": str(marks)}
    process = subprocess.Popen([sys.executable, str(tmp_path / "parent.py")], env=environment)
    workers = _wait_for(marks)
    process.kill()
    process.wait()
    until = time.monotonic() + PATIENCE
    while any(map(is_alive, workers)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not [pid for pid in workers if is_alive(pid)]


def _wait_for(marks: Path) -> list[int]:
    until = time.monotonic() + PATIENCE
    while len(found := [int(path.name) for path in marks.iterdir()]) < 2:
        assert time.monotonic() < until, "the workers did not start"
        time.sleep(0.02)
    return found
