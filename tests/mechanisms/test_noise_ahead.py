"""Noise drawn ahead is the same noise, once."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.errors import PlanViolationError
from discreet.mechanisms.noise import NoiseSource
from discreet.mechanisms.noise_ahead import NoiseAhead


def test_the_same_numbers_as_without_it():
    with NoiseAhead(NoiseSource(insecure_seed=3), "step", 5, 1000) as ahead:
        found = [ahead.take().copy() for _ in range(5)]
    source = NoiseSource(insecure_seed=3)
    for run in range(5):
        assert np.array_equal(found[run], source.stream("step", run).standard_normal(1000))


def test_a_buffer_stands_until_the_next_is_taken():
    """The next run is drawn at once, but into the other buffer."""
    with NoiseAhead(NoiseSource(insecure_seed=3), "step", 3, 200_000) as ahead:
        first = ahead.take()
        before = first.copy()
        ahead._pending.result()
        assert np.array_equal(first, before)


def test_no_more_runs_than_planned_and_no_stream_twice():
    source = NoiseSource(insecure_seed=0)
    with NoiseAhead(source, "step", 1, 4) as ahead:
        ahead.take()
        with pytest.raises(PlanViolationError, match="1 runs, not more"):
            ahead.take()
    with pytest.raises(PlanViolationError, match="already drawn"):
        source.stream("step", 0)


def test_what_the_thread_refuses_is_raised_here():
    source = NoiseSource(insecure_seed=0)
    source.stream("step", 1)
    with NoiseAhead(source, "step", 2, 4) as ahead:
        ahead.take()
        with pytest.raises(PlanViolationError, match="already drawn"):
            ahead.take()
