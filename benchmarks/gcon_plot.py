"""Curves from the CSV of gcon_accuracy.py: one panel a graph, one line an α.

python benchmarks/gcon_plot.py docs/results/gcon_steps.csv docs/results/gcon_steps.svg --x steps --variant published
"""

from __future__ import annotations

import argparse

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import pandas as pd


def draw(points: pd.DataFrame, x: str, out: str) -> None:
    names = list(dict.fromkeys(points["data"]))
    rows = list(dict.fromkeys(points["inference"]))
    figure, axes = plt.subplots(len(rows), len(names), figsize=(3.4 * len(names), 2.6 * len(rows)), squeeze=False)
    for (row, inference), (column, name) in ((r, c) for r in enumerate(rows) for c in enumerate(names)):
        axis = axes[row][column]
        panel = points[(points["data"] == name) & (points["inference"] == inference)]
        for alpha, line in panel.groupby("alpha"):
            axis.errorbar(line[x].astype(str), line["mean"], yerr=line["sd"], label=f"α = {alpha:g}", capsize=2, lw=1.2)
        axis.set_title(f"{name}, {inference} inference", fontsize=9)
        axis.set_xlabel({"steps": "m", "epsilon": "ε"}[x], fontsize=9)
        axis.tick_params(labelsize=8)
    axes[0][0].set_ylabel("test accuracy, %", fontsize=9)
    axes[0][-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("out")
    parser.add_argument("--x", choices=["steps", "epsilon"], required=True)
    parser.add_argument("--variant", default="defaults")
    given = parser.parse_args()
    points = pd.read_csv(given.results, dtype={"steps": str})
    draw(points[points["variant"] == given.variant], given.x, given.out)


if __name__ == "__main__":
    main()
