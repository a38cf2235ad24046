"""What commands say: results (text, or one JSON object) on standard output, progress and log lines on standard error.

Steps are logged as ``debug``, progress and what was read of tables as ``info``. Nothing that is logged depends on
private data: names of steps, counts of steps that a plan fixed, public columns and classes, and seconds (which, for a
private graph, are for its holder: see docs/sharp-edges.md).
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import OutputUnusableError, ParameterError

if TYPE_CHECKING:
    from discreet.training.descent import Progress

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.privacy.levels import Level

NOTE = "accuracy is a research figure, outside every guarantee"


def check_places(*new: Path | None, beside: Path | None = None) -> None:
    """Refuse new outputs at which nothing could be written, or that would spoil a release or one another.

    ``beside`` is a file that the command writes too and that may exist. Call it before the work whose result would be
    lost.
    """
    from discreet.files import check_output
    from discreet.privacy.certificate import CERTIFICATE

    for path in new:
        if path is not None:
            check_output(path)
    # No file has a NUL in its name; who opens it says so.
    places = [Path(os.path.realpath(path)) for path in (*new, beside) if path is not None and "\0" not in str(path)]
    for number, path in enumerate(places):
        inside = next((folder for folder in path.parents if (folder / CERTIFICATE).is_file()), None)
        if inside is not None:
            raise OutputUnusableError(f"{inside} is a release, which holds nothing else: write {path.name} elsewhere")
        if any(other in (path, *path.parents) for other in places[:number] + places[number + 1 :]):
            raise OutputUnusableError(f"two outputs share one place: {path}")


def printable(text: str) -> str:
    """A text of somebody else's (a class, a category, a column) with line ends and control characters spelt out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def say(text: object, as_json: bool) -> None:
    """Words for a person: they make way for JSON."""
    print(text, file=sys.stderr if as_json else sys.stdout)


def warn_of_ranges(graph: Graph, level: Level) -> None:
    """Say where a table that a release reads lies far from the ranges of training, if its features are public."""
    from discreet.graph.account import beyond_ranges
    from discreet.graph.parts import FEATURES

    if FEATURES not in level.private:
        for sentence in beyond_ranges(graph):
            LOG.warning(sentence)


def warn_of_tables(graph: Graph, level: Level) -> None:
    """Say what looks like an oversight in tables, as far as the level makes them public."""
    from discreet.graph.account import doubts_of

    for sentence in doubts_of(graph, level.private):
        LOG.warning(sentence)


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
    if isinstance(value, bool):
        return "yes" if value else "no"
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
    """Rows of cells as columns of one width each; a cell keeps to its line, whatever is in it."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    from discreet.files import to_json

    print(json.dumps(to_json(value), ensure_ascii=False))


# -------------------------------------------------------------------- figures of a fit

MOST_CLASSES = 12
"""A confusion table of more columns does not fit on a terminal; --json has it."""

_SCORES = {
    "accuracy": "accuracy",
    "majority": "  the commonest class throughout",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro-F1",
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
}
_MLP = "  mlp, on features alone"
_COLUMNS = {
    **{name: name for name in ("nodes", "predicted", "precision", "recall")},
    **{"roc_auc": "ROC-AUC", "pr_auc": "PR-AUC"},
}


def figures_text(result: Mapping[str, Any]) -> str:
    """Scores by mask, the classes by name, the confusion table and the warnings."""
    if result["accuracy"] is None:
        return str(result["note"])
    name = next(iter(result["by_class"]), "test")
    blocks = [
        _scores(result),
        _classes(name, result["by_class"].get(name, [])),
        _confusion(result["confusion"].get(name, []), result["classes"]),
        *(f"warning: {sentence}" for sentence in result["warnings"]),
        str(result["note"]),
    ]
    return "\n\n".join(block for block in blocks if block)


def _scores(result: Mapping[str, Any]) -> str:
    """One line per score, and under it that of ``mlp`` where it was asked for."""
    masks, of_mlp = list(result["accuracy"]), result.get("features_alone", {})
    rows = []
    for key, title in _SCORES.items():
        if key in result:
            rows.append((title, result[key]))
        if key in of_mlp:
            rows.append((_MLP, of_mlp[key]))
    return aligned([["", *masks], *([title, *(shown(figures[mask]) for mask in masks)] for title, figures in rows)])


def _classes(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    head = [f"class ({name} nodes)", *_COLUMNS.values()]
    return aligned([head, *([row["name"], *(shown(row[column]) for column in _COLUMNS)] for row in rows)])


def _confusion(table: Sequence[Sequence[object]], names: Sequence[str]) -> str:
    if not table or len(names) > MOST_CLASSES:
        return ""
    head = ["true class \\ predicted", *names]
    return aligned([head, *([name, *map(str, row)] for name, row in zip(names, table, strict=True))])


def table_text(result: Mapping[str, Any]) -> str:
    """Figures that were released with noise, and what they cost."""
    certificate, both = result["certificate"], result["composed"]
    scores = [[_SCORES[key], shown(result[key])] for key in _SCORES if key in result]
    rows = zip(result["classes"], result["precision"], result["recall"], strict=True)
    counts = [[str(round(count)) for count in row] for row in result["confusion"]]
    return "\n\n".join(
        [
            aligned(scores),
            aligned([["class", "precision", "recall"], *([name, shown(one), shown(two)] for name, one, two in rows)]),
            _confusion(counts, result["classes"]),
            f"every count carries noise of standard deviation {result['noise_on_counts']:.3g}",
            f"epsilon {shown(certificate['epsilon'])} at delta {shown(certificate['delta'])} for somebody in these "
            "data alone; "
            f"with the release {shown(both['epsilon'])} at delta {shown(both['delta'])} for somebody in both",
        ]
    )


# -------------------------------------------------------------------- while a command works

LOG = logging.getLogger("discreet")
LEVELS = ("debug", "info", "warning", "error")
EVERY_SECONDS = 30.0
"""Between two lines of progress where there is no terminal."""


@contextmanager
def logging_to_stderr(level: str, as_json: bool) -> Iterator[None]:
    """Lines of this level and above go to standard error while the command runs."""
    if level not in LEVELS:
        raise ParameterError(f"--log-level is one of {', '.join(LEVELS)}, not {level!r}")
    handler, before = logging.StreamHandler(sys.stderr), (LOG.level, LOG.propagate)
    handler.setFormatter(_Json() if as_json else _Text())
    LOG.addHandler(handler)
    LOG.setLevel(level.upper())
    LOG.propagate = False
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.level, LOG.propagate = before


@contextmanager
def progress_bars() -> Iterator[Progress | None]:
    """A bar on a terminal, a line every half minute elsewhere."""
    if not sys.stderr.isatty():
        yield _progress_lines()
        return
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def update(title: str, done: int, total: int) -> None:
            if title not in tasks:
                tasks[title] = bars.add_task(title, total=total)
            bars.update(tasks[title], completed=done)

        yield update


def _progress_lines() -> Progress:
    """Progress where there is no terminal: a line every half minute."""
    began = said = time.monotonic()

    def update(title: str, done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= EVERY_SECONDS:
            said = now
            fields = {"step": title, "done": done, "total": total, "seconds": round(now - began)}
            LOG.info(f"{title}: {done} of {total} after {now - began:.0f} s", extra={"fields": fields})

    return update


class _Text(logging.Formatter):
    """One line per record, whatever names of somebody else's are in it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return ("warning: " if record.levelno >= logging.WARNING else "") + printable(record.getMessage())


class _Json(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        content = {"time": when, "level": record.levelname.lower(), "message": record.getMessage()}
        return json.dumps({**content, **getattr(record, "fields", {})}, ensure_ascii=False)
