"""What a command says while it works, on standard error: progress, and lines for people or (``--log-json``) programs.

Steps are ``debug``, progress is ``info``. Nothing that is logged depends on private data: names of steps, counts of
steps that a plan fixed, and seconds (which, for a private graph, are for its holder: see docs/sharp-edges.md).
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.training.descent import Progress

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
    handler.setFormatter(_Json() if as_json else logging.Formatter("%(message)s"))
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


class _Json(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        content = {"time": when, "level": record.levelname.lower(), "message": record.getMessage()}
        return json.dumps({**content, **getattr(record, "fields", {})}, ensure_ascii=False)
