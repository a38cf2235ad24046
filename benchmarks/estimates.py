"""What ``discreet plan`` says a fit will take, against what it takes.

python benchmarks/estimates.py [--json]

Every fit runs in a process of its own, on one thread. Time is that of processor cores during the fit; memory is the
peak of the process, graph and libraries included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

GRAPHS = ("cora", "pubmed", "photo", "cs")
METHODS = (("gap", "edge"), ("hop-bayes", "edge"), ("dp-mlp", "node:owned"), ("dp-gnn", "node:owned,max_degree=7"))
EPSILON = 4.0
GIB = 2.0**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a list of cases on standard output")
    parser.add_argument("--case", nargs=3, metavar=("DATA", "METHOD", "LEVEL"), help="one fit, in this process")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(*options.case)))
        return
    found = []
    for data in GRAPHS:
        for method, level in METHODS:
            command = [sys.executable, __file__, "--case", data, method, level]
            run = subprocess.run(command, check=True, capture_output=True, text=True, env=one_thread())
            found.append(json.loads(run.stdout))
            if not options.json:
                print(line(found[-1]), flush=True)
    if options.json:
        print(json.dumps(found, indent=1))


def one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def measure(data: str, method: str, level: str) -> dict[str, Any]:
    import torch

    import discreet
    from discreet.methods.registry import find_method, load_method

    torch.set_num_threads(1)
    graph = discreet.split(discreet.load(data), "75/10/15", 0)
    model = load_method(find_method(method))(discreet.Privacy(discreet.parse_level(level), EPSILON))
    cost = model.cost_of(model.plan_for(graph), graph)
    assert cost is not None  # these methods have an estimate
    started = time.process_time()
    model.fit(graph)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    edges = graph.num_edges
    return {
        "data": data,
        "method": method,
        "level": level,
        "seconds": seconds,
        "estimated_seconds": cost.seconds + edges * cost.seconds_per_edge,
        "gib": peak / GIB,
        "estimated_gib": (cost.bytes + edges * cost.bytes_per_edge) / GIB,
    }


def line(case: dict[str, Any]) -> str:
    return (
        f"{case['data']:8} {case['method']:10} {case['seconds']:7.2f} s, estimated {case['estimated_seconds']:7.2f} "
        f"({case['estimated_seconds'] / case['seconds']:.2f});  {case['gib']:.2f} GiB, estimated "
        f"{case['estimated_gib']:.2f} ({case['estimated_gib'] / case['gib']:.2f})"
    )


if __name__ == "__main__":
    main()
