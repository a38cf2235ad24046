"""How do time and memory of gcon grow with edges? Propagation to m = ∞ and whole fits, ratios from one run.

    python benchmarks/gcon_scaling.py [--json] [--data pubmed]

Random graphs of 10⁴ to 10⁶ undirected edges, ten edges per node, 64 columns. For each: the least of three timings of
R_∞X, the same for as many plain CSR products, and one whole fit of gcon and gcon-ssp. ``growth`` is the time at 10⁶
edges over that at 10⁴, divided by 100: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable

import numpy as np

from discreet.graph.datasets import load
from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.methods.registry import find_method, load_method
from discreet.ops import restart
from discreet.ops.rows import unit_rows
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel

SIZES = (10**4, 10**5, 10**6)
ALPHA, WIDTH = 0.5, 64


def random_graph(edges: int) -> Graph:
    rng = np.random.default_rng(0)
    n = edges // 10
    features = rng.standard_normal((n, WIDTH)).astype(np.float32)
    graph = Graph.from_edges(
        rng.integers(n, size=edges),
        rng.integers(n, size=edges),
        features,
        np.arange(n) % 5,
        directed=False,
        num_classes=5,
    )
    return graph.with_masks(np.arange(n // 10), None, np.arange(n // 2, n))


def least(work: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(edges: int) -> dict[str, float]:
    graph = random_graph(edges)
    walk = restart.transition(graph)
    rows = unit_rows(np.asarray(graph.features, dtype=np.float64))
    hops = restart.iterations_for(ALPHA)

    def products() -> None:
        current = rows
        for _ in range(hops):
            current = walk @ current

    found = {
        "edges": graph.num_edges,
        "propagate_s": least(lambda: restart.propagate(walk, rows, ALPHA, [np.inf])),
        "products_s": least(products),
    }
    for method in ("gcon", "gcon-ssp"):
        estimator = load_method(find_method(method))(Privacy(EdgeLevel(), 1.0))
        started = time.perf_counter()
        estimator.fit(graph)
        found[f"{method}_fit_s"] = time.perf_counter() - started
    return {**found, "peak_mb": peak_mb()}


def real(data: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for method in ("gcon", "gcon-ssp"):
        started = time.perf_counter()
        graph = split(load(data), "20/500/1000", 0)
        estimator = load_method(find_method(method))(Privacy(EdgeLevel(), 1.0)).fit(graph)
        score = estimator.score(graph)
        taken = time.perf_counter() - started
        rows.append({"data": data, "method": method, "load_fit_score_s": taken, "test": score, "peak_mb": peak_mb()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--data", default=None, help="a real graph to time as well, pubmed for example")
    given = parser.parse_args()
    result: dict[str, object] = {"real": real(given.data) if given.data else []}
    rows = [measure(edges) for edges in SIZES]
    times = [key for key in rows[0] if key.endswith("_s")]
    span = rows[-1]["edges"] / rows[0]["edges"]
    result["sizes"] = rows
    result["growth"] = {key: rows[-1][key] / rows[0][key] / span for key in times}
    result["propagate_over_products"] = [row["propagate_s"] / row["products_s"] for row in rows]
    if given.json:
        print(json.dumps(result))
        return
    for key, value in result.items():
        listed = value if isinstance(value, list) else [value]
        print(key, *listed, sep="\n  ")


if __name__ == "__main__":
    main()
