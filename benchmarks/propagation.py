"""One hop of propagation against one scipy CSR product of the same matrices, as a ratio in one run.

python benchmarks/propagation.py [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import torch

from discreet.graph.synthetic import csbm
from discreet.ops.sparse import hop_matrix

CASES = [(2_000, 4, 16), (20_000, 10, 16), (20_000, 50, 64), (100_000, 20, 64)]


def best_of(runs: list[Callable[[], object]], repeats: int = 7) -> list[float]:
    """Milliseconds of each, interleaved so that a busy moment hits all alike; the smallest counts."""
    best = [float("inf")] * len(runs)
    for _ in range(repeats):
        for position, run in enumerate(runs):
            started = time.perf_counter()
            run()
            best[position] = min(best[position], 1000 * (time.perf_counter() - started))
    return best


def measure(nodes: int, degree: int, width: int) -> dict[str, float]:
    graph = csbm(num_nodes=nodes, num_features=2, average_degree=degree, phi=0.3)
    rows = np.random.default_rng(0).standard_normal((nodes, width)).astype(np.float32)
    matrix, tensor, reference = hop_matrix(graph, "sum"), torch.from_numpy(rows), graph.adjacency
    ours, scipy = best_of([lambda: matrix @ tensor, lambda: reference @ rows])
    return {"nodes": nodes, "entries": graph.num_entries, "width": width, "ours_ms": ours, "scipy_ms": scipy}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = [measure(*case) for case in CASES]
    if options.json:
        print(json.dumps(cases))
        return
    print(f"threads {torch.get_num_threads()}")
    for case in cases:
        ratio = case["ours_ms"] / case["scipy_ms"]
        print(
            f"n {case['nodes']:>7}  entries {case['entries']:>8}  width {case['width']:>3}  "
            f"ours {case['ours_ms']:8.2f} ms  scipy {case['scipy_ms']:8.2f} ms  ratio {ratio:.2f} (target ≤ 2)"
        )


if __name__ == "__main__":
    main()
