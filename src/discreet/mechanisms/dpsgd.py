"""Noisy steps: batches drawn as the stage's event says, and exact noise drawn one step ahead on a thread of its own."""

from __future__ import annotations

import os
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

import numpy as np

from discreet.arrays import Array, IntArray
from discreet.errors import PlanViolationError
from discreet.mechanisms.bits import NoiseSource, Randomness, bits_of
from discreet.mechanisms.gaussian import Grid
from discreet.privacy import events
from discreet.privacy.plan import Stage
from discreet.queries.gradients import GradientSteps

MECHANISM = GradientSteps.mechanism


def steps_of(stage: Stage) -> GradientSteps:
    """The query of a stage of noisy steps."""
    if not isinstance(stage.query, GradientSteps):
        raise PlanViolationError(f"stage {stage.name!r} does not take steps")
    return stage.query


def draw_batch(stage: Stage, randomness: Randomness) -> IntArray:
    """Positions of the batch among the example ids, drawn as the stage's event says.

    Guarantee: fresh, exact coins of the event's own rate (Poisson), or a uniform subset of its own size (fixed), or all
    examples where the event claims no sampling. Without privacy the parameters decide, for there is no claim.
    """
    query, event = steps_of(stage), stage.event
    examples, bits = query.num_examples, bits_of(randomness)
    if isinstance(event, events.GroupSampledGaussianDpEvent):
        return np.flatnonzero(bits.coins(event.sampling_probability, examples))
    if isinstance(event, events.GroupFixedSampledGaussianDpEvent):
        return bits.choice_without_replacement(event.dataset_size, event.batch_size)
    if not isinstance(event, events.GaussianDpEvent | events.NonPrivateDpEvent):
        raise PlanViolationError(f"stage {stage.name!r} has an event that says nothing of batches")
    if query.takes_all or isinstance(event, events.GaussianDpEvent):
        return np.arange(examples)
    return np.flatnonzero(bits.coins(query.batch_size / examples, examples))


# -------------------------------------------------------------------- what the replay audit compares


def term_distance(stage: Stage, one: Array, two: Array, tolerance: float) -> tuple[float, str | None]:
    """How near two sets of terms come to what the stage allows (1 is all of it), and what is wrong, or None.

    At most ``touched`` terms may differ, none may be longer than the clip norm, and under null, if as many as
    ``touched`` differ, one of them must be zero on one side. Where every step takes every example, their sum may
    not move further than the sensitivity that the noise is made for.
    """
    query = steps_of(stage)
    clip, touched = query.clip_norm, query.touched.examples
    longest = max(_longest(one), _longest(two)) / clip
    if longest > 1 + tolerance:
        return longest, f"stage {stage.name!r} has a term of {longest:.6g} times its clip norm"
    differs = np.linalg.norm((one - two).astype(np.float64), axis=1) > tolerance * clip
    count = int(differs.sum())
    if count > touched:
        return count / touched, f"stage {stage.name!r} changed {count} terms, but one unit touches at most {touched}"
    if count == touched and query.touched.change == "null" and not _one_is_zero(one[differs], two[differs]):
        return 1.0, f"stage {stage.name!r}: the own term of the unit must be zero on the side where it is null"
    moved = _moved_in_all(stage, one, two)
    if moved > 1 + tolerance:
        return moved, f"stage {stage.name!r} moved by {moved:.6g} times its declared sensitivity"
    return count / touched, None


def _moved_in_all(stage: Stage, one: Array, two: Array) -> float:
    """How far the sum of all terms moved, over the declared sensitivity; 0 where batches are drawn."""
    if not steps_of(stage).takes_all:
        return 0.0
    return float(np.linalg.norm((one - two).astype(np.float64).sum(axis=0))) / stage.sensitivity


def _longest(terms: Array) -> float:
    return float(np.linalg.norm(terms.astype(np.float64), axis=1).max(initial=0.0))


def _one_is_zero(one: Array, two: Array) -> bool:
    return bool(((one == 0).all(axis=1) | (two == 0).all(axis=1)).any())


# -------------------------------------------------------------------- noise, one step ahead

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
        self._source, self._purpose, self._runs, self._grid = source, purpose, runs, grid
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
        self._grid.fill(self._source.stream(self._purpose, run), self._buffers[run % 2])

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
