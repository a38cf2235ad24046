"""The table of planted faults of ``docs/audit.md``, measured: ``python -m tests.soundness.faults.table``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.soundness.faults import in_methods, in_noise  # noqa: F401  (they register their faults)
from tests.soundness.faults.checks import CHECKS
from tests.soundness.faults.registry import FAULTS, Fault

REPEATS = 3
HEAD = "| fault | in published code | planted in | must be caught by | what it says | caught |"


def promised(fault: Fault) -> str:
    """The part of a row that is known beforehand."""
    seen = "yes" if fault.seen else ""
    subject = f"`{fault.subject.method}` at `{fault.subject.level}`" if fault.subject.method != "none" else "accounting"
    return f"| {fault.name} | {seen} | {subject} | {fault.check} | {fault.says} |"


def rows() -> Iterator[str]:
    """Every fault, with how often it was caught and in how many pairs or runs."""
    for fault in FAULTS.values():
        efforts, caught = [], 0
        for _ in range(REPEATS):
            with pytest.MonkeyPatch.context() as patch:
                fault.plant(patch)
                found = CHECKS[fault.check](fault.subject)
            caught += any(fault.says in violation for violation in found.violations)
            efforts.append(found.effort)
        yield f"{promised(fault)} {caught} of {REPEATS}, in {max(efforts, key=len)} |"


if __name__ == "__main__":
    print(HEAD)
    print("|" + "---|" * HEAD.count(" | ") + "---|")
    for row in rows():
        print(row, flush=True)
