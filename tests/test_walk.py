"""The way of data through the house: which files one command walks through, and that no two of them call each other.

``docs/architecture.md`` states the limits. Calls of a base class and its subclass are the one exception.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import discreet
from discreet.cli import main

PACKAGE = Path(discreet.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
# A base class and the classes that fill it in: the estimator with its methods, noisy steps with their queries.
BASES = {"methods/base.py": "methods/", "methods/trained.py": "methods/", "queries/gradients.py": "queries/"}
STATED = re.compile(r"^\| `train --method ([\w-]+) --level (\w+)` \| (\d+) \| (\d+) \|$", re.MULTILINE)


class Walk:
    """Files that were entered, and pairs of files of which one called the other; imports do not count."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.calls: set[tuple[str, str]] = set()
        self._names: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        here = self._name(frame.f_code)
        if event != "call" or here is None or frame.f_code.co_name == "<module>":
            return
        caller, back = None, frame.f_back
        while back is not None:
            name = self._name(back.f_code)
            if name is not None and back.f_code.co_name == "<module>":
                return
            caller, back = caller or name, back.f_back
        self.files.add(here)
        if caller is not None and caller != here:
            self.calls.add((caller, here))

    def _name(self, code: CodeType) -> str | None:
        path = code.co_filename
        if path not in self._names:
            ours = Path(path).is_relative_to(PACKAGE)
            self._names[path] = str(Path(path).relative_to(PACKAGE)) if ours else None
        return self._names[path]

    def mutual(self) -> set[frozenset[str]]:
        """Pairs of files that call each other, a base class with its subclass left out."""
        pairs = {frozenset(pair) for pair in self.calls if pair[::-1] in self.calls}
        return {pair for pair in pairs if not any(self._is_base(base, pair) for base in BASES)}

    @staticmethod
    def _is_base(base: str, pair: frozenset[str]) -> bool:
        return base in pair and all(file.startswith(BASES[base]) for file in pair)


def walked(run: Callable[[], Any]) -> Walk:
    walk, before = Walk(), sys.getprofile()
    sys.setprofile(walk)
    threading.setprofile(walk)
    try:
        run()
    finally:
        sys.setprofile(before)
        threading.setprofile(before)  # type: ignore[arg-type]  # None again
    return walk


def test_the_page_states_three_walks() -> None:
    assert [row[0] for row in STATED.findall(PAGE)] == ["gap", "hop-bayes", "dpar"]


@pytest.mark.parametrize(("method", "level", "files", "calls"), STATED.findall(PAGE))
def test_a_walk_stays_within_what_the_page_says(method: str, level: str, files: str, calls: str) -> None:
    quick = {"gap": "epochs=2", "hop-bayes": "steps=3", "dpar": "steps=3"}[method]
    chosen = ["--method", method, "--level", level, f"--set={quick}"]
    codes: list[int] = []
    walk = walked(lambda: codes.append(main(["train", "--data", "csbm", "--epsilon", "4", *chosen])))
    assert codes == [0]
    assert not walk.mutual()
    assert len(walk.files) <= int(files)
    assert len(walk.calls) <= int(calls)
