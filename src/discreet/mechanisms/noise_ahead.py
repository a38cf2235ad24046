"""Exact Gaussian noise drawn one run ahead, on a thread of its own, while the step that will need it is computed."""

from __future__ import annotations

import os
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import numpy as np

from discreet.arrays import IntArray
from discreet.errors import PlanViolationError
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.noise import NoiseSource

WORTH_A_THREAD = 4096
"""How many numbers a thread must have to draw before it is worth its own cost."""


class NoiseAhead:
    """Noise in steps of a grid for the runs of one stage, in order; the sampler lets go of the interpreter.

    Guarantee: run t gets exactly the numbers that ``grid.sampler`` draws from ``source.stream(purpose, t)``,
    once, whatever the threads do; no data enters here, so drawing early cannot make noise depend on data. What was
    drawn ahead does not cross a fork: in the child it is wiped, and asking for it is an error there, as it is
    for the source itself.
    Two buffers alternate: what :meth:`take` returns is valid until the next :meth:`take`.
    """

    def __init__(self, source: NoiseSource, purpose: str, runs: int, grid: Grid) -> None:
        """Start drawing run 0; vectors so small that a thread costs more than they do are drawn when asked for."""
        self._source, self._purpose, self._runs, self._sampler = source, purpose, runs, grid.sampler
        self._process = os.getpid()
        self._buffers = (np.empty(grid.size, dtype=np.int64), np.empty(grid.size, dtype=np.int64))
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="noise") if grid.size >= WORTH_A_THREAD else None
        self._next = 0
        self._pending: Future[None] | None = self._submit(0)
        _ALIVE.add(self)

    def take(self) -> IntArray:
        """The noise of the next run; the one after it is being drawn when this returns."""
        if os.getpid() != self._process:
            raise PlanViolationError("noise that was drawn ahead does not cross into another process: draw it there")
        if self._next >= self._runs:
            raise PlanViolationError(f"the noise for {self._purpose!r} was planned for {self._runs} runs, not more")
        if self._pending is None:
            self._draw(self._next)
        else:
            self._pending.result()
        taken = self._buffers[self._next % 2]
        self._next += 1
        self._pending = self._submit(self._next)
        return taken

    def _submit(self, run: int) -> Future[None] | None:
        if self._worker is None or run >= self._runs:
            return None
        return self._worker.submit(self._draw, run)

    def _draw(self, run: int) -> None:
        self._sampler.fill(self._source.stream(self._purpose, run), self._buffers[run % 2])

    def _forget(self) -> None:
        """In the child of a fork: the parent will use these numbers, so nobody else may."""
        for buffer in self._buffers:
            buffer.fill(np.iinfo(np.int64).min)
        self._pending = None

    def __enter__(self) -> NoiseAhead:
        """Use as a context, so that the thread ends."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the thread."""
        self.close()

    def close(self) -> None:
        """Let the thread finish what it draws, and end it."""
        # A thread does not survive a fork, so in a child there is none to wait for.
        if self._worker is not None and os.getpid() == self._process:
            self._worker.shutdown(wait=True, cancel_futures=True)


_ALIVE: weakref.WeakSet[NoiseAhead] = weakref.WeakSet()


def _forget_in_child() -> None:
    for ahead in list(_ALIVE):
        ahead._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
