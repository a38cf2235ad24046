"""``python -m tests.fuzz [N] [--section NAME] [--seed S] [--jobs J]``: N cases with fresh seeds; what fails is printed.

A case that failed is run again with its section, ``--seed`` and N = 1.
"""

from __future__ import annotations

import argparse
import collections
import random
import resource
import secrets
import sys
import tempfile
import time

from tests.fuzz.grammars import SECTIONS
from tests.fuzz.jobs import run_all
from tests.fuzz.outcomes import GOOD, TRACEBACK, Ended, run_case

MEMORY = 16 * 2**30
"""Of one process: an input that asks for more is a finding, not a dead machine."""
EVERY_SECONDS = 60.0
"""Between two lines that say how far it is."""


def fuzz_one(section: str, seed: int) -> tuple[Ended, list[str]]:
    """One case."""
    arguments, prepare = SECTIONS[section](random.Random(seed))
    return run_case(arguments, prepare), arguments


def fuzz(count: int, sections: list[str], first: int, jobs: int = 1, within: float | None = None) -> int:
    """Run and count; 1 where any case did not end well, or was not begun ``within`` so many seconds."""
    import torch  # before the forks: each would import it anew

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="fuzz-run-") as place:
        tempfile.tempdir = place  # what a process made that died goes too
        return _fuzz(count, sections, first, jobs, within)


def _fuzz(count: int, sections: list[str], first: int, jobs: int, within: float | None) -> int:
    began = said = time.monotonic()
    seeds = range(first, first + max(1, count // len(sections)))
    print(f"seeds {seeds[0]} to {seeds[-1]} in each of {', '.join(sections)}", flush=True)
    outcomes: dict[str, collections.Counter[str]] = {section: collections.Counter() for section in sections}
    tasks = [(section, seed) for seed in seeds for section in sections]
    for (section, seed), (ended, arguments) in run_all(tasks, lambda task: fuzz_one(*task), _died, jobs):
        outcomes[section][ended.outcome] += 1
        if ended.outcome not in GOOD:
            _print_failure(section, seed, ended, arguments)
        now = time.monotonic()
        if now - said > EVERY_SECONDS:
            said = now
            done = sum(found.total() for found in outcomes.values())
            print(f"{done} of {len(tasks)} cases after {now - began:.0f} s", flush=True)
        if within is not None and now - began > within:
            break
    return _print_counts(outcomes, len(tasks))


def _died(code: int | None) -> tuple[Ended, list[str]]:
    return Ended(TRACEBACK, code, f"the process died with exit code {code}"), ["(see the seed)"]


def _print_failure(section: str, seed: int, ended: Ended, arguments: list[str]) -> None:
    shown = [argument if len(argument) < 60 else f"{argument[:57]}..." for argument in arguments]
    text = ended.text.strip()[-400:]
    print(f"{ended.outcome}: --section {section} --seed {seed}: {shown!r}\n  {text}", flush=True)


def _print_counts(outcomes: dict[str, collections.Counter[str]], planned: int) -> int:
    for section, found in outcomes.items():
        named = ", ".join(f"{name} {number}" for name, number in found.most_common())
        print(f"{section:10} {found.total()} cases: {named}", flush=True)
    left = planned - sum(found.total() for found in outcomes.values())
    if left:
        print(f"{left} cases were not run")
    return min(1, left + sum(found.total() - sum(found[good] for good in GOOD) for found in outcomes.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("count", nargs="?", type=int, default=600)
    parser.add_argument("--section", choices=list(SECTIONS), default=None)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--within", type=float, default=None, help="begin no case after so many seconds")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    start = secrets.randbelow(2**40) if given.seed is None else given.seed
    wanted = [given.section] if given.section else list(SECTIONS)
    sys.exit(fuzz(given.count, wanted, start, given.jobs, given.within))
