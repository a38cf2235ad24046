"""Every planted fault is caught by the check that was named for it, and that check finds nothing without the fault."""

from __future__ import annotations

from functools import cache

import pytest

from tests.effort import effort
from tests.soundness.faults.checks import CHECKS, REPLAY_PAIRS, Subject, replay
from tests.soundness.faults.table import FAULTS

TRIES = 3
"""A statistical check may miss a fault by chance; at its false alarm of 1e-6 it may look again."""


@cache
def honest(check: str, subject: Subject, pairs: int) -> tuple[str, ...]:
    """What the check says of the library as it is: once for all faults that share it.

    Replay looks at the very pairs that showed the fault, and in ``make slow`` at all that a fault gets.
    """
    if check == "replay":
        return tuple(replay(subject, None, effort(pairs, REPLAY_PAIRS)).violations)
    return tuple(CHECKS[check](subject, None).violations)


@pytest.mark.effort
@pytest.mark.parametrize("name", list(FAULTS))
def test_caught_and_only_when_planted(name: str, monkeypatch: pytest.MonkeyPatch, record_property) -> None:
    fault = FAULTS[name]
    with monkeypatch.context() as patch:
        fault.plant(patch)
        for _ in range(TRIES):
            found = CHECKS[fault.check](fault.subject, name)
            if found.violations:
                break
    assert any(fault.says in violation for violation in found.violations), found.violations[:5]
    assert honest(fault.check, fault.subject, found.pairs) == ()
    record_property("caught in", f"{found.effort} by {fault.check}")


def test_there_are_enough_and_those_seen_in_published_code_are_among_them() -> None:
    assert len(FAULTS) >= 80
    assert sum(fault.seen for fault in FAULTS.values()) >= 16
