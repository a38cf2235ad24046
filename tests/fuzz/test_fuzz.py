"""A few generated inputs with fixed seeds: each ends in success or in one sentence, soon, and leaves nothing.

``make fuzz N=10000`` runs as many with fresh seeds.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.effort import effort
from tests.fuzz import outcomes
from tests.fuzz.__main__ import fuzz_one
from tests.fuzz.grammars import SECTIONS
from tests.fuzz.outcomes import GOOD

CASES = effort(30, 120)
FEWER = {"runs": effort(5, 20), "options": effort(20, 80)}  # these take seconds


@pytest.mark.effort
@pytest.mark.parametrize("section", SECTIONS)
def test_every_input_ends_well(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "SECONDS", 60)  # on a machine that does other work too
    monkeypatch.setattr(outcomes, "WAITING", 600)
    ended = {seed: fuzz_one(section, seed) for seed in range(FEWER.get(section, CASES))}
    assert {seed: found for seed, found in ended.items() if found[0].outcome not in GOOD} == {}
    codes = {found.code for found, _ in ended.values()}
    assert 0 in codes, "a grammar makes valid inputs too"
    assert len(codes) > 1, "and others"


def test_failures_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer tells a bug, a hang and a leftover from a sentence."""
    from pathlib import Path

    from discreet.cli import data, methods

    def leave(*_: object) -> None:
        Path("left").write_text("x")

    def hang(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr(methods, "print_rows", lambda *_: [][0])
    assert outcomes.run_case(["methods"], lambda _: None).outcome == outcomes.TRACEBACK
    monkeypatch.setattr(data, "print_rows", leave)
    assert outcomes.run_case(["data"], lambda _: None).outcome == outcomes.LEFTOVER
    monkeypatch.setattr(outcomes, "SECONDS", 1)
    monkeypatch.setattr(data, "print_rows", hang)
    assert outcomes.run_case(["data"], lambda _: None).outcome == outcomes.HANG


# Three cases on two processes, of which one dies; in a process of its own, as one with threads is not to be forked.
DYING = """
import os
from tests.fuzz.jobs import run_all
def run(task):
    return os.kill(os.getpid(), 9) if task == 1 else task
print(sorted(run_all([0, 1, 2], run, lambda code: f"died: {code}", 2)))
"""


def test_a_process_that_dies_is_the_outcome_of_its_case() -> None:
    command, environment = [sys.executable, "-c", DYING], {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[(0, 0), (1, 'died: -9'), (2, 2)]"
