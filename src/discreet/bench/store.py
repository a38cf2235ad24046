"""Results on disk: one JSON line per trial, written whole, in a file that can be cut, killed, copied and merged.

Guarantee: a row is in the file completely (one ``write`` of one line, then ``fsync``) or not at all once the file
has been opened again: a last line that a crash left unfinished is cut off. Every ``*.jsonl`` of the folder is read, so
results from another machine are merged by copying their file beside ours.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from discreet.errors import OutputUnusableError
from discreet.files import INFINITE

RESULTS = "results.jsonl"
Row = dict[str, Any]


class Store:
    """The results of a folder, open for more. Use as a context: one process writes a folder at a time."""

    def __init__(self, folder: Path) -> None:
        """Nothing is opened yet."""
        self.folder = folder
        self._file = -1

    def __enter__(self) -> Self:
        """Make the folder, take its lock, and cut off what a crash left unfinished."""
        self.folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self.folder / RESULTS, flags, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise OutputUnusableError(
                f"another bench is writing to {self.folder}: wait for it, or choose another --out"
            ) from None
        if not stat.S_ISREG(os.fstat(self._file).st_mode):  # a pipe, or a link to a device that swallows everything
            os.close(self._file)
            raise OutputUnusableError(f"{self.folder / RESULTS} is not a plain file, which results are")
        _repair(self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the lock back."""
        os.close(self._file)

    def append(self, row: Row) -> None:
        """Add a row; it is on disk when this returns."""
        line = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n").encode()
        written = os.write(self._file, line)
        if written != len(line):  # a full disk: the rest of the line would be a lie
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise OSError(28, os.strerror(28), str(self.folder / RESULTS))
        os.fsync(self._file)


def read_rows(folder: Path) -> dict[str, Row]:
    """Every row of a folder by its trial's address.

    Of rows that ran with the same parameters a success outweighs a failure, else the later row counts; where a default
    or a constant changed between them, the one that was started later counts, whatever came of it.
    """
    rows: dict[str, Row] = {}
    for path in sorted(path for path in folder.glob("*.jsonl") if path.is_file()):
        for row in _lines(path):
            before = rows.get(row["id"])
            if before is None or _outweighs(row, before):
                rows[row["id"]] = row
    return rows


def _outweighs(row: Row, before: Row) -> bool:
    constants = {row.get("constants"), before.get("constants")} - {None}
    if row.get("settings") != before.get("settings") or len(constants) > 1:
        return str(row.get("started", "")) >= str(before.get("started", ""))
    return before["status"] != "ok" or row["status"] == "ok"


def _lines(path: Path) -> Iterator[Row]:
    """The rows of a file; a line that is not one (cut short, or merged by accident) counts as not run."""
    for line in path.read_bytes().split(b"\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and {"id", "status", "trial"} <= row.keys() and _has_form(row):
            yield row


def _has_form(row: Row) -> bool:
    """Whether what tables and figures read of a row is of the kind that they take; a file may be anybody's."""
    return all(_FORMS[key](row[key]) for key in _FORMS.keys() & row.keys())


def _is_number(value: Any) -> bool:
    """A number that JSON can write, or infinity by its name."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value == INFINITE
    return abs(value) < _LARGEST


def _are_metrics(value: Any) -> bool:
    """Numbers by name, or by name and mask; a score that could not be computed is null."""
    if not isinstance(value, dict):
        return False
    inner = [item for found in value.values() for item in (found.values() if isinstance(found, dict) else [found])]
    return all(item is None or _is_number(item) for item in inner)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_LARGEST = 1e300
"""Sums of figures stay finite."""
_FORMS: dict[str, Callable[[Any], bool]] = {
    "id": _is_text,
    "status": _is_text,
    "trial": lambda value: isinstance(value, dict),
    "constants": lambda value: value is None or _is_text(value),
    "metrics": _are_metrics,
    "versions": lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
    "reason": lambda value: value is None or _is_text(value),
    **dict.fromkeys(
        ("epsilon_spent", "seconds", "wall_seconds", "peak_rss_mb"), lambda value: value is None or _is_number(value)
    ),
}


def _repair(file: int) -> None:
    """Cut a last line without its end."""
    size = os.fstat(file).st_size
    if size == 0:
        return
    position, tail = size, b""
    while position > 0 and b"\n" not in tail:
        step = min(65_536, position)
        position -= step
        tail = os.pread(file, step, position) + tail
    if not tail.endswith(b"\n"):
        os.ftruncate(file, position + tail.rfind(b"\n") + 1 if b"\n" in tail else 0)
