"""Trials in worker processes, one per core: a process that the kernel kills for its memory is only a row."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from discreet.bench.trials import Trial
from discreet.workers import Worker

READY = "ready"
Row = dict[str, Any]


class TrialWorker(Worker):
    """A process that runs one trial at a time."""

    def __init__(self, root: Path | None, device: str) -> None:
        """Start the process."""
        super().__init__(_serve, root, device)
        self.trial: Trial | None = None
        self.ready = False
        self.since = math.inf

    def give(self, trial: Trial) -> None:
        """Start a trial; its time counts from when the process has imported what it needs."""
        self.trial = trial
        self.since = time.monotonic() if self.ready else math.inf
        self.pipe.send(trial.to_json())

    def take(self) -> Row | str | None:
        """The row of the running trial, READY before the first, or None if the process died."""
        try:
            message: Row | str | None = self.pipe.recv() if self.pipe.poll(0) else None
        except (EOFError, OSError):
            return None
        if message == READY:
            self.ready, self.since = True, time.monotonic()
        return message


def run_all(
    trials: Iterable[Trial],
    jobs: int,
    root: Path | None,
    done: Callable[[Row], None],
    timeout: float | None = None,
    device: str = "cpu",
) -> None:
    """Run the trials on ``jobs`` workers and hand each row to ``done``, in this process, as it comes."""
    queue = iter(trials)
    workers: list[TrialWorker] = []
    try:
        for _ in range(jobs):
            trial = next(queue, None)
            if trial is not None:
                workers.append(_started(root, device, trial))
        while workers:
            for worker in _ready(workers, timeout):
                answer = worker.take()
                if answer == READY:
                    continue
                done(answer if isinstance(answer, dict) else _died(worker, timeout))
                trial = next(queue, None)
                if trial is not None and answer is not None:
                    worker.give(trial)
                    continue
                worker.stop()
                workers.remove(worker)
                if trial is not None:
                    workers.append(_started(root, device, trial))
    finally:
        for worker in workers:
            worker.stop()


def _started(root: Path | None, device: str, trial: Trial) -> TrialWorker:
    worker = TrialWorker(root, device)
    worker.give(trial)
    return worker


def _ready(workers: list[TrialWorker], timeout: float | None) -> list[TrialWorker]:
    """Those that answered, died or ran out of time."""
    while True:
        now = time.monotonic()
        late = [worker for worker in workers if timeout is not None and now - worker.since > timeout]
        if late:
            return late
        first = min(worker.since for worker in workers)
        pause = None if timeout is None or math.isinf(first) else max(0.0, first + timeout - now) + 0.01
        pipes = wait([worker.pipe for worker in workers], pause)  # a dead worker's pipe is ready too: it ends
        if pipes:
            return [worker for worker in workers if worker.pipe in pipes]


def _died(worker: TrialWorker, timeout: float | None) -> Row:
    from discreet.bench.execute import head

    assert worker.trial is not None
    elapsed = max(0.0, time.monotonic() - worker.since)
    if timeout is not None and elapsed > timeout:
        reason = f"stopped after {timeout:g} s"
    else:
        reason = f"the process of the trial ended ({worker.how_it_ended()})"
    return {**head(worker.trial), "status": "failed", "reason": reason, "wall_seconds": elapsed}


# -------------------------------------------------------------------- in the worker


def _serve(pipe: Connection, root: Path | None, device: str) -> None:
    """Run what comes through the pipe, until it ends."""
    import torch

    import discreet.methods.base  # noqa: F401  with all that it imports, so that no trial is charged for it
    from discreet.bench.execute import execute

    torch.set_num_threads(1)
    pipe.send(READY)
    while True:
        try:
            content = pipe.recv()
        except (EOFError, OSError):
            return
        row = execute(Trial.from_json(content), root, device)
        try:
            pipe.send(row)
        except OSError:
            return
