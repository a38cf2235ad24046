"""Accuracy at node level: dp-mlp, gap and dp-gnn beside networks without privacy, over seeds.

    python benchmarks/node_level.py SUITE [--seeds N] [--data NAME] [--json]

Every seed is a fresh split (75/10/15), initialisation and noise; figures are test accuracy in per cent, mean and
standard deviation. These are research figures, outside every guarantee; settings are each method's defaults, or shown.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from discreet.graph import Graph, csbm, load, split
from discreet.methods.registry import find_method
from discreet.privacy.budget import Privacy
from discreet.privacy.level_specs import parse_level

GNN: dict[str, Any] = {"steps": 300, "fan_in": 3}


@dataclass(frozen=True)
class Case:
    """One method with one setting."""

    method: str
    level: str = "none"
    epsilon: float = math.inf
    settings: dict[str, Any] = field(default_factory=dict)


def owned(bound: int) -> str:
    return f"node:owned,max_degree={bound}"


def gnn(bound: int = 1, epsilon: float = 30.0, **settings: Any) -> Case:
    return Case("dp-gnn", owned(bound), epsilon, {**GNN, "batch_size": 2000, **settings})


SUITES: dict[str, tuple[tuple[str, ...], list[Case]]] = {
    "accuracy": (
        ("Cora", "PubMed", "Photo"),
        [
            Case("mlp"),
            Case("dp-mlp", owned(100), 16.0),
            *(Case("gap", owned(bound), 16.0) for bound in (5, 100)),
        ],
    ),
    "bounds": (
        ("Cora",),
        [
            *(Case("gap", owned(bound), 16.0) for bound in (2, 5, 10, 20, 100)),
            Case("gap", "node:owned,max_degree=5,change=replace", 16.0),
            Case("gap", "node:promised,max_degree=168", 16.0),
            Case("gap", "node:thinned,d_max=200,p=0.05", 16.0),
        ],
    ),
    "neighbors": (
        ("Cora",),
        [Case(method, f"neighbor:{k},max_degree=5", 16.0) for method in ("dp-mlp", "gap") for k in (1, 5, 25)],
    ),
    "gnn": (
        ("facebook-pages",),
        [
            Case("mlp"),
            Case("dp-mlp", owned(1), 30.0),
            *(gnn(1, epsilon) for epsilon in (4.0, 10.0, 30.0)),
            Case("gap", owned(5), 30.0),
            Case("gcn"),
        ],
    ),
    "convolutions": (
        ("facebook-pages",),
        [
            gnn(1, convolution="sage"),
            gnn(1, convolution="gin"),
            gnn(1, convolution="gat"),
            gnn(1, optimizer="sgd", learning_rate=0.3),
            gnn(1, layers=2, fan_in=3),
            gnn(1, inference="noisy"),
        ],
    ),
    "csbm": (("csbm-50000",), [Case("mlp"), Case("dp-mlp", owned(1), 30.0), gnn(1), gnn(2), gnn(1, epsilon=8.0)]),
    "batch": (("facebook-pages",), [gnn(2, batch_size=size) for size in (250, 500, 1000, 2000, 4000)]),
    "degree": (("facebook-pages",), [gnn(bound, fan_in=max(3, bound)) for bound in (1, 2, 3, 5, 10)]),
}


def graph_of(name: str, seed: int) -> Graph:
    graph = csbm(50_000, phi=0.9, seed=seed) if name == "csbm-50000" else load(name)
    return split(graph, "75/10/15", seed=seed)


def run(case: Case, data: str, seeds: int) -> dict[str, Any]:
    started, scores = time.perf_counter(), []
    for seed in range(seeds):
        graph = graph_of(data, seed)
        privacy = Privacy(parse_level(case.level), case.epsilon)
        estimator = find_method(case.method).load()(privacy, random_state=seed, **case.settings)
        scores.append(100 * estimator.fit(graph).score(graph, "test", uncovered=True))
    return {
        "data": data,
        "method": case.method,
        "level": case.level,
        "epsilon": "infinite" if math.isinf(case.epsilon) else case.epsilon,
        "delta": estimator.plan_.delta,
        "settings": case.settings,
        "covers": estimator.covers,
        "seeds": seeds,
        "accuracy": float(np.mean(scores)),
        "spread": float(np.std(scores)),
        "seconds_a_fit": (time.perf_counter() - started) / seeds,
    }


def main() -> None:
    """Run a suite and print one row a case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", action="append")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    datasets, cases = SUITES[options.suite]
    rows = []
    for data in options.data or datasets:
        for case in cases:
            row = run(case, data, options.seeds)
            rows.append(row)
            text = (
                f"{data:15} {case.method:7} {case.level:38} eps {row['epsilon']!s:8} {row['accuracy']:6.2f} ± "
                f"{row['spread']:4.2f}  {row['seconds_a_fit']:5.1f} s  {case.settings or ''}"
            )
            print(text, file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        json.dump(rows, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
