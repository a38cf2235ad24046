"""Noise drawn ahead is the same noise, once."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest

from discreet.errors import PlanViolationError
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.dpsgd import WORTH_A_THREAD, NoiseAhead
from discreet.mechanisms.gaussian import Grid


def grid_of(size: int) -> Grid:
    return Grid.for_release(1.0, 1.0, size)


@pytest.mark.parametrize("size", [100, WORTH_A_THREAD])
def test_the_same_numbers_as_without_it(size):
    with NoiseAhead(NoiseSource(insecure_seed=3), "step", 5, grid_of(size)) as ahead:
        found = [ahead.take().copy() for _ in range(5)]
    source = NoiseSource(insecure_seed=3)
    for run in range(5):
        assert np.array_equal(found[run], grid_of(size).sampler.draw(source.stream("step", run), size))


def test_a_buffer_stands_until_the_next_is_taken():
    """The next run is drawn at once, but into the other buffer."""
    with NoiseAhead(NoiseSource(insecure_seed=3), "step", 3, grid_of(200_000)) as ahead:
        first = ahead.take()
        before = first.copy()
        ahead._pending.result()
        assert np.array_equal(first, before)


@pytest.mark.parametrize("size", [4, WORTH_A_THREAD])
def test_no_more_runs_than_planned_and_no_stream_twice(size):
    source = NoiseSource(insecure_seed=0)
    with NoiseAhead(source, "step", 1, grid_of(size)) as ahead:
        ahead.take()
        with pytest.raises(PlanViolationError, match="1 runs, not more"):
            ahead.take()
    with pytest.raises(PlanViolationError, match="already drawn"):
        source.stream("step", 0)


@pytest.mark.parametrize("size", [4, WORTH_A_THREAD])
def test_what_the_thread_refuses_is_raised_here(size):
    source = NoiseSource(insecure_seed=0)
    source.stream("step", 1)
    with NoiseAhead(source, "step", 2, grid_of(size)) as ahead:
        ahead.take()
        with pytest.raises(PlanViolationError, match="already drawn"):
            ahead.take()


def _take_in_child(ahead: NoiseAhead, out: object) -> None:
    left = [buffer.copy() for buffer in ahead._buffers]
    try:
        ahead.take()
    except PlanViolationError as error:
        out.put((str(error), all((buffer == np.iinfo(np.int64).min).all() for buffer in left)))
    else:
        out.put(("taken", False))


def test_what_was_drawn_ahead_does_not_cross_a_fork():
    """One run lies ready in the parent; in the child it is wiped, and the parent still gets it."""
    context = multiprocessing.get_context("fork")
    with NoiseAhead(NoiseSource(insecure_seed=3), "step", 2, grid_of(10_000)) as ahead:
        ahead._pending.result()
        queue = context.Queue()
        child = context.Process(target=_take_in_child, args=(ahead, queue))
        child.start()
        said, wiped = queue.get(timeout=300)
        child.join()
        assert "process" in said
        assert wiped
        expected = grid_of(10_000).sampler.draw(NoiseSource(insecure_seed=3).stream("step", 0), 10_000)
        assert np.array_equal(ahead.take(), expected)
