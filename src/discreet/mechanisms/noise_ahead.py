"""Gaussian noise drawn one run ahead, on a thread of its own, while the step that will need it is computed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import numpy as np
import numpy.typing as npt

from discreet.errors import PlanViolationError
from discreet.mechanisms.noise import NoiseSource


class NoiseAhead:
    """Standard normal vectors for the runs of one stage, in order; NumPy lets go of the interpreter while it draws.

    Guarantee: run t gets exactly the numbers that ``source.stream(purpose, t).standard_normal(size)`` would give,
    once, whatever the threads do; no data enters here, so drawing early cannot make noise depend on data.
    Two buffers alternate: what :meth:`take` returns is valid until the next :meth:`take`.
    """

    def __init__(self, source: NoiseSource, purpose: str, runs: int, size: int) -> None:
        """Start drawing run 0."""
        self._source, self._purpose, self._runs = source, purpose, runs
        self._buffers = (np.empty(size), np.empty(size))
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="noise")
        self._next = 0
        self._pending: Future[None] | None = self._submit(0)

    def take(self) -> npt.NDArray[np.float64]:
        """The noise of the next run; the one after it is being drawn when this returns."""
        if self._pending is None:
            raise PlanViolationError(f"the noise for {self._purpose!r} was planned for {self._runs} runs, not more")
        self._pending.result()
        taken = self._buffers[self._next % 2]
        self._next += 1
        self._pending = self._submit(self._next)
        return taken

    def _submit(self, run: int) -> Future[None] | None:
        if run >= self._runs:
            return None
        return self._worker.submit(self._draw, run)

    def _draw(self, run: int) -> None:
        self._source.stream(self._purpose, run).standard_normal(out=self._buffers[run % 2])

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
        self._worker.shutdown(wait=True, cancel_futures=True)
