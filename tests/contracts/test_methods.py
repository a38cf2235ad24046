"""Every registered method at every level keeps the contract of ``discreet.testing``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from discreet.errors import PrivacyError, UnsupportedError
from discreet.methods.registry import list_methods, load_method
from discreet.privacy.budget import Privacy
from discreet.privacy.coverage import COVERAGE
from discreet.testing import MethodCheck, method_checks
from tests.contracts.cases import CASES, SPECS, graph_for, make

CHECKS = [check for case in CASES for check in method_checks(case)]
LONG = (
    *("replay: progap at node:", "replay: gap at node:thinned", "replay: gap at node:promised"),
    "replay: dpdgc at node:thinned",
)
"""Whole fits of many parts; ``make test`` replays the same methods at their other levels, and gap in its own tests."""


def _checks() -> list[object]:
    """Every check; the longest are for ``make slow``."""
    return [pytest.param(c, marks=pytest.mark.slow) if str(c).startswith(LONG) else c for c in CHECKS]


@pytest.mark.effort
@pytest.mark.parametrize("check", _checks(), ids=str)
def test_contract(check: MethodCheck) -> None:
    check()


@pytest.mark.parametrize("name", list_methods())
def test_declaration_tells_the_truth(name: str) -> None:
    """The record beside the class is what the class does, level by level."""
    declared = list_methods()[name]
    kind = load_method(declared)
    assert kind.method == name
    assert kind.levels == declared.levels
    for level, covers in declared.covers.items():
        assert covers in COVERAGE
        assert make(name, SPECS[level][0]).covers == covers
        for settings in declared.variants.get(level, ()):
            assert make(name, SPECS[level][0], **settings).covers in COVERAGE


@pytest.mark.parametrize("name", list_methods())
def test_unsupported_levels_are_refused_by_name(name: str) -> None:
    for kind in set(SPECS) - set(list_methods()[name].levels):
        with pytest.raises(UnsupportedError, match=name):
            make(name, SPECS[kind][0]).fit(graph_for("edge"))


def test_privacy_of_another_kind_is_refused() -> None:
    with pytest.raises(PrivacyError):
        Privacy("edge", 1.0)  # type: ignore[arg-type]


@pytest.mark.slow
def test_checks_that_python_left_out_are_not_passed() -> None:
    script = "from discreet.testing import MethodCheck; MethodCheck(None, lambda case: None)()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-O", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "run without it" in done.stderr
