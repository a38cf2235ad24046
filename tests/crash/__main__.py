"""``python -m tests.crash [--kills N] [--only NAME]… [--seed S]``: kill each command N times; prints what was met."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.crash.kills import NAMES, kill_often


def kill_all(names: list[str], kills: int, seed: int) -> int:
    """A row for each command; 1 where anything was wrong."""
    import torch  # before the forks: each would import it anew

    torch.set_num_threads(1)
    failed = 0
    print(f"{'command':8} {'kills':>6} {'had finished':>13} {'met it writing':>15} {'wrong':>6}", flush=True)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="crash-") as place:
            found = kill_often(name, kills, Path(place), seed)
        row = f"{name:8} {found.kills:>6} {found.finished:>13} {found.while_writing:>15} {len(found.wrong):>6}"
        print(row, *found.wrong, sep="\n  ", flush=True)
        failed |= bool(found.wrong)
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="crash")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--only", action="append", choices=NAMES)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.exit(kill_all(given.only or list(NAMES), given.kills, given.seed))
