"""What a fit says besides its answers: warnings, logs, standard output and standard error. A release is not all that
leaves a fit, and a warning that names a degree tells as much as a weight.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

COMPILER = "numba"
"""Logs each function that it compiles, in detail, at the first call in a process and never again."""


@contextmanager
def recorded_words() -> Iterator[list[str]]:
    """Everything that this thread says while the context is open, in order; other threads are left alone.

    What a compiler says of the code is not recorded: it depends on what ran before, not on data.
    """
    words: list[str] = []
    thread = threading.get_ident()
    handler = _RecordingHandler(words, thread)
    root, compiler = logging.getLogger(), logging.getLogger(COMPILER)
    levels = root.level, compiler.level
    with (
        warnings.catch_warnings(),
        redirect_stdout(_RecordingStream(words, thread, sys.stdout)),
        redirect_stderr(_RecordingStream(words, thread, sys.stderr)),
    ):
        warnings.simplefilter("always")
        shown = warnings.showwarning
        warnings.showwarning = _recording_warnings(words, thread, shown)
        root.addHandler(handler)
        root.setLevel(logging.NOTSET)
        compiler.setLevel(logging.WARNING)
        try:
            yield words
        finally:
            root.removeHandler(handler)
            root.setLevel(levels[0])
            compiler.setLevel(levels[1])


def _recording_warnings(words: list[str], thread: int, shown: Any) -> Any:
    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if threading.get_ident() == thread:
            words.append(f"{category.__name__}: {message}")
        else:
            shown(message, category, *where, **more)

    return show


class _RecordingHandler(logging.Handler):
    def __init__(self, words: list[str], thread: int) -> None:
        super().__init__(logging.NOTSET)
        self._words, self._thread = words, thread

    def emit(self, record: logging.LogRecord) -> None:
        if threading.get_ident() == self._thread:
            self._words.append(f"{record.name}: {record.getMessage()}")


class _RecordingStream(io.TextIOBase):
    """Keeps what one thread writes, and passes on what others do (a progress bar, for example)."""

    def __init__(self, words: list[str], thread: int, onward: TextIO) -> None:
        super().__init__()
        self._words, self._thread, self._onward = words, thread, onward

    def write(self, text: str) -> int:
        if threading.get_ident() != self._thread:
            return self._onward.write(text)
        if text.strip():
            self._words.append(text)
        return len(text)

    def flush(self) -> None:
        if threading.get_ident() != self._thread:
            self._onward.flush()
