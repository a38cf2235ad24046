"""Run a command in this process and say how it ended: success, sentence, traceback, hang or leftover."""

from __future__ import annotations

import io
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from discreet.cli import main

SUCCESS, SENTENCE, TRACEBACK, HANG, LEFTOVER = "success", "sentence", "traceback", "hang", "leftover"
GOOD = (SUCCESS, SENTENCE)
SECONDS = 10
"""Of processor time: how long a case may work."""
WAITING = 60
"""How long it may take by the clock, on a machine that does other work too."""
DONE = {0, 1}
BENCH = {"results.jsonl", "cells.csv", "tables.md", "tables.tex"}


class TooLongError(BaseException):
    """Raised by the alarm; nothing catches it on the way."""


@dataclass(frozen=True)
class Ended:
    """What became of a command."""

    outcome: str
    code: int | None
    text: str


def run_case(arguments: Sequence[str], prepare: Callable[[Path], None]) -> Ended:
    """Run ``discreet`` in a fresh folder that ``prepare`` has filled; what it names may be new there if it succeeds."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name, _inside(Path(name)) as folder:
        prepare(folder)
        before = _files(folder)
        out, err = io.StringIO(), io.StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(err), _alarm():
                code = main(list(arguments))
        except TooLongError:
            return Ended(HANG, None, "")
        except BaseException as error:
            return Ended(TRACEBACK, None, repr(error))
        new = _files(folder) - before
        return _judged(code, err.getvalue(), {path.split(os.sep)[0] for path in new}, _named(arguments))


def _judged(code: int, err: str, new: set[str], allowed: set[str]) -> Ended:
    if code not in {*DONE, 2} or "Traceback" in err:
        return Ended(TRACEBACK, code, err)
    if new - (allowed if code in DONE else set()):
        return Ended(LEFTOVER, code, f"{sorted(new)} {err}")
    if code in DONE:
        return Ended(SUCCESS, code, err)
    sentences = [line for line in err.splitlines() if line.startswith("discreet: ")]
    if len(sentences) != 1 or not err.endswith("\n"):
        return Ended(TRACEBACK, code, err)
    return Ended(SENTENCE, code, err)


def _named(arguments: Sequence[str]) -> set[str]:
    """The first parts of whatever could be a path in the arguments; what bench writes, where that is this folder."""
    paths = {path for argument in arguments for path in (argument, argument.partition("=")[2])}
    here = {"", "."} & {os.path.normpath(path) if path else path for path in paths}
    return {path.split(os.sep)[0] for path in paths} | (BENCH if here and "bench" in arguments else set())


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@contextmanager
def _inside(folder: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


@contextmanager
def _alarm() -> Iterator[None]:
    began, worked = time.monotonic(), time.process_time()

    def ring(_: int, __: FrameType | None) -> None:
        if time.process_time() - worked > SECONDS or time.monotonic() - began > WAITING:
            raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
