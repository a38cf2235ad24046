"""A whole run on Cora, imports apart: load, split, plan, fit and predict, against the times of published codes.

    python benchmarks/cora_times.py [--json] [--threads 1] [--repeats 3]

The times of the published codes are those that were measured for them on a like machine, on the processor. Ours are
seconds of processor cores, the least of some repeats; the first loads machine code of the noise sampler.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import torch

import discreet
from discreet.methods.registry import find_method, load_method

PUBLISHED = {"gap": (3.1, 3), "progap": (6.0, 3), "lpgnn": (15.0, 10), "lpgnet": (28.0, 10), "dpdgc": (235.0, 10)}
"""Seconds, and the part of them that is the goal."""


def run(method: str) -> float:
    started = time.process_time()
    graph = discreet.split(discreet.load("cora"), "75/10/15", 0)
    level = discreet.parse_level("local" if method == "lpgnn" else "edge")
    model = load_method(find_method(method))(discreet.Privacy(level, 4.0), random_state=0)
    if method == "lpgnn":
        model.set_params(feature_range=(0.0, 1.0))  # words that are there or not
    model.fit(graph).predict_proba(graph, uncovered=True)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="a list of results on standard output")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results: list[dict[str, Any]] = []
    for method, (published, part) in PUBLISHED.items():
        ours = min(run(method) for _ in range(options.repeats))
        results.append({"method": method, "published_s": published, "core_s": ours, "goal_s": published / part})
        print(results[-1], file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
