"""Accuracy class by class, with and without privacy (the DP-GNN paper, Figure 3).

    python benchmarks/dpgnn_classes.py --data cs --seeds 3 --out docs/results/dpgnn-classes
    python benchmarks/dpgnn_classes.py --redraw --out docs/results/dpgnn-classes

Classes stand in the order of how frequent they are among training nodes; horizontal lines are the accuracy over all
test nodes. Writes OUT.csv, one line per class and method (means over seeds from 10), and OUT.svg, light and dark.
A research figure, outside every guarantee.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from discreet import Graph, split
from discreet.bench.figure_style import THEMES, Theme
from discreet.bench.figures import save
from discreet.bench.trials import Trial, estimator_of
from discreet.files import write_whole
from discreet.graph.datasets import resolve
from discreet.release.evaluate import evaluate

SPLIT = "75/10/15"
LEVEL = "node:owned,max_degree=1"
FIRST_SEED = 10
# as in the suite dpgnn-table1: without privacy the network of the paper, one convolution between encoder and decoder
SETTINGS = {"steps": 300, "fan_in": 3, "batch_size": 2000}
PLAIN = {"steps": 300, "fan_in": 10, "batch_size": 2000}
COLUMNS = ("data", "method", "class", "share", "accuracy", "overall", "seeds")
Rows = list[dict[str, Any]]


def measured(data: str, epsilon: float, seeds: int) -> Rows:
    """One row per class, without and with privacy, the most frequent class first."""
    graph = resolve(data)
    trials = [("none", float("inf"), PLAIN), (LEVEL, epsilon, SETTINGS)]
    found: Rows = []
    for level, budget, settings in trials:
        shares, scores, overall = defaultdict(list), defaultdict(list), []
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            parts = split(graph, SPLIT, seed)
            trial = Trial(data, SPLIT, "dp-gnn", level, budget, "auto", settings, seed)
            figures = evaluate(estimator_of(trial).fit(parts), parts)
            overall.append(figures["accuracy"]["test"])
            for row in figures["by_class"]["test"]:
                scores[row["label"]].append(row["accuracy"])
            for label, share in enumerate(training_shares(parts)):
                shares[label].append(share)
        name = "dp-gnn, no privacy" if level == "none" else f"dp-gnn, ε = {epsilon:g}"
        for label in sorted(scores, key=lambda label: -float(np.mean(shares[label]))):
            means = (np.mean(shares[label]), np.mean(scores[label]), np.mean(overall))
            numbers = [f"{float(100 * mean):.6g}" for mean in means]
            found.append(dict(zip(COLUMNS, (data, name, label, *numbers, seeds), strict=True)))
    return found


def training_shares(graph: Graph) -> list[float]:
    """How much of the labelled training nodes is of each class."""
    labels = graph.labels[graph.mask("train")]
    return [float(np.mean(labels == label)) for label in range(graph.num_classes)]


def drawing(rows: Rows, theme: Theme) -> Any:
    """Points over classes, a line per method, and the accuracy of all nodes as a horizontal line."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    order = [row["class"] for row in rows if row["method"] == rows[0]["method"]]
    for variant, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
        mine = {row["class"]: row for row in rows if row["method"] == method}
        colour = theme.colour("dp-gnn", variant)
        heights = [float(mine[label]["accuracy"]) for label in order]
        axis.plot(range(len(order)), heights, marker="o", ms=4.5, lw=1.2, color=colour, label=method)
        axis.axhline(float(next(iter(mine.values()))["overall"]), color=colour, lw=1, ls=(0, (1, 1.5)))
    share = {row["class"]: float(row["share"]) for row in rows}
    axis.set_xticks(range(len(order)), [f"{share[label]:.1f}" for label in order])
    axis.set_xlabel("class, by its share of training nodes (per cent)")
    axis.set_ylabel("test accuracy of the class, %")
    axis.set_title(f"{rows[0]['data']}: dotted, all test nodes", fontsize=9.5, loc="left")
    axis.grid(axis="y", lw=0.6)
    axis.legend(frameon=False, fontsize=8.5)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cs")
    parser.add_argument("--epsilon", type=float, default=30.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True, help="the files' path without its ending")
    parser.add_argument("--redraw", action="store_true", help="fit nothing: draw OUT.csv again")
    given = parser.parse_args()
    table = given.out.with_name(given.out.name + ".csv")
    if not given.redraw:
        rows = measured(given.data, given.epsilon, given.seeds)
        lines = [",".join(COLUMNS), *(",".join(f'"{row[key]}"' for key in COLUMNS) for row in rows)]
        write_whole(table, "\n".join(lines) + "\n")
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    matplotlib.use("agg")
    for theme in THEMES:
        with matplotlib.rc_context(theme.settings()):
            save(drawing(rows, theme), given.out.with_name(given.out.name + theme.suffix), ["svg"])


if __name__ == "__main__":
    main()
