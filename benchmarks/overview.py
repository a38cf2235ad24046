"""Draw the overview of the README: accuracy over ε, every method, every graph at hand, both levels and all coverages.

    python benchmarks/overview.py [--results docs/results]

Nothing is run: the points are those that ``results_page.py`` stored as ``SUITE.csv`` for the suites named below. Where
several suites have the same point, the one with most seeds is taken. Writes ``overview.svg`` and ``overview.png``,
light and dark.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.bench.figure_style import THEMES, Theme
from discreet.bench.figures import add_legend, axis_of_y, draw_panel, legend_columns, looks_of, save
from discreet.bench.points import Point, read_points
from discreet.bench.suite import Figure, read_suite

SUITES = ("overview", "networks", "competitors", "recommend", "edge", "hop-bayes", "dpdgc-table2")
SPLIT = "75/10/15"
GRAPHS = {
    "cora": "Cora",
    "cora_ml": "Cora-ML",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "cs": "CS",
    "photo": "Photo",
    "facebook-pages": "Facebook pages",
    "fb100:UCLA26": "Facebook, UCLA26",
    "chameleon": "Chameleon",
    "actor": "Actor",
    "twitch-es": "Twitch ES",
}
LEVELS = {"edge": "Edge level", "node:owned,max_degree=20": "Node level, D = 20"}
# What suites call a method with its defaults, and the name that the figure has for it.
NAMES = {
    **{name: name for name in ("mlp", "gap", "hop-bayes", "dpdgc", "progap", "lpgnet", "dpgcn", "gcon", "gcon-ssp")},
    **{name: name for name in ("dp-mlp", "dp-gnn", "dpar (no PageRank)", "hop-bayes, own", "sage")},
    "mlp (spends nothing)": "mlp",
    "hop-bayes, all": "hop-bayes",
    "dpdgc (step)": "dpdgc",
    "dpgcn, LapGraph, SAGE": "dpgcn",
    "dp-gnn (DP-SGD)": "dp-gnn",
}
FIGURE = Figure(name="overview", title="", x="epsilon", log_x=True)
ACROSS = 6
SPEND_NOTHING = ("mlp", "sage")
FAR_BELOW = ("dp-gnn",)  # in a panel that showed all of its points the other lines could not be told apart
SEEDS_FOR_AN_INTERVAL = 5  # of three seeds it is more than twice as wide as their spread, and hides the rest
EDGE_AND_NONE = {"edge": ("edge", "none")}


def stored(folder: Path) -> list[Point]:
    """One point per graph, level, line and ε: that of most seeds."""
    best: dict[tuple[Any, ...], Point] = {}
    for name in SUITES:  # where seeds are as many, the first counts
        path = folder / f"{name}.csv"
        for point in read_points(path, read_suite(name)) if path.exists() else []:
            at = point.at
            line = NAMES.get(str(at["name"]))
            if line is None or at.get("split") != SPLIT or (at["level"] == "none") != (line == "sage"):
                continue
            free = line in SPEND_NOTHING
            key = (at["dataset"], at["level"], line, "any" if free else at["epsilon"])
            if key not in best or point.seeds > best[key].seeds:
                half = point.half if point.seeds >= SEEDS_FOR_AN_INTERVAL else math.nan
                best[key] = replace(point, at={**at, "name": line}, any_epsilon=free, half=half)
    return list(best.values())


def drawing_of(points: Sequence[Point], theme: Theme) -> Any:
    import matplotlib.pyplot as plt

    order = list(dict.fromkeys(NAMES.values()))
    points = sorted(points, key=lambda point: order.index(point.at["name"]))
    looks = looks_of(FIGURE, points, theme)
    width = 2.35 * ACROSS
    legend = legend_columns([", ".join(name) for name in looks], points, width, most=8)
    down = -(-len(GRAPHS) // ACROSS)
    drawing = plt.figure(figsize=(width, 2.15 * down * len(LEVELS) + 1.6), layout="constrained")
    blocks = drawing.subfigures(len(LEVELS), 1, hspace=0.03)
    panels = []
    for block, (level, title) in zip(blocks, LEVELS.items(), strict=True):
        block.set_facecolor(theme.paper)
        block.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
        axes = block.subplots(down, ACROSS)
        for axis in axes.flat[len(GRAPHS) :]:
            axis.set_visible(False)
        for axis, (graph, label) in zip(axes.flat, GRAPHS.items(), strict=False):
            levels = EDGE_AND_NONE.get(level, (level,))
            here = [p for p in points if p.at["dataset"] == graph and p.at["level"] in levels]
            if here:
                draw_panel(axis, FIGURE, here, looks)
                axis_of_y(axis, [p for p in here if p.at["name"] not in FAR_BELOW], per_cent=True)
            axis.set_title(label, fontsize=10.5, loc="left")
            panels.append(axis)
        for row in axes:
            row[0].set_ylabel("test accuracy, %")
    add_legend(drawing, panels, legend, theme)
    return drawing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("docs/results"))
    folder = parser.parse_args().results
    import matplotlib

    matplotlib.use("agg")
    points = stored(folder)
    for theme in THEMES:
        with matplotlib.rc_context({**theme.settings(), "font.size": 10}):
            print(*save(drawing_of(points, theme), folder / f"overview{theme.suffix}"))


if __name__ == "__main__":
    main()
