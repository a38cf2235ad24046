"""The table of planted faults of ``docs/audit.md``, measured: ``python -m tests.soundness.faults.table``."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import chdir
from tempfile import TemporaryDirectory

import pytest

from tests.soundness.faults import (  # noqa: F401  (they register their faults)
    in_arithmetic,
    in_bytes_and_words,
    in_later_steps,
    in_methods,
    in_noise,
    in_surroundings,
    in_what_leaves,
)
from tests.soundness.faults.checks import CHECKS
from tests.soundness.faults.registry import FAULTS, Fault

REPEATS = 3
"""Of checks that draw noise; the others give the same every time."""
HEAD = "| fault | in published code | planted in | must be caught by | what it says | caught |"


def promised(fault: Fault) -> str:
    """The part of a row that is known beforehand."""
    seen = "yes" if fault.seen else ""
    return f"| {fault.name} | {seen} | {fault.subject.where} | {fault.check} | {fault.says} |"


def rows(names: Collection[str]) -> Iterator[str]:
    """These faults, with how often each was caught and in how many pairs or runs."""
    for fault in (FAULTS[name] for name in names):
        efforts, caught, repeats = [], 0, REPEATS if fault.check in ("curator", "fits") else 1
        for _ in range(repeats):
            with pytest.MonkeyPatch.context() as patch:
                fault.plant(patch)
                found = CHECKS[fault.check](fault.subject, fault.name)
            caught += any(fault.says in violation for violation in found.violations)
            efforts.append(found.effort)
        yield f"{promised(fault)} {caught} of {repeats}, in {max(efforts, key=len)} |"


if __name__ == "__main__":
    print(HEAD)
    print("|" + "---|" * HEAD.count(" | ") + "---|")
    with TemporaryDirectory() as folder, chdir(folder):  # some faults write files
        for row in rows(sys.argv[1:] or FAULTS):
            print(row, flush=True)
