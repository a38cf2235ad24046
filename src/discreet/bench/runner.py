"""Run what a suite still lacks: results that are there are computed again only where a default changed since."""

from __future__ import annotations

import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.bench.graphs import missing
from discreet.bench.pool import run_all
from discreet.bench.store import RESULTS, Store, read_rows
from discreet.bench.trials import Entry, Trial, unique
from discreet.errors import DataNotFoundError, InterruptedRunError
from discreet.files import from_json

Row = dict[str, Any]
LOG = logging.getLogger("discreet.bench")
EVERY_SECONDS = 30.0
"""Between two lines of progress."""


@dataclass(frozen=True)
class Options:
    """How to run, none of which can change a result."""

    jobs: int
    data_root: Path | None = None
    strict: bool = False
    retry_failed: bool = False
    timeout: float | None = None
    verbose: bool = False
    device: str = "cpu"


@dataclass
class Outcome:
    """What there is after a run: every row of the folder, and the graphs that could not be had."""

    rows: dict[str, Row]
    absent: dict[str, str] = field(default_factory=dict)
    ran: int = 0


def default_jobs() -> int:
    """One process per core that we may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(entries: Sequence[Entry], folder: Path, options: Options) -> Outcome:
    """Run the trials that have no row yet, one line on disk each, and return all rows."""
    trials = unique(entries)
    absent = _find_absent_graphs(trials, options)
    with Store(folder) as store:
        rows = read_rows(folder)
        todo = [
            trial for trial in trials if trial.dataset not in absent and _must_run(rows.get(trial.id), trial, options)
        ]
        clock = _Clock(rows.values(), todo, options.jobs)
        with _progress(clock, options.verbose) as report:

            def done(row: Row) -> None:
                store.append(row)
                rows[row["id"]] = row
                clock.finished(row)
                report(row)

            try:
                jobs = min(options.jobs, max(1, len(todo)))
                run_all(todo, jobs, options.data_root, done, options.timeout, options.device)
            except KeyboardInterrupt:
                kept = f"{clock.done} of {len(todo)} trials are kept in {folder / RESULTS}"
                raise InterruptedRunError(f"interrupted; {kept}: the same command goes on from there") from None
    return Outcome(rows, absent, clock.done)


def _must_run(row: Row | None, trial: Trial, options: Options) -> bool:
    """Whether to run the trial: there is no row, it failed and is wanted again, or it ran with another default.

    A default may be a constant behind None. Rows of before these were written down are taken as they are.
    """
    if row is None or (options.retry_failed and row["status"] != "ok"):
        return True
    then, now = (row.get("settings"), row.get("constants")), (trial.settings_digest, trial.constants_digest)
    return any(before not in (None, present) for before, present in zip(then, now, strict=True))


def _find_absent_graphs(trials: Sequence[Trial], options: Options) -> dict[str, str]:
    """Graphs that are not here, with the reason; said before the hours of work, not after."""
    found = {}
    for name in dict.fromkeys(trial.dataset for trial in trials if trial.dataset):
        reason = missing(name, options.data_root)
        if reason is None:
            continue
        if options.strict:
            raise DataNotFoundError(reason)
        print(f"skipping {name}: {reason}", file=sys.stderr)
        found[name] = reason
    return found


# -------------------------------------------------------------------- time left


class _Clock:
    """Guesses what is left from what like trials took."""

    def __init__(self, rows: Any, todo: Sequence[Trial], jobs: int) -> None:
        self.total, self.done, self.failed, self.jobs = len(todo), 0, 0, jobs
        self._left = {trial.id: _like(trial.to_json()) for trial in todo}
        self._took: dict[tuple[str, ...], list[float]] = {}
        self._started = time.monotonic()
        for row in rows:
            self._learn(row)

    def finished(self, row: Row) -> None:
        self.done += 1
        self.failed += row["status"] != "ok"
        self._left.pop(row["id"], None)
        self._learn(row)

    def seconds_left(self) -> float | None:
        """None until something like it has run."""
        everything = [seconds for took in self._took.values() for seconds in took]
        if not everything:
            return None
        usual = statistics.fmean(everything)
        guess = sum(statistics.fmean(self._took.get(like, [usual])) for like in self._left.values())
        return guess / self.jobs

    def _learn(self, row: Row) -> None:
        if row.get("wall_seconds") is not None:
            self._took.setdefault(_like(row["trial"]), []).append(float(from_json(row["wall_seconds"])))


def _like(trial: dict[str, Any]) -> tuple[str, ...]:
    """What trials that take about as long have in common."""
    what = trial.get("measure") or trial.get("method")
    return str(what), str(trial.get("dataset")), str(trial.get("level")).partition(":")[0]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "time left unknown"
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"


@contextmanager
def _progress(clock: _Clock, verbose: bool) -> Iterator[Callable[[Row], None]]:
    """A bar on a terminal; a line per trial where asked for; one every half minute elsewhere."""
    if verbose:
        yield lambda row: print(_line(clock, row), file=sys.stderr, flush=True)
    elif sys.stderr.isatty() and clock.total:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (TextColumn("{task.completed}/{task.total} trials"), BarColumn(), TextColumn("{task.fields[left]}"))
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task("", total=clock.total, left=_time(clock.seconds_left()))

            def update_bar(row: Row) -> None:
                failed = f", {clock.failed} failed" if clock.failed else ""
                bars.update(task, completed=clock.done, left=_time(clock.seconds_left()) + failed)

            yield update_bar
    else:
        said = time.monotonic()

        def log_rarely(row: Row) -> None:
            nonlocal said
            if time.monotonic() - said >= EVERY_SECONDS:
                said = time.monotonic()
                LOG.info(_line(clock, row))

        yield log_rarely


def _line(clock: _Clock, row: Row) -> str:
    trial = row["trial"]
    what = trial["measure"] or f"{trial['method']} on {trial['dataset']}, {trial['level']}, ε {trial['epsilon']}"
    how = f"{row['wall_seconds']:.1f} s" if row["status"] == "ok" else f"FAILED: {row['reason']}"
    return f"[{clock.done}/{clock.total}, {_time(clock.seconds_left())}] {what}, seed {trial['seed']}: {how}"
