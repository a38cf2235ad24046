"""Pages whose commands are run: blocks of ```console hold lines ``$ command`` with what it prints below them.

``...`` on a line of its own stands for any lines. Figures differ from run to run (noise is fresh), so numbers are
compared as numbers of any value, and runs of blanks as one blank.

    python -m tests.docs.console docs/tutorials/payments.md     # prints what the commands of a page print now
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from discreet.cli import main

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"\b[0-9a-f]{16,}\b|\d+(?:\.\d+)?(?:e[-+]?\d+)?")
ANY_LINES = "..."


@dataclass
class Step:
    """A command of a page and the lines that the page shows below it."""

    command: str
    shown: list[str]


def steps_of(page: Path) -> Iterator[Step]:
    """The commands of a page in their order; a backslash at the end continues a line."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        step: Step | None = None
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                if step:
                    yield step
                step = Step(line[2:], [])
            elif step:
                step.shown.append(line)
        if step:
            yield step


def run(command: str) -> list[str]:
    """What a command prints on both streams. ``discreet`` runs in this process, and must end with 0."""
    name, *arguments = shlex.split(command)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        if name == "discreet":
            code = main(arguments)
            assert code == 0, f"{command}\n{printed.getvalue()}"
        elif name == "python":
            _run_script(arguments)
        elif name == "head":
            print(*Path(arguments[-1]).read_text(encoding="utf-8").splitlines()[: int(arguments[1])], sep="\n")
        else:
            raise AssertionError(f"no test runs {name}")
    return printed.getvalue().splitlines()


def _run_script(arguments: list[str]) -> None:
    before = sys.argv
    sys.argv = arguments
    try:
        runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
    finally:
        sys.argv = before


def same(shown: list[str], printed: list[str]) -> bool:
    """Whether lines of a page are what was printed, numbers and blanks aside."""
    wanted = [_plain(line) for line in shown if line.strip()]
    found = [_plain(line) for line in printed if line.strip()]
    return _matches(wanted, found)


def _matches(wanted: list[str], found: list[str]) -> bool:
    if not wanted:
        return not found
    if wanted[0] == ANY_LINES:
        return any(_matches(wanted[1:], found[skipped:]) for skipped in range(len(found) + 1))
    return bool(found) and wanted[0] == found[0] and _matches(wanted[1:], found[1:])


def _plain(line: str) -> str:
    line = re.sub(r"-{4,}", "----", NUMBER.sub("#", line))
    return " ".join(line.split())


if __name__ == "__main__":
    page = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for step in steps_of(page):
            print(f"$ {step.command}", *run(step.command), sep="\n")
