"""Cases on several processes at once: each has imported everything once, and takes one case after the other.

Every case is a command of its own in a folder of its own. A process that dies (a segmentation fault, say) is the
outcome of the case that it was at, and another takes its place.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import TypeVar

Task = TypeVar("Task")
Found = TypeVar("Found")


def run_all(
    tasks: Sequence[Task], run: Callable[[Task], Found], died: Callable[[int | None], Found], jobs: int
) -> Iterator[tuple[Task, Found]]:
    """What ``run`` finds for every task, as it comes; ``died`` makes it of the exit code of a process that died."""
    left, busy = list(reversed(tasks)), {}
    try:
        for _ in range(min(jobs, len(left))):
            worker = _Worker(run)
            busy[worker.answers] = worker
            worker.give(left.pop())
        while busy:
            for answers in wait(list(busy)):
                worker = busy.pop(answers)  # type: ignore[call-overload]
                task = worker.task
                try:
                    found = worker.answers.recv()
                except EOFError:
                    worker.process.join()
                    found, worker = died(worker.process.exitcode), _Worker(run)
                yield task, found
                if left:
                    worker.give(left.pop())
                    busy[worker.answers] = worker
                else:
                    worker.end()
    finally:
        for worker in busy.values():
            worker.process.kill()


class _Worker:
    """A fork of this process, which may have processes of its own."""

    def __init__(self, run: Callable[[Task], Found]) -> None:
        context = multiprocessing.get_context("fork")
        self.answers, inner = context.Pipe()
        self.process = context.Process(target=_serve, args=(inner, self.answers, run))
        self.process.start()
        inner.close()

    def give(self, task: object) -> None:
        self.task = task
        self.answers.send(task)

    def end(self) -> None:
        self.answers.send(None)
        self.process.join()


def _serve(tasks: Connection, others: Connection, run: Callable[[Task], Found]) -> None:
    others.close()
    os.setsid()
    with suppress(EOFError):  # whoever gave them wants no more
        while (task := tasks.recv()) is not None:
            tasks.send(run(task))
