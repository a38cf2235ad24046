"""Every planted fault: what it is, where it is planted, and the check that must catch it.

A fault is a small patch of one method or mechanism through pytest's monkeypatch: nothing in the library knows of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.soundness.faults.checks import Subject

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    """A fault; ``says`` is part of what the check must answer. ``seen`` tells whether published code had it."""

    name: str
    check: str
    subject: Subject
    says: str
    plant: Plant
    seen: bool = False


FAULTS: dict[str, Fault] = {}


def fault(name: str, check: str, subject: Subject, says: str, *, seen: bool = False) -> Callable[[Plant], Plant]:
    """Register a planting function under the check that must catch it."""

    def register(plant: Plant) -> Plant:
        assert name not in FAULTS
        FAULTS[name] = Fault(name, check, subject, says, plant, seen)
        return plant

    return register
