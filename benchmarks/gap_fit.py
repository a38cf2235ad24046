"""A whole GAP fit against an MLP fit of the same widths and epochs, and the time that --help takes.

python benchmarks/gap_fit.py [--data cora] [--json]

Seconds of processor cores, the least of some repeats: a busy machine disturbs them less than the clock.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import torch

import discreet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="csbm")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seconds = fits(options.data, options.repeats)
    ratio, start = seconds["gap"] / seconds["mlp"], start_of_command(options.repeats)
    if options.json:
        print(json.dumps({"data": options.data, **seconds, "ratio": ratio, "help": start}))
        return
    mlp, gap = seconds["mlp"], seconds["gap"]
    print(f"{options.data}: mlp {mlp:.3f} s  gap {gap:.3f} s  ratio {ratio:.2f} (target ≤ 2)")
    print(f"discreet --help: {start:.2f} s (target < 0.15)")


def fits(data: str, repeats: int) -> dict[str, float]:
    """Seconds of a fit by method; the two take turns, so that a busy machine disturbs them alike."""
    graph = discreet.split(discreet.load(data), "75/10/15", 0)
    privacy = discreet.Privacy(discreet.EdgeLevel(), 4.0)
    seconds = {"mlp": float("inf"), "gap": float("inf")}
    for _ in range(repeats):
        for name, kind in (("mlp", discreet.MLPClassifier), ("gap", discreet.GAP)):
            started = time.process_time()
            kind(privacy).fit(graph)
            seconds[name] = min(seconds[name], time.process_time() - started)
    return seconds


def start_of_command(repeats: int) -> float:
    """Seconds of ``discreet --help``."""
    best = float("inf")
    for _ in range(repeats):
        started = core_seconds_of_children()
        subprocess.run([sys.executable, "-m", "discreet.cli", "--help"], check=True, capture_output=True)
        best = min(best, core_seconds_of_children() - started)
    return best


def core_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
