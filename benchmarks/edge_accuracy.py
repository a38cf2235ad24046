"""Test accuracy of the edge-level methods against those without privacy, several seeds a cell, as Markdown.

python benchmarks/edge_accuracy.py --data cora pubmed photo cs chameleon --seeds 10
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator

import torch

import discreet
from discreet.graph.graph import Graph

ROWS: list[tuple[str, str, float]] = [
    ("mlp", "edge", 1.0),
    ("gap", "edge", 1.0),
    ("gap", "edge", 4.0),
    ("gap", "none", math.inf),
    ("gcn", "none", math.inf),
    ("sage", "none", math.inf),
]


def accuracies(graph: Graph, method: str, level: str, epsilon: float, split: str, seeds: int) -> Iterator[float]:
    """What ``discreet train --seed s`` prints, for s = 0, 1, …; the privacy noise is fresh each time."""
    privacy = discreet.Privacy(discreet.parse_level(level), epsilon)
    for seed in range(seeds):
        cut = discreet.split(graph, split, seed)
        estimator = discreet.find_method(method).load()(privacy, random_state=seed)
        yield 100 * estimator.fit(cut).score(cut)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["csbm"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--split", default="75/10/15")
    parser.add_argument("--methods", nargs="+", default=sorted({row[0] for row in ROWS}))
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"split {options.split}, {options.seeds} seeds, mean ± standard deviation\n", flush=True)
    print("| data | " + " | ".join(f"{m} {lv} {eps:g}" for m, lv, eps in ROWS if m in options.methods) + " |")
    print("|---" * (1 + sum(row[0] in options.methods for row in ROWS)) + "|", flush=True)
    for name in options.data:
        graph = discreet.load(name)
        print(f"| {name} ", end="", flush=True)
        for method, level, epsilon in ROWS:
            if method in options.methods:
                found = list(accuracies(graph, method, level, epsilon, options.split, options.seeds))
                spread = statistics.stdev(found) if len(found) > 1 else 0.0
                print(f"| {statistics.mean(found):.1f} ± {spread:.1f} ", end="", flush=True)
        print("|", flush=True)


if __name__ == "__main__":
    main()
