"""What a suite leaves beside its results: tables, the cells they show as CSV, and figures."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet.bench.points import of_cells
from discreet.bench.suite import Suite
from discreet.bench.summary import Cell, Row, cells
from discreet.bench.tables import chosen, layouts, tables_of
from discreet.bench.trials import Entry
from discreet.bench.writers import cells_csv, latex, markdown
from discreet.files import write_whole


def write_outputs(
    suite: Suite, entries: Sequence[Entry], rows: Mapping[str, Row], folder: Path, figures: bool
) -> list[str]:
    """tables.md, tables.tex, cells.csv and four files per figure, each whole or not at all; their names."""
    made = layouts(suite, entries, rows)
    texts = {
        "tables.md": "\n".join(map(markdown, made)),
        "tables.tex": "\n".join(map(latex, made)),
        "cells.csv": cells_csv(first_cells(suite, entries, rows)),
    }
    for name, text in texts.items():
        write_whole(folder / name, text)
    return [*texts, *(_draw(suite, entries, rows, folder) if figures else [])]


def first_cells(suite: Suite, entries: Sequence[Entry], rows: Mapping[str, Row]) -> list[Cell]:
    """The cells with the metric of the first table, which the CSV and the JSON hold."""
    return cells(entries, rows, *first_measured(suite))


def first_measured(suite: Suite) -> tuple[str, str]:
    """The metric and the mask of the first table."""
    first = tables_of(suite)[0]
    return first.metric, first.mask


def _draw(suite: Suite, entries: Sequence[Entry], rows: Mapping[str, Row], folder: Path) -> list[str]:
    drawn: list[str] = []
    for figure in suite.figures:
        from discreet.bench.figures import draw

        points = of_cells(cells(chosen(entries, figure), rows, figure.metric, figure.mask))
        try:
            drawn += draw(figure, points, folder / figure.name)
        except ImportError as error:
            print(f"no figures: {error} (install discreet[plot]); results and tables are there", file=sys.stderr)
            break
    return drawn
