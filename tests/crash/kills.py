"""Commands that are killed at random times, and what is checked afterwards.

Each run is a fork of a process that has imported everything already, so that kills meet the command at work and not the
interpreter at its start. Worker processes of a command are spawned as always.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from discreet.cli import main
from discreet.files import PARTIAL
from discreet.graph import csbm
from discreet.graph.io import save_npz
from discreet.graph.partitions import PartitionedGraph
from discreet.privacy.events import GaussianDpEvent
from discreet.privacy.ledger import Ledger, Run
from tests.fuzz.grammars import SUITE

SMALL = ["--set", "epochs=2", "--set", "hidden=4"]
ENTERED = ["--ledger", "ledger.db", "--dataset", "small"]
COMMANDS: dict[str, list[str]] = {
    "train": ["train", "--data", "graph.npz", *SMALL, *ENTERED, "--out", "out"],
    "tune": ["tune", "--data", "graph.npz", *SMALL, *ENTERED, "--search=hidden=4,6", "--trials", "2", "--out", "out"],
    "extend": ["extend", "release", "--data", "other.npz", "--epsilon", "1", *ENTERED, "--out", "out"],
    "audit": ["audit", *SMALL, "--pairs", "2", "--fits", "0", "--samples", "80", "--workers", "2", "--out", "out"],
    "bench": ["bench", "suite.toml", "--jobs", "2", "--no-figures", "--out", "out"],
    "convert": ["data", "convert", "graph.npz", "--partitions", "20", "--out", "out"],
    "evaluate": ["evaluate", "release", "--data", "graph.npz", "--epsilon", "1", *ENTERED, "--out", "out"],
    "report": ["report", "release", "--out", "out.html"],
    "export": ["export", "release", "--registry", "--out", "out"],
    "predict": ["predict", "release", "--data", "graph.npz", "--out", "out.csv"],
}
OF_A_RELEASE = ("extend", "evaluate", "report", "export", "predict")
NODE = ["--level", "node:owned,max_degree=5", "--epsilon", "4"]
LEDGER = "ledger"
"""No command of its own writes a ledger: a process that enters runs without pause is killed."""
NAMES = (*COMMANDS, LEDGER)
ENDS = {"report": "</html>", "export": "\n", "predict": "\n"}
"""How a file ends that is whole."""
ENTRIES = 25
PATIENCE = 120.0
SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)


@dataclass
class Outcome:
    """What kills of one command met and left."""

    kills: int = 0
    finished: int = 0
    while_writing: int = 0
    wrong: list[str] = field(default_factory=list)


def prepare(folder: Path) -> None:
    """What the commands read: two graphs, a release of the first, a suite."""
    folder.mkdir()
    for name, seed in (("graph.npz", 0), ("other.npz", 1)):
        graph = csbm(num_nodes=40, num_features=4, average_degree=4, phi=0.2, epsilon=0.5, seed=seed)
        save_npz(graph, folder / name)
    (folder / "suite.toml").write_text(SUITE)


def start(name: str, folder: Path) -> int:
    """A fork of this process that runs the command in the folder, in a session of its own."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        for place, number in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        sys.stdout, sys.stderr = open(1, "w", buffering=1), open(2, "w", buffering=1)  # noqa: SIM115
        faulthandler.enable(sys.stderr)  # where a fault in machine code was
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored
        code = enter_runs() if name == LEDGER else main(COMMANDS[name])
    except KeyboardInterrupt:  # before the command began, or after its end
        code = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def enter_runs() -> int:
    """Enter runs and release every other; each is named on standard output once it is on disk."""
    ledger, run = Ledger(Path("ledger.db")), Run("train", "gap", "edge", GaussianDpEvent(4.0), 1e-5)
    for number in range(ENTRIES):
        entry = ledger.reserve(run, f"data {number % 3}")
        print("reserved", entry, flush=True)
        if number % 2:
            ledger.release(entry, "0" * 64)
            print("released", entry, flush=True)
    return 0


def wait(child: int) -> int:
    """The exit code, negative for a signal."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError("it did not end")


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


# -------------------------------------------------------------------- one command, many kills


def kill_often(name: str, kills: int, place: Path, seed: int = 0) -> Outcome:
    """Run the command to its end, then kill it: by each of ``SIGNALS`` in turn, evenly over the length of a run."""
    rng, found = random.Random(f"{name} {seed}"), Outcome()
    whole = place / "whole"
    prepare(whole)
    if name in OF_A_RELEASE:
        # Labels are private at level node, so that figures on them are paid for and entered in a ledger.
        level = NODE if name == "evaluate" else []
        made = ["train", "--data", "graph.npz", "--method", "gap", *level, *SMALL, "--out", "release"]
        _in_fork(lambda: main(made), whole)
    began = time.monotonic()
    if (code := wait(start(name, whole))) != 0:
        found.wrong.append(f"it does not run: exit {code}: {(whole / 'stderr').read_text()[-300:]}")
        return found
    length = time.monotonic() - began
    for number in range(kills):
        folder = place / str(number)
        _copy_inputs(whole, folder)
        _kill_once(name, folder, SIGNALS[number % len(SIGNALS)], rng.uniform(0, length), found)
    _run_again(name, folder, found)
    return found


def _kill_once(name: str, folder: Path, number: signal.Signals, after: float, found: Outcome) -> None:
    child = start(name, folder)
    time.sleep(after)
    try:
        _send(child, number)
        code = wait(child)
    except TimeoutError:
        found.wrong.append(f"{folder.name}: {number.name} did not end it within {PATIENCE:g} s")
        return
    found.kills += 1
    found.finished += code == 0
    said = (folder / "stderr").read_text(errors="replace") if (folder / "stderr").exists() else ""
    if code not in (0, -number, 128 + number):
        found.wrong.append(f"{folder.name}: exit {code} after {number.name}: {said[-3000:]}")
    until = time.monotonic() + 60  # what forks processes is still importing for a while, if machines are busy
    while (orphans := in_session(child)) and time.monotonic() < until:
        time.sleep(0.05)
    found.wrong += [f"{folder.name}: process {orphan} goes on after {number.name}" for orphan in orphans]
    left = [path.name for path in folder.rglob(f"*{PARTIAL}")]
    found.while_writing += bool(left) or (folder / "ledger.db-journal").exists()
    if left and number != signal.SIGKILL:
        found.wrong.append(f"{folder.name}: {number.name} leaves {left}")
    if "Traceback" in said:
        found.wrong.append(f"{folder.name}: a traceback after {number.name}: {said[-1500:]}")
    found.wrong += [f"{folder.name}: {sentence}" for sentence in whats_wrong(name, folder)]


def _send(child: int, number: signal.Signals) -> None:
    """Ctrl-C reaches every process of the terminal, other signals the command alone."""
    if number == signal.SIGINT:
        with suppress(ProcessLookupError):  # it may not have its session yet
            os.killpg(child, number)
            return
    os.kill(child, number)


def _run_again(name: str, folder: Path, found: Outcome) -> None:
    """What was killed last can be run again in the same place."""
    for path in _outputs(folder) if name != "bench" else []:
        path.rename(folder / f"before {path.name}")
    if (code := wait(start(name, folder))) != 0:
        found.wrong.append(f"it cannot be run again: exit {code}: {(folder / 'stderr').read_text()[-300:]}")


def _outputs(folder: Path) -> list[Path]:
    """What the command wrote, by the name that it was given."""
    return [path for path in (folder / "out", folder / "out.html", folder / "out.csv") if path.exists()]


def _copy_inputs(whole: Path, folder: Path) -> None:
    """The same files as links: nothing writes to them."""
    folder.mkdir()
    for name in ("graph.npz", "other.npz", "suite.toml"):
        os.link(whole / name, folder / name)
    if (whole / "release").exists():
        (folder / "release").mkdir()
        for path in (whole / "release").iterdir():
            os.link(path, folder / "release" / path.name)


def _in_fork(run: Callable[[], int], folder: Path) -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = run()
        finally:
            os._exit(code)
    if (code := wait(child)) != 0:
        raise RuntimeError(f"what the command needs could not be made: exit {code}")


# -------------------------------------------------------------------- what may be found afterwards


def whats_wrong(name: str, folder: Path) -> list[str]:
    """What is there is whole, and no release is without its entry."""
    wrong = _wrong_in_ledger(folder) if (folder / "ledger.db").exists() else []
    for out in _outputs(folder):
        if name in ("train", "tune", "extend"):
            wrong += _wrong_in_release(out, folder)
        elif name == "bench":
            rows = out / "results.jsonl"
            lines = rows.read_text().splitlines(keepends=True) if rows.exists() else []
            wrong += ["a torn row" for line in lines if line.endswith("\n") and not isinstance(json.loads(line), dict)]
        elif name == "convert":
            PartitionedGraph(out).whole()  # raises where a file is not the one that the manifest states
        elif name in ("audit", "evaluate"):
            json.loads(out.read_text())
        elif not out.read_text().endswith(ENDS[name]):
            wrong.append(f"{out.name} is torn")
    return wrong


def _wrong_in_release(out: Path, folder: Path) -> list[str]:
    from discreet.privacy.release_folder import read_certificate
    from discreet.release.verify import verify

    wrong = [f"{check.name}: {check.detail}" for check in verify(out) if not check.passed]
    entries = Ledger(folder / "ledger.db").entries() if (folder / "ledger.db").exists() else []
    if not wrong and read_certificate(out).get("ledger") not in {entry.id for entry in entries}:
        wrong.append("a release without its entry")
    return wrong


def _wrong_in_ledger(folder: Path) -> list[str]:
    """The file is sound, and holds every entry that was said to be on disk, with the state that was said."""
    entries = {entry.id: entry for entry in Ledger(folder / "ledger.db").entries()}
    with sqlite3.connect(folder / "ledger.db") as connection:
        (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
    wrong = [] if sound == "ok" else [f"the ledger is damaged: {sound}"]
    for line in (folder / "stdout").read_text(errors="replace").splitlines():
        state, _, entry = line.partition(" ")
        if state in ("reserved", "released") and len(entry) == 16:
            if entry not in entries:
                wrong.append(f"entry {entry} is lost")
            elif state == "released" and entries[entry].released is None:
                wrong.append(f"the release of entry {entry} is lost")
    return wrong
