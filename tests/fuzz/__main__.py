"""``python -m tests.fuzz [N] [--section NAME] [--seed S]``: N cases with fresh seeds; what fails is printed.

A case that failed is run again with its section, ``--seed`` and N = 1.
"""

from __future__ import annotations

import argparse
import collections
import random
import resource
import secrets
import sys

from tests.fuzz.grammars import SECTIONS
from tests.fuzz.outcomes import GOOD, Ended, run_case

MEMORY = 16 * 2**30


def fuzz_one(section: str, seed: int) -> tuple[Ended, list[str]]:
    """One case."""
    arguments, prepare = SECTIONS[section](random.Random(seed))
    return run_case(arguments, prepare), arguments


def fuzz(count: int, sections: list[str], first: int) -> int:
    """Run and count; 1 where any case did not end well."""
    failed = 0
    for section in sections:
        outcomes: collections.Counter[str] = collections.Counter()
        for seed in range(first, first + max(1, count // len(sections))):
            ended, arguments = fuzz_one(section, seed)
            outcomes[ended.outcome] += 1
            if ended.outcome not in GOOD:
                failed += 1
                shown = [argument if len(argument) < 60 else f"{argument[:57]}..." for argument in arguments]
                print(f"{ended.outcome}: --section {section} --seed {seed}: {shown!r}\n  {ended.text.strip()[-400:]}")
        print(f"{section:10}", ", ".join(f"{name} {number}" for name, number in outcomes.most_common()), flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("count", nargs="?", type=int, default=600)
    parser.add_argument("--section", choices=list(SECTIONS), default=None)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    resource.setrlimit(
        resource.RLIMIT_AS, (MEMORY, MEMORY)
    )  # an input that asks for more is a finding, not a dead machine
    start = secrets.randbelow(2**40) if given.seed is None else given.seed
    sys.exit(fuzz(given.count, [given.section] if given.section else list(SECTIONS), start))
