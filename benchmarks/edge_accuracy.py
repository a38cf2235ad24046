"""Test accuracy of the edge-level methods against those without privacy, several seeds a cell, as Markdown.

python benchmarks/edge_accuracy.py --data cora pubmed photo cs chameleon --seeds 10
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator
from typing import Any

import torch

import discreet
from discreet.graph.graph import Graph

# Column title, method, level, ε, parameters.
COLUMNS: list[tuple[str, str, str, float, dict[str, Any]]] = [
    ("mlp (ε = 0)", "mlp", "edge", 1.0, {}),
    ("gap ε = 1", "gap", "edge", 1.0, {}),
    ("gap ε = 4", "gap", "edge", 4.0, {}),
    ("hop-bayes ε = 1", "hop-bayes", "edge", 1.0, {}),
    ("hop-bayes ε = 4", "hop-bayes", "edge", 4.0, {}),
    ("mlp own-hop (ε = 0)", "mlp", "edge", 1.0, {"inference": "own-hop"}),
    ("hop-bayes own ε = 0.1", "hop-bayes", "edge", 0.1, {"predictions": "own"}),
    ("gap none", "gap", "none", math.inf, {}),
    ("gcn none", "gcn", "none", math.inf, {}),
    ("sage none", "sage", "none", math.inf, {}),
]


def accuracies(
    graph: Graph, method: str, level: str, epsilon: float, parameters: dict[str, Any], split: str, seeds: range
) -> Iterator[float]:
    """What ``discreet train --seed s`` prints, for each of the seeds; the privacy noise is fresh each time."""
    privacy = discreet.Privacy(discreet.parse_level(level), epsilon)
    for seed in seeds:
        cut = discreet.split(graph, split, seed)
        estimator = discreet.find_method(method).load()(privacy)
        estimator.set_params(random_state=seed, **parameters)
        yield 100 * estimator.fit(cut).score(cut)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["csbm"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--split", default="75/10/15")
    parser.add_argument("--methods", nargs="+", default=sorted({column[1] for column in COLUMNS}))
    options = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [column for column in COLUMNS if column[1] in options.methods]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(f"split {options.split}, seeds {seeds.start} to {seeds.stop - 1}, mean ± standard deviation\n", flush=True)
    print("| data | " + " | ".join(column[0] for column in chosen) + " |")
    print("|---" * (1 + len(chosen)) + "|", flush=True)
    for name in options.data:
        graph = discreet.load(name)
        print(f"| {name} ", end="", flush=True)
        for _, method, level, epsilon, parameters in chosen:
            found = list(accuracies(graph, method, level, epsilon, parameters, options.split, seeds))
            spread = statistics.stdev(found) if len(found) > 1 else 0.0
            print(f"| {statistics.mean(found):.1f} ± {spread:.1f} ", end="", flush=True)
        print("|", flush=True)


if __name__ == "__main__":
    main()
