"""Accuracy of gcon and gcon-ssp beside their baselines, over ε and seeds; tables in Markdown, figures in CSV.

Every number is a mean over seeds, each with its own split, initialisation and noise, of accuracy on the test mask
(micro-F1, with one label a node). One set of defaults for all graphs.

    python benchmarks/gcon_accuracy.py table --seeds 10
    python benchmarks/gcon_accuracy.py steps --seeds 5     # effect of m and α, private and public inference
    python benchmarks/gcon_accuracy.py restart --seeds 5   # effect of α over ε at m = 2
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Iterable

import numpy as np

from discreet.graph.datasets import load
from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.methods.registry import find_method
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel

SPLITS = {"cora_ml": "20/500/1000", "citeseer": "20/500/1000", "pubmed": "20/500/1000", "actor": "60/20/20"}
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)
STEPS = (1, 2, 5, 10, 20, "inf")
ALPHAS = (0.2, 0.4, 0.6, 0.8)
# GCON as published: its encoder, its bounds, its inference, nothing measured or shrunk.
PUBLISHED = {"encoder": "mlp", "width": 16, "bounds": "paper", "trust": 1.0, "shrink": False, "ridge": 0.2}


def figure(
    graph: Graph, data: str, seed: int, method: str, epsilon: float, *, uncovered: bool = False, **options
) -> float:
    """Test accuracy of one run, in per cent."""
    given = split(graph, SPLITS[data], seed)
    estimator = find_method(method).load()(Privacy(EdgeLevel(), epsilon), random_state=seed, **options)
    return 100 * estimator.fit(given).score(given, uncovered=uncovered)


def spread(values: Iterable[float]) -> str:
    """Mean ± standard deviation over seeds."""
    listed = list(values)
    return f"{np.mean(listed):.1f} ± {np.std(listed, ddof=1):.1f}"


def table(names: list[str], seeds: int, only: str | None = None) -> None:
    """The comparison at every ε."""
    free = {
        "mlp": ("mlp", 1.0, {}),
        "mlp, own-hop (free)": ("mlp", 1.0, {"inference": "own-hop"}),
        "public map, own-hop (free)": ("gcon-ssp", 1e-4, {"trust": 1.0}),
    }
    private = {"gap": {}, "gcon": {}, "gcon-ssp": {}}
    if only is not None:
        free, private = {}, {only: {}}
    for data in names:
        graph = load(data)
        print(f"\n**{data}** ({SPLITS[data]}, {seeds} seeds)\n")
        print("| method | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |")
        print("|---|" + "---|" * len(EPSILONS))
        for label, (method, epsilon, options) in free.items():
            cell = spread(figure(graph, data, seed, method, epsilon, **options) for seed in range(seeds))
            print(f"| {label} | " + " | ".join([cell] * len(EPSILONS)) + " |", flush=True)
        for method, options in private.items():
            cells = [spread(figure(graph, data, seed, method, e, **options) for seed in range(seeds)) for e in EPSILONS]
            print(f"| {method} | " + " | ".join(cells) + " |", flush=True)


def curve(names: list[str], seeds: int, settings: Iterable[tuple[float, dict]], variants: dict[str, dict]) -> None:
    """One CSV row a point."""
    out = csv.writer(sys.stdout)
    out.writerow(["data", "variant", "epsilon", "alpha", "steps", "inference", "mean", "sd"])
    settings = list(settings)
    for data, (variant, more) in itertools.product(names, variants.items()):
        graph = load(data)
        for epsilon, options in settings:
            runs = [
                figure(graph, data, seed, "gcon", epsilon, uncovered=True, **{**more, **options})
                for seed in range(seeds)
            ]
            shown = [options["alpha"], options["steps"], options.get("inference", "private")]
            out.writerow([data, variant, epsilon, *shown, f"{np.mean(runs):.2f}", f"{np.std(runs, ddof=1):.2f}"])
            sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "steps", "restart"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", nargs="*", default=None)
    parser.add_argument("--only", default=None, help="one method of the table")
    given = parser.parse_args()
    variants = {"defaults": {}, "published": PUBLISHED}
    if given.what == "table":
        table(given.data or list(SPLITS), given.seeds, given.only)
        return
    names = given.data or ["cora_ml", "citeseer", "pubmed"]
    if given.what == "steps":
        points = itertools.product(("private", "public"), ALPHAS, STEPS)
        settings = [(4.0, {"alpha": a, "steps": m, "inference": i}) for i, a, m in points]
    else:
        settings = [(e, {"alpha": a, "steps": 2}) for a, e in itertools.product(ALPHAS, EPSILONS)]
    curve(names, given.seeds, settings, variants)


if __name__ == "__main__":
    main()
