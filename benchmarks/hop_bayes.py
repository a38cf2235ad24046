"""What hop-bayes costs beside its node model: the time of a fit over that of the node model alone, in one run.

python benchmarks/hop_bayes.py --data fb100:UCLA26
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch

import discreet
from discreet.graph.graph import Graph
from discreet.methods.registry import find_method, load_method

# Title, level, hop-bayes's parameters, the node model as a method of its own, and that one's parameters.
CASES: list[tuple[str, str, dict[str, Any], str, dict[str, Any]]] = [
    ("edge, all", "edge", {}, "mlp", {}),
    ("edge, own", "edge", {"predictions": "own"}, "mlp", {}),
    ("node", "node:owned,max_degree=100", {}, "dp-mlp", {"steps": 100, "learning_rate": 0.02}),
]


def seconds(graph: Graph, method: str, level: str, parameters: dict[str, Any]) -> float:
    """One fit, calibration included (it is cached after the first)."""
    estimator = load_method(find_method(method))(discreet.Privacy(discreet.parse_level(level), 4.0))
    estimator.set_params(**parameters)
    started = time.process_time()
    estimator.fit(graph)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="fb100:UCLA26")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    graph = discreet.split(discreet.load(options.data), "75/10/15", 0)
    for title, level, ours, alone, its in CASES:
        pairs = [
            (seconds(graph, "hop-bayes", level, ours), seconds(graph, alone, level, its))
            for _ in range(options.repeats + 1)
        ][1:]
        ratio = statistics.median(a / b for a, b in pairs)
        mean, other = (statistics.mean(pair[i] for pair in pairs) for i in (0, 1))
        print(f"{title}: hop-bayes {mean:.2f} s, {alone} {other:.2f} s of CPU, ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
