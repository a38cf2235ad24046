"""Put the tables and figures of finished suites into a page, between its marks.

    python benchmarks/results_page.py RESULTS [--page docs/results.md]
    python benchmarks/results_page.py --redraw

RESULTS holds one folder a suite, as ``discreet bench SUITE --out RESULTS/SUITE`` wrote them (with ``--tables-only`` for
results from elsewhere). A page marks where a suite goes: ``<!-- bench: SUITE -->`` … ``<!-- /bench -->``. What stands
between is replaced by the command, when and with what the rows were made, the tables, and the figures, which are drawn
as ``results/SUITE-NAME.svg`` (and ``-dark.svg``) beside the page, with every point in ``results/SUITE.csv``. Suites
without results are left as they are. ``--redraw`` draws the figures again from those points, and changes no table.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from typing import Any

from discreet.bench.figures import draw
from discreet.bench.points import read_points
from discreet.bench.store import read_rows
from discreet.bench.suite import Suite, read_suite
from discreet.bench.trials import Trial, expand

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
    given = parser.parse_args()
    if given.results is None and not given.redraw:
        parser.error("say where the results are, or --redraw")

    def filled(found: re.Match[str]) -> str:
        folder = given.results / found[2]
        if not (folder / "tables.md").exists():
            return found[0]
        print(f"filled {found[2]}")
        return found[1] + section(folder, given.page) + found[3]

    def redrawn(found: re.Match[str]) -> str:
        tables = PICTURE.sub("", found[0][len(found[1]) : -len(found[3])]).strip()
        drawn = pictures(read_suite(found[2]), given.page.parent / "results")
        return "\n\n".join([found[1] + tables, *drawn]) + "\n" + found[3]

    text = given.page.read_text(encoding="utf-8")
    given.page.write_text(MARK.sub(redrawn if given.redraw else filled, text), encoding="utf-8")


if __name__ == "__main__":
    main()
