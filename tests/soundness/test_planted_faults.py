"""Every planted fault is caught by the check that was named for it, and that check finds nothing without the fault."""

from __future__ import annotations

import decimal
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from tests.effort import HIGH, effort
from tests.soundness.faults.checks import CHECKS, CURATOR_RUNS, REPLAY_PAIRS, Found, Subject, replay
from tests.soundness.faults.registry import Fault
from tests.soundness.faults.table import FAULTS, in_surroundings

TRIES = 3
"""A statistical check may miss a fault by chance; at its false alarm of 1e-6 it may look again."""
FEW_RUNS = (100, 300)
"""Of the curator, enough for most faults: tried before all of them."""


@cache
def honest(check: str, subject: Subject, pairs: int) -> tuple[str, ...]:
    """What the check says of the library as it is: once for all faults that share it.

    It looks at the pairs, or at as many runs, that showed the fault, and in ``make slow`` at all that a fault gets.
    """
    if check == "replay":
        return tuple(replay(subject, None, effort(pairs, REPLAY_PAIRS)).violations)
    return tuple(CHECKS[check](subject, None).violations)


def subjects(fault: Fault) -> Iterator[Subject]:
    """What the check looks at until it catches the fault; one that asks for a number of runs of its own needs it."""
    if fault.check == "curator" and fault.subject.runs == CURATOR_RUNS and not HIGH:
        yield from (replace(fault.subject, runs=few) for few in FEW_RUNS)
    for _ in range(TRIES):
        yield fault.subject


def catches(fault: Fault, found: Found) -> bool:
    """Whether it says what it was named for."""
    return any(fault.says in violation for violation in found.violations)


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    """Some faults leave what they know in the process: for the tests after them it is put back."""
    logs, decimals, depth = logging.getLogger("discreet"), decimal.getcontext(), sys.getrecursionlimit()
    level, precision, mask = logs.level, decimals.prec, os.umask(0o022)
    with np.errstate(), np.printoptions():
        yield
    os.umask(mask)
    logs.setLevel(level)
    decimals.prec = precision
    sys.setrecursionlimit(depth)
    torch.use_deterministic_algorithms(False)
    in_surroundings.forget()


@pytest.mark.effort
@pytest.mark.parametrize("name", list(FAULTS))
def test_caught_and_only_when_planted(name: str, monkeypatch: pytest.MonkeyPatch, record_property) -> None:
    fault = FAULTS[name]
    with monkeypatch.context() as patch:
        fault.plant(patch)
        for subject in subjects(fault):
            found = CHECKS[fault.check](subject, name)
            if catches(fault, found):
                break
    assert catches(fault, found), found.violations[:5]
    assert honest(fault.check, subject, found.pairs) == ()
    record_property("caught in", f"{found.effort} by {fault.check}")


def test_there_are_enough_and_those_seen_in_published_code_are_among_them() -> None:
    assert len(FAULTS) >= 80
    assert sum(fault.seen for fault in FAULTS.values()) >= 16
