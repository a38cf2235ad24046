"""Which files a fit leaves, and whether it speaks to others: neither is part of a release, and both may tell of private
data.

Python says what it opens, makes and renames, whoever asks for it and wherever it lies (its *audit events*). Compiled
code that opens files by itself says nothing: a fresh process with folders of its own shows those
(``audit.fresh_process``).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any

_PATH_AT = {
    "os.mkdir": 0,
    "os.rename": 1,
    "os.link": 1,
    "os.symlink": 1,
    "os.truncate": 0,
    "os.chmod": 0,
    "os.utime": 0,
    "os.setxattr": 0,
    "sqlite3.connect": 0,
}
"""Events that make or change a file, and which of their arguments names it; ``open`` by itself says whether it does."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_COMPILERS = {"importlib._bootstrap_external", "_frozen_importlib_external", "numba.core.caching"}
"""Modules that write what they compiled, the first time that code runs: they know code, not data."""
_HELPERS = {__name__, "os", "tempfile", "contextlib", "pathlib"}
"""Modules that open and make files for others."""


def left_files(doing: str, names: Iterable[str]) -> list[str]:
    """What is wrong with files of these names."""
    return [f"a {doing} left a file, which no release lists: {name}" for name in names]


@dataclass
class Outside:
    """What was done outside the process, by threads that were not there before.

    They are known as objects: the number of one that has ended is given to the next.
    """

    others: frozenset[threading.Thread]
    paths: dict[str, None] = field(default_factory=dict)
    connected: bool = False

    def faults(self, doing: str) -> list[str]:
        """Files that are still there, and connections to others; scratch files that are gone have told nobody."""
        found = left_files(doing, [os.path.basename(path) for path in self.paths if os.path.lexists(path)])
        return [*found, f"a {doing} speaks to others over a network"] if self.connected else found

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take down an event, if it is one of ours."""
        if threading.current_thread() in self.others:
            return
        if event == "socket.connect":
            self.connected |= isinstance(arguments[1], tuple)  # one of a name is of this machine
        elif event == "open":
            path, _, flags = arguments
            if flags & _WRITES:
                self._add(path)
        else:
            self._add(arguments[_PATH_AT[event]])

    def _add(self, path: Any) -> None:
        if isinstance(path, str | bytes | os.PathLike):  # a number is an open file that was noted by its name
            name = os.path.abspath(os.fsdecode(path))
            if name != os.devnull and _who_asks() not in _COMPILERS:
                self.paths[name] = None


def _who_asks() -> str:
    """The module whose code wants to have something opened or made."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") in _HELPERS:
        frame = frame.f_back
    return "" if frame is None else frame.f_globals.get("__name__", "")


_EVENTS = frozenset({"open", "socket.connect", *_PATH_AT})
_WATCHING: list[Outside] = []


@contextmanager
def watched_outside() -> Iterator[Outside]:
    """Note what this thread, and those that it starts, do outside the process while the context is open."""
    _listen()
    watch = Outside(frozenset(threading.enumerate()) - {threading.current_thread()})
    _WATCHING.append(watch)
    try:
        yield watch
    finally:
        _WATCHING[:] = [other for other in _WATCHING if other is not watch]


@cache
def _listen() -> None:
    """Once for a process: Python keeps a listener for good. While nobody watches it does nothing."""
    sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if _WATCHING and event in _EVENTS:
        for watch in _WATCHING:
            watch.note(event, arguments)
