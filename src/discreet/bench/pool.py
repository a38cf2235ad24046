"""Worker processes, one a core and one thread each, that outlive nothing and whose death is only a row.

Not ``concurrent.futures``: there a worker that the kernel kills for its memory breaks the whole pool.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from discreet.bench.trials import Trial

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
READY = "ready"
Row = dict[str, Any]


class Worker:
    """A process that runs one trial at a time."""

    def __init__(self, root: Path | None) -> None:
        """Start the process; spawned, because a fork of a process with threads may hang."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, root), daemon=True)
        with _one_thread():
            self.process.start()
        theirs.close()
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

    def stop(self) -> None:
        """End the process now; trials have nothing to clean up."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_all(
    trials: Iterable[Trial], jobs: int, root: Path | None, done: Callable[[Row], None], timeout: float | None = None
) -> None:
    """Run the trials on ``jobs`` workers and hand each row to ``done``, in this process, as it comes."""
    queue = iter(trials)
    workers: list[Worker] = []
    try:
        for _ in range(jobs):
            trial = next(queue, None)
            if trial is not None:
                workers.append(_started(root, trial))
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
                    workers.append(_started(root, trial))
    finally:
        for worker in workers:
            worker.stop()


def _started(root: Path | None, trial: Trial) -> Worker:
    worker = Worker(root)
    worker.give(trial)
    return worker


def _ready(workers: list[Worker], timeout: float | None) -> list[Worker]:
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


def _died(worker: Worker, timeout: float | None) -> Row:
    from discreet.bench.execute import head

    assert worker.trial is not None
    elapsed = max(0.0, time.monotonic() - worker.since)
    if timeout is not None and elapsed > timeout:
        reason = f"stopped after {timeout:g} s"
    else:
        worker.process.join(5)
        code = worker.process.exitcode
        killed = code is not None and code < 0
        how = (
            f"killed by signal {-code}, perhaps for its memory" if killed and code is not None else f"exit code {code}"
        )
        reason = f"the process of the trial ended ({how})"
    return {**head(worker.trial), "status": "failed", "reason": reason, "wall_seconds": elapsed}


# -------------------------------------------------------------------- in the worker


def _serve(pipe: Connection, root: Path | None) -> None:
    """Run what comes through the pipe, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
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
        row = execute(Trial.from_json(content), root)
        try:
            pipe.send(row)
        except OSError:
            return


def _end_with_parent() -> None:
    """A parent that was killed leaves nobody to report to: stop at once instead of finishing the trial."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """The environment that numerical libraries read when they are first imported."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
