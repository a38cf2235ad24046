"""Put the tables and figures of finished suites into a page, between its marks.

    python benchmarks/results_page.py RESULTS [--page docs/results.md]
    python benchmarks/results_page.py RESULTS --keep
    python benchmarks/results_page.py --redraw

RESULTS holds one folder a suite, as ``discreet bench SUITE --out RESULTS/SUITE`` wrote them (with ``--tables-only`` for
results from elsewhere). A page marks where a suite goes: ``<!-- bench: SUITE -->`` … ``<!-- /bench -->``. What stands
between is replaced by the command, when and with what the rows were made, the tables, and the figures, which are drawn
as ``results/SUITE-NAME.svg`` (and ``-dark.svg``) beside the page, with every point in ``results/SUITE.csv``. Suites
without results are left as they are. ``--keep`` is for folders that hold some of a suite's cells: the others stay as
``results/SUITE.csv`` has them, and so do those of which the folder has fewer seeds (and fewer than five); tables of
costs are left out, since machines differ. ``--redraw`` draws the figures again from those points, and changes no table.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.bench.figures import draw
from discreet.bench.outputs import first_cells
from discreet.bench.points import NO_COORDINATES, read_points
from discreet.bench.store import read_rows
from discreet.bench.suite import Suite, Table, read_suite
from discreet.bench.summary import Cell
from discreet.bench.tables import Layout, lay_out_cells, shown, tables_of
from discreet.bench.trials import Trial, expand, paper_only
from discreet.bench.writers import cells_csv, markdown
from discreet.files import write_whole

MARK = re.compile(r"(<!-- bench: ([a-z0-9-]+) -->\n).*?(<!-- /bench -->)", re.S)
PICTURE = re.compile(r"^(!\[.*?\]\(results/.*?\)|<picture>.*?</picture>)\n*", re.M)


def section(folder: Path, page: Path) -> str:
    suite = read_suite(folder.name)
    rows = read_rows(folder)
    cells = {entry.trial.cell for entry in expand(suite)}
    used = [row for row in rows.values() if Trial.from_json(row["trial"]).cell in cells]
    files = page.parent / "results"
    files.mkdir(exist_ok=True)
    shutil.copyfile(folder / "cells.csv", files / f"{suite.name}.csv")
    tables = (folder / "tables.md").read_text(encoding="utf-8").strip()
    return "\n\n".join([made_by(suite, used), tables, *pictures(suite, files)]) + "\n"


ENOUGH_SEEDS = 5
"""So many seeds of the present code count for more than ten of an earlier one."""


class StoredCell(Cell):
    """A cell of which only its line in ``results/SUITE.csv`` is left."""

    line: dict[str, str]

    @classmethod
    def of(cls, cell: Cell, line: dict[str, str]) -> StoredCell:
        made = cls(cell.at, cell.case, cell.paper, [float(line["mean"])] * int(line["seeds"]), wanted=cell.wanted)
        made.line = line
        return made

    @property
    def deviation(self) -> float:
        return float(self.line["deviation"] or "nan")

    @property
    def half(self) -> float:
        return (float(self.line["high"]) - float(self.line["low"])) / 2 if self.line["high"] else math.nan

    @property
    def covers(self) -> str:
        return self.line["covers"]

    @property
    def spent(self) -> float:
        return float(self.line["epsilon_spent"] or "nan")

    @property
    def made_by(self) -> str:
        return self.line.get("made_by", "")

    def average(self, key: str) -> float:
        return float(self.line[key] or "nan")


def with_stored(found: list[Cell], path: Path) -> list[Cell]:
    """The cells of a run; where they have too few seeds, those that the page has."""
    if not path.exists():
        return found
    with path.open(encoding="utf-8") as file:
        lines = {place(line): line for line in csv.DictReader(file) if line["mean"]}
    merged = []
    for cell in found:
        line = lines.pop(place(cell.at), None)
        fewer = line is not None and len(cell.values) < min(ENOUGH_SEEDS, int(line["seeds"]))
        merged.append(StoredCell.of(cell, line) if line is not None and fewer else cell)
    for at in lines:
        print(f"not in the suite any more: {dict(at)}")
    return merged


def place(at: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Coordinates as text, numbers in one spelling."""
    return frozenset(
        (key, spelled(value)) for key, value in at.items() if key not in NO_COORDINATES and value not in (None, "")
    )


def spelled(value: Any) -> str:
    try:
        return shown(float(value))
    except (TypeError, ValueError):
        return str(value)


def is_of(table: Table, cell: Cell) -> bool:
    return all(cell.at.get(key) in values for key, values in table.where.items())


def without_source(layout: Layout) -> Layout:
    """Of which source a row is stands in the CSV; the one that writes the page says nothing."""
    return replace(layout, notes=[note for note in layout.notes if "version of the source" not in note])


def kept_section(folder: Path, page: Path) -> str:
    """As :func:`section`, of some of a suite's cells, beside what the page has of the others."""
    suite, rows = read_suite(folder.name), read_rows(folder)
    entries = [*expand(suite), *paper_only(suite)]
    files = page.parent / "results"
    found = with_stored(first_cells(suite, entries, rows), files / f"{suite.name}.csv")
    write_whole(files / f"{suite.name}.csv", cells_csv(found))
    metric = tables_of(suite)[0].metric  # the one that the CSV holds
    tables = [
        markdown(without_source(lay_out_cells(table, [cell for cell in found if is_of(table, cell)])))
        for table in tables_of(suite)
        if table.metric == metric
    ]
    fits = sum(len(cell.values) for cell in found)
    made = f"{fits:,} fits, seeds from {suite.first_seed}; each point, with what made it, in `results/{suite.name}.csv`"
    head = f"`discreet bench {suite.name}` ({made}; where that says nothing, 15 and 16 November 2026)"
    return "\n\n".join([head, *(table.strip() for table in tables), *pictures(suite, files)]) + "\n"


def pictures(suite: Suite, files: Path) -> list[str]:
    """Draw the suite's figures from its points; how a page shows each, light or dark as its reader has it."""
    points = read_points(files / f"{suite.name}.csv", suite)
    drawn = [(figure, f"{suite.name}-{figure.name}") for figure in suite.figures]
    return [picture(figure.title, name) for figure, name in drawn if draw(figure, points, files / name, ["svg"])]


def picture(title: str, name: str) -> str:
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="results/{name}-dark.svg">'
    return f'<picture>{dark}<img alt="{title}" src="results/{name}.svg"></picture>'


def made_by(suite: Suite, rows: list[dict[str, Any]]) -> str:
    days = sorted({row["started"][:10] for row in rows if "started" in row})
    when = " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "not run"
    torch = ", ".join(sorted({row["versions"].get("torch", "?") for row in rows}))
    devices = sorted({row.get("device", "cpu") for row in rows} - {"cpu"})
    where = f", some on {' and '.join(devices)}" if devices else ""
    seeds = sorted({row["trial"]["seed"] for row in rows})
    span = f"seeds {seeds[0]} to {seeds[-1]}" if seeds else "no seeds"
    failed = sum(row["status"] != "ok" for row in rows)
    count = f"{len(rows)} trials" + (f", {failed} failed" if failed else "")
    made = f"{when}; {span}; {count}; torch {torch}{where}"
    return f"`discreet bench {suite.name}` ({made}; points in `results/{suite.name}.csv`)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", help="not with --redraw")
    parser.add_argument("--page", type=Path, default=Path("docs/results.md"))
    parser.add_argument("--redraw", action="store_true")
    parser.add_argument("--keep", action="store_true", help="cells that RESULTS lacks stay as the page has them")
    given = parser.parse_args()
    if given.results is None and not given.redraw:
        parser.error("say where the results are, or --redraw")

    def filled(found: re.Match[str]) -> str:
        folder = given.results / found[2]
        if not (folder.is_dir() if given.keep else (folder / "tables.md").exists()):
            return found[0]
        print(f"filled {found[2]}")
        return found[1] + (kept_section if given.keep else section)(folder, given.page) + found[3]

    def redrawn(found: re.Match[str]) -> str:
        tables = PICTURE.sub("", found[0][len(found[1]) : -len(found[3])]).strip()
        drawn = pictures(read_suite(found[2]), given.page.parent / "results")
        return "\n\n".join([found[1] + tables, *drawn]) + "\n" + found[3]

    text = given.page.read_text(encoding="utf-8")
    given.page.write_text(MARK.sub(redrawn if given.redraw else filled, text), encoding="utf-8")


if __name__ == "__main__":
    main()
