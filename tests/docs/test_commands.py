"""Commands that pages name but no test runs: the command exists, and so do its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from discreet.cli import app
from tests.docs.console import ROOT

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", *sorted((ROOT / "examples").rglob("*.md"))]
BLOCK = re.compile(r"^```(?:|sh|console|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands_of(text: str) -> Iterator[str]:
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r"(?:\$ )?discreet \w", line):
                yield line.removeprefix("$ ")


def parse(line: str) -> None:
    """Raise where the command line would be refused for its form; no file has to be there."""
    group = typer.main.get_command(app)
    _, name, *arguments = shlex.split(line, comments=True)
    group.commands[name].make_context(name, arguments)


def test_the_parser_notices_what_is_wrong() -> None:
    parse("discreet train --data csbm --level edge --epsilon 2 --out release  # a comment")
    with pytest.raises(Exception, match=r"(?i)no such option"):
        parse("discreet train --data csbm --levels edge")
    with pytest.raises(KeyError):
        parse("discreet trian --data csbm")


def test_commands_are_found() -> None:
    assert sum(1 for page in PAGES for _ in commands_of(page.read_text(encoding="utf-8"))) > 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_have_the_right_form(page: Path) -> None:
    for line in commands_of(page.read_text(encoding="utf-8")):
        parse(line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_compile(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        compile(block, page.name, "exec")
