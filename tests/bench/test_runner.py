"""Trials run, fail, die and are interrupted; what was finished is kept and never repeated."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from discreet.bench.execute import execute
from discreet.bench.pool import run_all
from discreet.bench.runner import _Clock, _time
from discreet.bench.store import RESULTS
from discreet.bench.tables import lay_out, tables_of
from discreet.bench.trials import Trial, expand, unique
from discreet.bench.writers import markdown
from discreet.cli import main
from tests.bench.helpers import TINY, suite, written

LONG = TINY.replace("epochs = 2", "epochs = 300").replace("seeds = 3", "seeds = 4")


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / RESULTS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_suite_runs_is_not_run_again_and_skips_absent_graphs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["bench", str(written(tmp_path)), "--out", str(out), "--jobs", "1"]
    assert main(command) == 1  # one trial fails: the command says so, and the others ran
    printed = capsys.readouterr().out
    rows = lines(out)
    assert [row["status"] for row in rows].count("ok") == 3
    (failed,) = [row for row in rows if row["status"] == "failed"]
    assert "500 are asked for" in failed["reason"]
    assert failed["reason"] in printed
    fine = next(row for row in rows if row["status"] == "ok")
    assert fine["epsilon_spent"] == 0
    assert fine["covers"] == "weights+predictions"
    assert fine["seconds"] > 0
    assert fine["peak_rss_mb"] > 50
    assert {"python", "torch", "discreet", "source", "dp-accounting"} <= fine["versions"].keys()
    assert fine["trial"]["seed"] in (0, 1, 2)
    assert fine["device"] == "cpu"
    assert {item.name for item in out.iterdir()} == {RESULTS, "tables.md", "tables.tex", "cells.csv"}

    before = (out / RESULTS).read_bytes()
    assert main([*command, "--json"]) == 1
    assert (out / RESULTS).read_bytes() == before
    assert json.loads(capsys.readouterr().out)["ran"] == 0
    assert main([*command, "--tables-only", "--only", "mlp", "--only", "name=mlp"]) == 0

    written(tmp_path, TINY.replace('["small"]', '["small", "twitch-pt"]'))  # whose files are not there
    more = [*command, "--seeds", "4", "--only", "name=mlp", "--verbose", "--data-root", str(tmp_path)]
    assert main([*more, "--strict"]) == 2
    assert "twitch-pt" in capsys.readouterr().err
    assert main(more) == 0
    assert len(lines(out)) == 5
    said = capsys.readouterr().err
    assert "[1/1, " in said
    assert "skipping twitch-pt" in said


@pytest.mark.slow
def test_a_trial_whose_default_changed_runs_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    command = ["bench", str(written(tmp_path)), "--out", str(out), "--jobs", "1", "--only", "name=mlp"]
    assert main([*command, "--seeds", "2"]) == 0
    first, second = lines(out)
    aged = [{**first, "settings": "older"}, {**second, "settings": None, "versions": {"source": "older"}}]
    (out / RESULTS).write_text("".join(json.dumps(row) + "\n" for row in aged))
    capsys.readouterr()
    assert main([*command, "--seeds", "2"]) == 0
    assert [row["settings"] for row in lines(out)] == ["older", None, first["settings"]]
    assert "1 of 2 rows were made by another version of the source" in capsys.readouterr().out
    (out / RESULTS).write_text(json.dumps({**first, "constants": "older"}) + "\n")
    assert main([*command, "--seeds", "1"]) == 0
    assert [row["constants"] for row in lines(out)] == ["older", first["constants"]]


def wait_for(folder: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(3000):
        if len((folder / RESULTS).read_bytes().splitlines() if (folder / RESULTS).exists() else []) >= count:
            return
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        time.sleep(0.05)
    raise AssertionError("no results came")


def started(tmp_path: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "discreet.cli", "bench", str(written(tmp_path, LONG)), "--out", str(out)]
    return subprocess.Popen([*command, "--jobs", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def stopped(tmp_path: Path, number: signal.Signals, after: int) -> tuple[Path, int, bytes]:
    """A run that met the signal before its last trial ended: its folder, exit code and what it said.

    On a busy machine it may be done before the signal is sent: then another is started.
    """
    for attempt in range(20):
        out = tmp_path / f"out {attempt}"
        process = started(tmp_path, out)
        wait_for(out, after, process)
        process.send_signal(number)
        _, error = process.communicate(timeout=300)
        if (out / RESULTS).read_bytes().count(b"\n") < 5:
            return out, process.returncode, error
    raise AssertionError("no signal met a run at work")


def test_killed_and_resumed_it_repeats_nothing_and_loses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _, _ = stopped(tmp_path, signal.SIGKILL, after=2)
    kept = (out / RESULTS).read_bytes()
    finished = kept[: kept.rfind(b"\n") + 1]
    assert 2 <= finished.count(b"\n") < 5
    (out / RESULTS).write_bytes(finished + b'{"id": "cut sho')  # what a crash in the middle of a write leaves
    assert main(["bench", str(tmp_path / "tiny.toml"), "--out", str(out), "--jobs", "1"]) == 1
    assert (out / RESULTS).read_bytes().startswith(finished)
    assert len(lines(out)) == len({row["id"] for row in lines(out)}) == 5
    entries = expand(suite(LONG))
    whole = {trial.id: execute(trial, None) for trial in unique(entries)}  # never interrupted
    assert (out / "tables.md").read_text() == markdown(lay_out(tables_of(suite(LONG))[0], entries, whole))
    assert "outside every guarantee" in capsys.readouterr().err


def test_interrupted_it_says_what_is_kept(tmp_path: Path) -> None:
    out, code, error = stopped(tmp_path, signal.SIGINT, after=1)
    assert code == 130
    assert b"of 5 trials are kept" in error
    assert error.count(b"\n") == 1
    assert 1 <= len(lines(out)) < 5


def trials(epochs: int, count: int) -> list[Trial]:
    text = TINY.replace("epochs = 2", f"epochs = {epochs}")
    return [trial for trial in unique(expand(suite(text), seeds=count)) if trial.split == "75/10/15"]


def test_a_worker_that_is_killed_or_late_is_a_row_and_the_rest_goes_on() -> None:
    rows: list[dict[str, Any]] = []

    def kill() -> None:
        while not multiprocessing.active_children():
            time.sleep(0.05)
        victim = multiprocessing.active_children()[0].pid
        time.sleep(0.2)
        assert victim is not None
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    (first,), (late,), quick = trials(10**6, 1), trials(10**6 - 1, 1), trials(2, 2)
    run_all([first, *quick], 1, None, rows.append, timeout=600)
    killer.join()
    run_all([late], 1, None, rows.append, timeout=0.5)  # alone: on a busy machine a quick one may take longer
    assert [row["status"] for row in rows] == ["failed", "ok", "ok", "failed"]
    assert "signal 9" in rows[0]["reason"]
    assert "stopped after 0.5 s" in rows[-1]["reason"]
    assert rows[0]["id"] == first.id


def test_the_device_that_is_asked_for_computes_and_its_row_says_so() -> None:
    nowhere = "cuda:99"  # what no machine has: the fit refuses it, so it was asked to run there
    row = execute(trials(2, 1)[0], None, nowhere)
    assert (row["status"], row["device"]) == ("failed", nowhere)
    assert nowhere in row["reason"]
    rows: list[dict[str, Any]] = []
    run_all(trials(2, 1), 1, None, rows.append, device=nowhere)
    assert [row["device"] for row in rows] == [nowhere]


def test_nothing_runs_where_the_suite_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    for change, near in (('"mlp"', '"mpl"'), ("small", "smal"), ("hidden", "hiden")):
        path = written(
            tmp_path, TINY.replace(change, near, 1) if near != "smal" else TINY.replace('["small"]', '["smal"]')
        )
        assert main(["bench", str(path), "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert change.strip('"') in error
        assert error.count("\n") == 1
    assert main(["bench", "smok"]) == 2
    assert "smoke" in capsys.readouterr().err
    assert main(["bench"]) == 2
    assert main(["bench", "smoke", "--format", "word"]) == 2
    assert main(["bench", "smoke", "--device", "cuda:99", "--out", str(out)]) == 2
    assert not out.exists()


def test_listings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list"]) == 0
    assert "smoke" in capsys.readouterr().out
    assert main(["bench", "smoke", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {"method", "level", "dataset", "seeds"} <= rows[0].keys()


def test_a_listing_says_what_can_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A graph that is absent, and a line that only holds what a paper printed, do not look like what runs."""
    root = ["--data-root", str(tmp_path)]
    assert main(["bench", "dpgnn-table1", "--list", "--json", *root]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    said = {row["dataset"]: row["status"] for row in rows}
    assert said["cSBM, 50,000 nodes"] == "runs"
    assert said["ogbn-arxiv"] == "graph is absent"
    assert any(row["paper"] == "63.934" for row in rows)
    assert main(["bench", "dpdgc-table2", "--list", "--json", *root]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    alone = [row for row in rows if row["dataset"] == "facebook, the paper's"]
    assert alone
    assert {row["status"] for row in alone} == {"only printed"}


def test_time_left_is_guessed_from_like_trials() -> None:
    quick, slow = trials(2, 3), trials(3, 3)
    took = {quick[0].id: 2.0, slow[0].id: 8.0}
    clock = _Clock([], [*quick, *slow], jobs=2)
    assert clock.seconds_left() is None
    for trial in (quick[0], slow[0]):
        clock.finished({"id": trial.id, "trial": trial.to_json(), "status": "ok", "wall_seconds": took[trial.id]})
    assert (clock.done, clock.failed, clock.total) == (2, 0, 6)
    assert clock.seconds_left() == pytest.approx(4 * 5.0 / 2)
    assert _time(None) == "time left unknown"
    assert [_time(seconds) for seconds in (30, 600, 7200)] == [
        "about 30 s left",
        "about 10 min left",
        "about 2.0 h left",
    ]
