"""Curves from a CSV with the columns panel, x, accuracy: one panel each.

python benchmarks/curve_plot.py docs/results/dpgnn_ablations.csv docs/results/dpgnn_ablations.svg
"""

from __future__ import annotations

import argparse

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import pandas as pd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("out")
    options = parser.parse_args()
    points = pd.read_csv(options.results)
    panels = list(points.groupby("panel", sort=False))
    figure, axes = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 2.6), squeeze=False, sharey=True)
    for axis, (name, line) in zip(axes[0], panels, strict=True):
        axis.plot(line["x"].astype(str), line["accuracy"], "ko-", lw=1.2, ms=4)
        axis.set_xlabel(name, fontsize=9)
        axis.tick_params(labelsize=8)
    axes[0][0].set_ylabel("test accuracy, %", fontsize=9)
    figure.tight_layout()
    figure.savefig(options.out, metadata={"Date": None})


if __name__ == "__main__":
    main()
