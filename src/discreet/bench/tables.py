"""Tables of a suite: what stands in which cell; ``writers`` prints them.

A figure is a mean ± half of its 95 % interval (Student's t over seeds), the paper's in brackets beside it. The best of
a column, among the lines of one level, budget and coverage, is marked only where its interval lies above all others.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.bench.execute import source_digest
from discreet.bench.suite import COSTS, SCORES, Figure, Suite, Table
from discreet.bench.summary import Cell, Row, cells
from discreet.bench.trials import Entry, grid_key
from discreet.errors import ParameterError
from discreet.methods.metrics import check_metric

Key = tuple[Any, ...]
HEADS = {"epsilon": "ε", "name": "method", "dataset": "data"}
LOWER_IS_BETTER = (*COSTS, "ratio")


@dataclass(frozen=True)
class Text:
    """One cell as it is printed."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Layout:
    """A table ready to be written: heads, then rows of as many texts."""

    title: str
    heads: list[str]
    rows: list[list[Text]]
    notes: list[str]


def tables_of(suite: Suite) -> list[Table]:
    """The suite's tables, or one of everything."""
    if suite.tables:
        return suite.tables
    axes = list(dict.fromkeys(grid_key(key) for case in suite.cases for key in (*case.data_grid, *case.grid)))
    return [Table(title=suite.title, rows=["level", "epsilon", "name", *axes])]


def with_metric(suite: Suite, metric: str) -> Suite:
    """The suite with its scores measured otherwise. What papers printed is left out: it is another figure."""
    check_metric(metric)
    tables = [table.model_copy(update={"metric": metric}) for table in tables_of(suite) if table.metric in SCORES]
    figures = [figure.model_copy(update={"metric": metric}) for figure in suite.figures if figure.metric in SCORES]
    cases = [case.model_copy(update={"paper": {}}) for case in suite.cases if case.method or case.measure]
    return suite.model_copy(update={"tables": tables, "figures": figures, "cases": cases})


def check_layout(suite: Suite, entries: Sequence[Entry]) -> None:
    """Refuse a table or figure with an unknown coordinate, or with several settings in one place."""
    for table in tables_of(suite):
        _check_metric(suite, f"table {table.title!r}", table)
        _check_keys(suite, f"table {table.title!r}", [*table.rows, *table.columns, *table.where], entries)
        _check_distinct(suite, f"table {table.title!r}", [*table.rows, *table.columns], chosen(entries, table))
    for figure in suite.figures:
        _check_metric(suite, f"figure {figure.name!r}", figure)
        keys = [figure.x, *figure.line, *figure.panel]
        _check_keys(suite, f"figure {figure.name!r}", [*keys, *figure.where], entries)
        _check_distinct(suite, f"figure {figure.name!r}", keys, chosen(entries, figure))


def chosen(entries: Iterable[Entry], part: Table | Figure) -> list[Entry]:
    """The entries that a table or figure is about."""
    wanted = part.where.items()
    return [e for e in entries if all(key in e.at and e.at[key] in values for key, values in wanted)]


def layouts(suite: Suite, entries: Sequence[Entry], rows: Mapping[str, Row]) -> list[Layout]:
    """Every table of the suite that has something in it; all of them where nothing has been run."""
    made = [lay_out(table, entries, rows) for table in tables_of(suite)]
    return [layout for layout in made if layout.rows] or made


def lay_out(table: Table, entries: Sequence[Entry], rows: Mapping[str, Row]) -> Layout:
    """Put every cell into its place."""
    return lay_out_cells(table, cells(chosen(entries, table), rows, table.metric, table.mask))


def lay_out_cells(table: Table, found: Sequence[Cell]) -> Layout:
    """The same for cells that were counted already."""
    placed = _placed(found, table)
    columns = _in_order(column for _, column in placed)
    lines = _in_order(line for line, _ in placed)
    with_covers = any(cell.covers for cell in found)
    body = []
    for line in lines:
        across = [placed.get((line, column)) for column in columns]
        if not any(cell is not None and cell.has_content for cell in across):
            continue
        texts = [Text(_key_text(table.rows, line, across, place)) for place in range(len(line))]
        texts += [
            Text("") if cell is None else _cell_text(cell, placed, table, column)
            for cell, column in zip(across, columns, strict=True)
        ]
        if with_covers:
            texts.append(Text(" / ".join(dict.fromkeys(cell.covers for cell in across if cell and cell.covers))))
        body.append(texts)
    heads = [HEADS.get(key, key) for key in table.rows] + [_column_head(table.columns, column) for column in columns]
    return Layout(table.title, [*heads, "covers"] if with_covers else heads, body, _notes(table, found))


# -------------------------------------------------------------------- places and texts


def _placed(found: Iterable[Cell], table: Table) -> dict[tuple[Key, Key], Cell]:
    """Cells by row and column; a line that holds at any ε stands in every column of ε."""
    listed = list(found)
    across = "epsilon" in table.columns
    budgets = sorted({c.at["epsilon"] for c in listed if not _free(c)}) if across else []
    placed = {}
    for cell in listed:
        line = tuple(cell.at.get(key) for key in table.rows)
        for epsilon in budgets if across and budgets and _free(cell) else [cell.at["epsilon"]]:
            at = {**cell.at, "epsilon": epsilon}
            placed[line, tuple(at.get(key) for key in table.columns)] = cell
    return placed


def _in_order(keys: Iterable[Key]) -> list[Key]:
    """Grouped by the first coordinate, then the second, …, each in the order in which the suite first has it."""
    listed = list(dict.fromkeys(keys))
    firsts = [list(dict.fromkeys(values)) for values in zip(*listed, strict=True)]
    return sorted(listed, key=lambda key: [first.index(part) for first, part in zip(firsts, key, strict=True)])


def _free(cell: Cell) -> bool:
    return cell.case.any_epsilon or math.isinf(cell.at["epsilon"])


def _key_text(keys: Sequence[str], line: Key, across: Sequence[Cell | None], place: int) -> str:
    if keys[place] == "epsilon" and any(cell is not None and cell.case.any_epsilon for cell in across):
        return "any"
    return shown(line[place])


def shown(value: Any) -> str:
    """A coordinate as text."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "∞" if math.isinf(value) else f"{value:g}"
    return str(value)


def _column_head(keys: Sequence[str], column: Key) -> str:
    texts = []
    for key, value in zip(keys, column, strict=True):
        if value is not None:
            texts.append(shown(value) if key in ("dataset", "name") else f"{HEADS.get(key, key)} = {shown(value)}")
    return ", ".join(texts)


def _cell_text(cell: Cell, placed: Mapping[tuple[Key, Key], Cell], table: Table, column: Key) -> Text:
    paper = f"[{cell.paper:g}]" if _has_paper(cell, table) else ""
    if not cell.values:
        return Text(paper or ("failed" if cell.reasons else ""))
    digits = 1 if table.metric in SCORES else 2
    text = f"{cell.mean:.{digits}f}" + ("" if math.isnan(cell.half) else f" ± {cell.half:.{digits}f}")
    if len(cell.values) < cell.wanted:
        text += f" ({len(cell.values)} of {cell.wanted})"
    rivals = [
        other for (_, at), other in placed.items() if at == column and other is not cell and _compared(cell, other)
    ]
    best = table.best and bool(rivals) and all(_beats(cell, other, table.metric) for other in rivals)
    return Text(f"{text} {paper}".rstrip(), best)


def _has_paper(cell: Cell, table: Table) -> bool:
    """Printed figures are scores: they have no place beside seconds or memory."""
    return cell.paper is not None and table.metric in SCORES


def _compared(cell: Cell, other: Cell) -> bool:
    """Only within one graph, level, budget and coverage."""
    if not other.values or other.at.get("dataset") != cell.at.get("dataset"):
        return False
    if other.at["level"] != cell.at["level"] or other.covers != cell.covers:
        return False
    return _free(cell) or _free(other) or other.at["epsilon"] == cell.at["epsilon"]


def _beats(cell: Cell, other: Cell, metric: str) -> bool:
    """The intervals lie apart; without intervals nothing is claimed."""
    if metric in LOWER_IS_BETTER:
        return cell.mean + cell.half < other.mean - other.half
    return cell.mean - cell.half > other.mean + other.half


def _notes(table: Table, found: Sequence[Cell]) -> list[str]:
    counts = sorted({len(cell.values) for cell in found if cell.values})
    seeds = "–".join(str(count) for count in dict.fromkeys([counts[0], counts[-1]])) if counts else "no"
    what = f"{table.mask} {table.metric}, per cent" if table.metric in SCORES else table.metric.replace("_", " ")
    notes = [f"{what}: mean ± half of the 95 % interval over seeds ({seeds})"]
    if any(_has_paper(cell, table) for cell in found):
        notes.append("in brackets: the paper")
    reasons: dict[str, int] = {}
    for cell in found:
        for reason in cell.reasons:
            label = f"{cell.at['name']} on {cell.at['dataset']}: {reason}"
            reasons[label] = reasons.get(label, 0) + 1
    notes += [f"failed {count} ×: {label}" for label, count in reasons.items()]
    made = [row["versions"]["source"] for cell in found for row in cell.rows if row.get("versions", {}).get("source")]
    old = sum(source != source_digest() for source in made)
    return [*notes, f"{old} of {len(made)} rows were made by another version of the source"] if old else notes


# -------------------------------------------------------------------- checks


def _check_metric(suite: Suite, what: str, part: Table | Figure) -> None:
    """Fits have known metrics; measurements have their own."""
    known = [*SCORES, *COSTS]
    if part.metric not in known and not any(case.measure for case in suite.cases):
        near = difflib.get_close_matches(part.metric, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ParameterError(f"suite {suite.name}, {what}: there is no metric {part.metric!r}: {hint}")


def _check_keys(suite: Suite, what: str, keys: Iterable[str], entries: Sequence[Entry]) -> None:
    known = list(dict.fromkeys(key for entry in entries for key in entry.at))
    for key in keys:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ParameterError(f"suite {suite.name}, {what}: no trial has a coordinate {key!r}: {hint}")


def _check_distinct(suite: Suite, what: str, keys: Sequence[str], entries: Sequence[Entry]) -> None:
    """Two settings in one place would be averaged as if they were seeds."""
    seen: dict[Key, Entry] = {}
    for entry in entries:
        place = tuple(str(entry.at.get(key)) for key in keys)
        other = seen.setdefault(place, entry)
        if other.trial.cell != entry.trial.cell:
            differ = [key for key in entry.at if entry.at[key] != other.at.get(key)]
            raise ParameterError(
                f"suite {suite.name}, {what} puts different trials in one place ({', '.join(place)}): "
                f"tell them apart by {' or '.join(differ) or 'another name'}"
            )
