"""How time and memory grow with the edges: one fit per method and size, each in a process of its own.

    python benchmarks/growth.py [--json] [--figure docs/results/growth.svg] [--method NAME]… [--edges N]…

Graphs are generated, of 26 edges per node (at least 1,000 nodes) and 50 features. Time is seconds of processor cores,
which a busy machine disturbs less than the clock; memory is the peak of the process, the making of the graph included,
beyond what Python, its libraries and a fit on a tiny graph hold. Slopes are those of a straight line through the
logarithms, of time from 100,000 edges on and of memory from a million: below that fixed costs, and memory that the tiny
fit left free, hide the growth. Few passes and few noisy steps: each costs as much as any other.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

EDGES = (10_000, 100_000, 300_000, 1_000_000, 3_000_000)
TINY = 2_000
SMALLEST = {"core_s": 100_000, "gib": 1_000_000}
DEGREE, FEATURES = 26, 50
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "gap": ("edge", {"epochs": 5}),
    "hop-bayes": ("edge", {"epochs": 5}),
    "gcon-ssp": ("edge", {"epochs": 5}),
    "dp-gnn": ("node:owned,max_degree=7", {"steps": 4}),
}


def fit(method: str, edges: int) -> dict[str, Any]:
    """One fit in this process; a tiny one before it loads what is loaded once."""
    import discreet
    from discreet.graph.synthetic import scale_free
    from discreet.methods.registry import find_method, load_method

    level, parameters = METHODS[method]
    privacy = discreet.Privacy(discreet.parse_level(level), 4.0)

    def fit_graph(count: int) -> float:
        graph = discreet.split(scale_free(max(1_000, count // DEGREE), count, FEATURES), "75/10/15", 0)
        model = load_method(find_method(method))(privacy, random_state=0).set_params(**parameters)
        started = time.process_time()
        model.fit(graph)
        return time.process_time() - started

    fit_graph(TINY)
    before = forget_peak()
    seconds = fit_graph(edges)
    return {"method": method, "edges": edges, "core_s": seconds, "gib": memory_gib("VmHWM") - before}


def forget_peak() -> float:
    """The memory that is held now, from which the peak is counted anew (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory_gib("VmRSS")


def memory_gib(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 2**20


def slope(points: list[dict[str, Any]], what: str) -> float:
    """Of a straight line through the logarithms: 1 is linear growth."""
    used = [point for point in points if point["edges"] >= SMALLEST[what] and point[what] > 0]
    logs = np.log([[point["edges"], point[what]] for point in used])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]) if len(used) > 1 else float("nan")


def draw(results: list[dict[str, Any]], slopes: dict[str, dict[str, float]], path: Path) -> None:
    """Time and memory over edges, both axes logarithmic, for light and dark pages."""
    import matplotlib.pyplot as plt

    from discreet.bench.figure_style import MARKERS, THEMES

    for theme in THEMES:
        with plt.rc_context(theme.settings()):
            figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
            for axis, what, title in zip(axes, ("core_s", "gib"), ("seconds of cores", "GiB"), strict=True):
                for marker, (method, found) in zip(MARKERS, slopes.items(), strict=False):
                    points = [point for point in results if point["method"] == method and point[what] > 1e-3]
                    line = [point["edges"] for point in points], [point[what] for point in points]
                    label = f"{method}: {found[what]:.2f}"
                    axis.loglog(*line, marker=marker, color=theme.colour(method), label=label)
                axis.set_xlabel("edges")
                axis.set_title(f"{title} (slope)")
                axis.grid(visible=True, alpha=0.4)
                axis.legend(frameon=False)
            figure.savefig(path.with_name(f"{path.stem}{theme.suffix}{path.suffix}"), metadata={"Date": None})
            plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", action="append", choices=list(METHODS))
    parser.add_argument("--edges", action="append", type=int)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="points and slopes on standard output")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(fit(options.one[0], int(options.one[1]))))
        return
    methods, results = options.method or list(METHODS), []
    for method in methods:
        for edges in options.edges or EDGES:
            command = [sys.executable, __file__, "--one", method, str(edges)]
            results.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            print(results[-1], file=sys.stderr, flush=True)
    slopes = {
        method: {what: slope([point for point in results if point["method"] == method], what) for what in SMALLEST}
        for method in methods
    }
    print(slopes, file=sys.stderr)
    if options.figure:
        draw(results, slopes, options.figure)
    if options.json:
        print(json.dumps({"points": results, "slopes": slopes}, indent=2))


if __name__ == "__main__":
    main()
