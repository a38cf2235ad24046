"""What commands print: results as text or as one JSON object, and tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

NOTE = "accuracy is a research figure, outside every guarantee"


def say(text: object, as_json: bool) -> None:
    """Words for a person: they make way for JSON."""
    print(text, file=sys.stderr if as_json else sys.stdout)


def report(result: dict[str, Any], as_json: bool) -> None:
    """One result, as lines or as JSON."""
    if as_json:
        print_json(result)
        return
    print()
    width = max([14, *map(len, result)]) + 2
    for key, value in result.items():
        print(f"{key:{width}}{shown(value)}")


def shown(value: Any) -> str:
    """A value as text."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "; ".join(map(shown, value)) or "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None else str(value)


def print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    """A table, or its rows as JSON."""
    if as_json:
        print_json({"rows": rows})
        return
    texts = [{k: ", ".join(v) if isinstance(v, list) else shown(v) for k, v in row.items()} for row in rows]
    print(aligned([list(texts[0]), *(list(row.values()) for row in texts)]))


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as columns of one width each."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    from discreet.files import to_json

    print(json.dumps(to_json(value), ensure_ascii=False))
