"""A whole fit on a large generated graph: seconds of generating, fitting and predicting, peak memory, accuracy.

    python benchmarks/large.py [--nodes 2400000] [--edges 62000000] [--features 100] [--method hop-bayes] [--json]

``--shrink 8`` takes an eighth of nodes and edges: cost is about proportional to both, so time and memory of the whole
can be read off a part. ``fit_core_s`` counts seconds of processor cores, which a busy machine disturbs less.
``--device cuda`` fits on an accelerator.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from typing import Any

import torch

import discreet
from discreet.graph.synthetic import scale_free
from discreet.methods.registry import find_method, load_method


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(options: argparse.Namespace) -> dict[str, Any]:
    nodes, edges = options.nodes // options.shrink, options.edges // options.shrink
    started = time.perf_counter()
    graph = discreet.split(scale_free(nodes, edges, options.features), "75/10/15", 0)
    generated, before, worked = time.perf_counter(), peak_gib(), time.process_time()
    privacy = discreet.Privacy(discreet.parse_level(options.level), options.epsilon)
    model = load_method(find_method(options.method))(
        privacy, compute=discreet.Compute(device=options.device), random_state=0
    )
    model.fit(graph)
    fitted, worked = time.perf_counter(), time.process_time() - worked
    accuracy = model.score(graph)
    return {
        "method": options.method,
        "level": options.level,
        "device": options.device,
        "threads": torch.get_num_threads(),
        "nodes": nodes,
        "edges": edges,
        "features": options.features,
        "generate_s": generated - started,
        "fit_s": fitted - generated,
        "fit_core_s": worked,
        "predict_s": time.perf_counter() - fitted,
        "graph_gib": before,
        "peak_gib": peak_gib(),
        "accuracy": accuracy,
        "epsilon_spent": model.epsilon_spent_,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2_400_000)
    parser.add_argument("--edges", type=int, default=62_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--method", default="hop-bayes")
    parser.add_argument("--level", default="edge")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--shrink", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    found = measure(options)
    for name, value in found.items():
        print(f"{name:14} {value:.3g}" if isinstance(value, float) else f"{name:14} {value}", file=sys.stderr)
    if options.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
