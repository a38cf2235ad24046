"""Compare every other value of the suite ``defaults`` with its default, split by split, over all graphs.

    python benchmarks/defaults_table.py RESULTS/defaults [PAGE]

A gain is validation accuracy with the value less that with the default, on the same split; the interval is over
the graphs' mean gains. The default stands in several lines (one a parameter), so each gain is taken from the mean of
all of a method's default runs on that split: that mean has less noise than one of them. ``repeat`` is how far those
repeated runs of one setting lie apart. With PAGE the table goes between its marks ``<!-- defaults -->`` …
``<!-- /defaults -->``.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from discreet.bench.store import Row, read_rows
from discreet.bench.suite import read_suite
from discreet.bench.summary import half_width, value_of
from discreet.bench.tables import shown
from discreet.bench.trials import Entry, expand

MARK = re.compile(r"(<!-- defaults -->\n).*?(<!-- /defaults -->)", re.S)
Place = tuple[str, int]
Runs = dict[Place, float]


def accuracies(rows: Mapping[str, Row]) -> dict[str, dict[str, dict[str, Runs]]]:
    """Family (a method at a level), parameter, value: validation accuracy on each graph and split."""
    found: dict[str, dict[str, dict[str, Runs]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for entry in expand(read_suite("defaults")):
        row = rows.get(entry.trial.id)
        accuracy = value_of(row, "accuracy", "val") if row is not None and row["status"] == "ok" else None
        if accuracy is not None:
            family, parameter = str(entry.at["name"]).split(": ")
            found[family][parameter][_value(entry)][entry.trial.dataset, entry.trial.seed] = accuracy
    return found


def _value(entry: Entry) -> str:
    (setting,) = entry.case.grid
    return shown(entry.trial.settings.get(setting, "default"))


def default_runs(parameters: Mapping[str, Mapping[str, Runs]]) -> dict[Place, list[float]]:
    """All runs of a family with every parameter at its default: the first value of each of its lines."""
    repeats: dict[Place, list[float]] = defaultdict(list)
    for values in parameters.values():
        for place, accuracy in next(iter(values.values())).items():
            repeats[place].append(accuracy)
    return repeats


def gain_line(family: str, parameter: str, default: str, value: str, runs: Runs, base: Mapping[Place, float]) -> str:
    by_graph: dict[str, list[float]] = defaultdict(list)
    for place in runs.keys() & base.keys():
        by_graph[place[0]].append(runs[place] - base[place])
    gains = {graph: float(np.mean(each)) for graph, each in sorted(by_graph.items())}
    all_graphs = list(gains.values())
    gain = f"{np.mean(all_graphs):+.1f} ± {half_width(all_graphs):.1f}"
    each = ", ".join(f"{graph.split(':')[-1]} {points:+.1f}" for graph, points in gains.items())
    return f"| {family} | {parameter} | {default} | {value} | {gain} | {each} |"


def table(rows: Mapping[str, Row]) -> str:
    lines = ["| method | parameter | default | instead | gain | by graph |", "|---|---|---|---|---|---|"]
    for family, parameters in accuracies(rows).items():
        repeats = default_runs(parameters)
        base = {place: float(np.mean(each)) for place, each in repeats.items()}
        spread = np.sqrt(np.mean([np.var(each, ddof=1) for each in repeats.values() if len(each) > 1] or [0.0]))
        lines.append(f"| **{family}** | | | repeat | ± {spread:.1f} | {len(base)} graphs × splits |")
        for parameter, values in parameters.items():
            default, *others = values
            lines += [gain_line(family, parameter, default, value, values[value], base) for value in others]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("page", type=Path, nargs="?")
    options = parser.parse_args()
    text = table(read_rows(options.results))
    if options.page is None:
        print(text, end="")
        return
    page = options.page.read_text(encoding="utf-8")
    options.page.write_text(MARK.sub(lambda mark: mark[1] + text + mark[2], page), encoding="utf-8")


if __name__ == "__main__":
    main()
