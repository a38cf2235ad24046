"""How often `--method auto` names the best method, and how much it loses, beside always choosing one method.

    discreet bench recommend --out results/recommend
    python benchmarks/recommend.py results/recommend

A choice counts as right if its mean test accuracy is within half a point of the best of the methods compared.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from pathlib import Path

from discreet.bench.store import read_rows
from discreet.graph.datasets import load
from discreet.graph.splits import split
from discreet.methods.recommend import recommend
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level

CLOSE = 0.5
Cell = tuple[str, str, float]


def cells(folder: Path) -> dict[Cell, dict[str, float]]:
    """Mean test accuracy in per cent of every method, by graph, level and ε; a method without ε stands in all."""
    found: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    free: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read_rows(folder).values():
        if row["status"] != "ok":
            continue
        trial, accuracy = row["trial"], 100 * row["metrics"]["accuracy"]["test"]
        if row["epsilon_spent"] == 0:
            free[trial["dataset"], trial["level"]][trial["method"]].append(accuracy)
        else:
            found[trial["dataset"], trial["level"], trial["epsilon"]][trial["method"]].append(accuracy)
    for (dataset, level, _), methods in found.items():
        methods.update(free[dataset, level])
    return {cell: {name: statistics.fmean(values) for name, values in m.items()} for cell, m in found.items()}


def chosen(cell: Cell) -> str:
    dataset, spec, epsilon = cell
    level = parse_level(spec)
    graph = level.view(split(load(dataset), "75/10/15", 0))
    return recommend(graph.public, Privacy(level, epsilon)).chosen.method


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    table = cells(parser.parse_args().results)
    losses: dict[str, list[float]] = defaultdict(list)
    for cell in sorted(table):
        accuracy, pick = table[cell], chosen(cell)
        best = max(accuracy.values())
        for name in accuracy:
            losses[f"always {name}"].append(best - accuracy[name])
        losses["auto"].append(best - accuracy[pick])
        shown = "  ".join(f"{name} {value:.1f}" for name, value in sorted(accuracy.items()))
        print(f"{cell[0]:15} {cell[1]:28} eps {cell[2]:<4g} auto: {pick:10} {shown}")
    print()
    for name, lost in sorted(losses.items(), key=lambda item: statistics.fmean(item[1])):
        right, mean = sum(value <= CLOSE for value in lost), statistics.fmean(lost)
        print(f"{name:18} right in {right} of {len(lost)}, loses {mean:.2f} points, worst {max(lost):.1f}")


if __name__ == "__main__":
    main()
