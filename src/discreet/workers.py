"""Worker processes with one thread each that end with their parent, however it ends, and say nothing of Ctrl-C.

Guarantee: when the parent stops waiting for them (an error, Ctrl-C, SIGTERM) they are killed; when it dies without a
word (``kill -9``) they notice and end at once. Not ``concurrent.futures``: it waits for what is running, and its
workers print tracebacks on Ctrl-C.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
Task = TypeVar("Task")
Result = TypeVar("Result")


def thread_count() -> int:
    """How many threads this process may keep busy: what the environment says, else the cores that it may use."""
    asked = os.environ.get(THREAD_VARIABLES[0], "")
    if asked.isascii() and asked.isdigit() and int(asked[:5]) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Worker:
    """A spawned process at the other end of ``pipe``; a fork of a process with threads may hang."""

    def __init__(self, serve: Callable[..., None], *arguments: Any, context: Any = None) -> None:
        """Start ``serve(pipe, *arguments)`` in the process; ``context`` says how one starts, by default ``spawn``."""
        context = context or multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_follow_and_serve, args=(theirs, pickle.dumps((serve, arguments))), daemon=True
        )
        with _one_thread(), _interrupts_ignored():
            self.process.start()
        theirs.close()

    def how_it_ended(self) -> str:
        """In words, once its pipe has closed."""
        self.process.join(5)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"killed by signal {-code}, perhaps for its memory"
        return f"exit code {code}"

    def stop(self) -> None:
        """End the process now."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def map_in_workers(
    run: Callable[[Task], Result], tasks: Sequence[Task], count: int, context: Any = None
) -> Iterator[Result]:
    """``run`` of each task, in their order, by at most ``count`` processes; what it raises is raised here.

    ``run`` is a function of a module, and tasks and results can be pickled. Close the iterator to end the processes.
    """
    workers: list[Worker] = []
    running: dict[Connection, int] = {}
    found: dict[int, Result] = {}
    waiting = iter(range(len(tasks)))
    try:
        for position in range(len(tasks)):
            while len(workers) < min(count, len(tasks)):
                workers.append(Worker(_run_tasks, run, context=context))
                _give_next(workers[-1].pipe, tasks, waiting, running)
            while position not in found:
                for pipe in wait(list(running)):
                    assert isinstance(pipe, Connection)
                    found[running.pop(pipe)] = _received(pipe, workers)
                    _give_next(pipe, tasks, waiting, running)
            yield found.pop(position)
    finally:
        for worker in workers:
            worker.stop()


def _give_next(pipe: Connection, tasks: Sequence[Any], waiting: Iterator[int], running: dict[Connection, int]) -> None:
    position = next(waiting, None)
    if position is not None:
        running[pipe] = position
        with suppress(OSError):  # a worker that died is noticed where its answer is read
            pipe.send(tasks[position])


def _received(pipe: Connection, workers: Sequence[Worker]) -> Any:
    try:
        worked, result = pipe.recv()
    except (EOFError, OSError):
        ended = next(worker for worker in workers if worker.pipe is pipe).how_it_ended()
        raise ChildProcessError(f"a worker process ended ({ended})") from None
    if not worked:
        raise result
    return result


# -------------------------------------------------------------------- in the worker


def _follow_and_serve(pipe: Connection, what: bytes) -> None:
    """Follow the parent before ``what`` is read: that imports whatever it needs, torch perhaps, which takes seconds."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    serve, arguments = pickle.loads(what)
    serve(pipe, *arguments)


def _end_with_parent() -> None:
    """A parent that was killed leaves nobody to report to: stop at once instead of finishing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _run_tasks(pipe: Connection, run: Callable[[Any], Any]) -> None:
    """Run what comes through the pipe, until it ends."""
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        except Exception as error:  # what was sent cannot be built here
            pipe.send((False, error))
            continue
        try:
            answer = True, run(task)
        except Exception as error:  # for the parent to raise
            answer = False, error
        try:
            pipe.send(answer)
        except OSError:
            return


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


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """A child inherits that Ctrl-C is ignored, so that it prints nothing while it is still importing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
