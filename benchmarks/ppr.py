"""Rows of approximate PageRank against power iteration with scipy on the same rows, in one run.

    python benchmarks/ppr.py [--data fb100:UCLA26] [--rows 1000] [--compared 100] [--threads 2] [--rho 1e-4]

Compilation is done before the clock starts. Power iteration runs until what is left to spread is below rho; it is
timed on ``--compared`` of the rows, all at once, and the ratio is of times per row. Rows of both kinds are compared.
"""

from __future__ import annotations

import argparse
import json
import math
import time

import numpy as np
import scipy.sparse as sp

from discreet.graph.datasets import resolve
from discreet.ops.ppr import appr_rows


def power_iteration(adjacency: sp.csr_array, sources: np.ndarray, alpha: float, left: float) -> np.ndarray:
    """Rows as columns of a dense matrix: (n, sources)."""
    degree = np.maximum(adjacency.sum(axis=1), 1)
    walk = sp.csr_array(adjacency.T / degree)
    start = np.zeros((adjacency.shape[0], len(sources)))
    start[sources, np.arange(len(sources))] = 1.0
    rows = start.copy()
    for _ in range(math.ceil(math.log(left) / math.log(1 - alpha))):
        rows = alpha * start + (1 - alpha) * (walk @ rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="fb100:UCLA26")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--compared", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alpha", type=float, default=0.25)
    parser.add_argument("--rho", type=float, default=1e-4)
    options = parser.parse_args()
    adjacency = resolve(options.data).adjacency.astype(np.float64)
    sources = np.random.default_rng(0).choice(adjacency.shape[0], options.rows, replace=False)
    compared = sources[: options.compared]

    started = time.perf_counter()
    exact = power_iteration(adjacency, compared, options.alpha, options.rho)
    by_power = (time.perf_counter() - started) / len(compared)
    degree = adjacency.sum(axis=1)
    for solver in ("ista", "push"):
        settings = {"alpha": options.alpha, "rho": options.rho, "solver": solver, "threads": options.threads}
        appr_rows(adjacency, sources[:1], **settings)
        started = time.perf_counter()
        rows = appr_rows(adjacency, sources, **settings)
        seconds = time.perf_counter() - started
        gap = exact.T - rows[: len(compared)].toarray()
        result = {
            "data": options.data,
            "nodes": adjacency.shape[0],
            "edges": adjacency.nnz // 2,
            "solver": solver,
            "rows": len(sources),
            "threads": options.threads,
            "seconds": round(seconds, 3),
            "rows a second": round(len(sources) / seconds),
            "entries a row": round(rows.nnz / len(sources), 1),
            "largest gap over rho times degree": round(float((gap / (options.rho * np.maximum(degree, 1))).max()), 3),
            "power iteration over this, a row": round(by_power * len(sources) / seconds, 1),
        }
        print(json.dumps(result))


if __name__ == "__main__":
    main()
