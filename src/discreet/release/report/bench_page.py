"""The page of bench results: tables that can be sorted and filtered, and curves over ε."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.release.report.inputs import read_rows, sweep_lines
from discreet.release.report.page import environment, sweep_chart

FILTERS = ("dataset", "method", "level", "split", "epsilon")
MOST_CURVES = 6
"""As many as a picture can show apart."""


def render_bench(paths: Sequence[Path]) -> str:
    """One page of all tables."""
    tables = [_table(path) for path in paths]
    count = sum(len(table["rows"]) for table in tables)
    return environment().get_template("bench.html").render(tables=tables, count=count)


def _table(path: Path) -> dict[str, Any]:
    columns, rows = read_rows(path)
    curves = sweep_lines(rows)
    drawn = dict(list(curves.items())[:MOST_CURVES])
    return {
        "name": path.stem,
        "columns": [column for column in columns if any(row.get(column) for row in rows)],
        "rows": rows,
        "choices": [(column, values) for column in FILTERS if len(values := _values(rows, column)) > 1],
        "picture": sweep_chart(drawn) if drawn else None,
        "left_out": len(curves) - len(drawn),
    }


def _values(rows: Sequence[dict[str, str]], column: str) -> list[str]:
    return sorted({row[column] for row in rows if row.get(column)})
