"""Every method has a page that says what its declaration says, names options that exist, and has its picture."""

from __future__ import annotations

import dataclasses
import re
import runpy
from pathlib import Path

import pytest

from discreet.methods.registry import find_method, list_methods, load_method

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted((DOCS / "methods").glob("*.md"))
SECTIONS = ["When to use it", "What is guaranteed", "Options", "Figures", "Paper"]
OPTION = re.compile(r"`([a-z_]+)(?:=[^`]*)?`")
ROW = re.compile(r"^\| `([a-z]+)` \| `([a-z+-]+)` \|$", re.MULTILINE)


def methods_of(page: Path) -> list[str]:
    """Named in the title, before a colon."""
    title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return [name.strip() for name in title.split(":")[0].split(",")]


def section(page: Path, title: str) -> str:
    return page.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_method_has_one_page() -> None:
    assert sorted(name for page in PAGES for name in methods_of(page)) == sorted(
        d.name for d in list_methods().values()
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_has_its_sections_and_its_picture(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert f"](../pictures/{page.stem}.svg)" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_coverage_is_as_declared(page: Path) -> None:
    declared = {d.name: d.covers for d in list_methods().values()}
    rows = ROW.findall(section(page, "What is guaranteed"))
    names = methods_of(page)
    expected = [dict(declared[name]) for name in names]
    if all(covers == expected[0] for covers in expected):
        assert dict(rows) == expected[0]
    else:
        assert sorted(rows) == sorted(row for covers in expected for row in covers.items())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_exist(page: Path) -> None:
    kinds = [load_method(find_method(name)) for name in methods_of(page)]
    known = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    text = re.sub(r"\([^)]*\)", "", section(page, "Options"))  # brackets hold values and links
    assert not sorted(set(OPTION.findall(text)) - known - set(list_methods()))


def test_pictures_are_as_drawn() -> None:
    drawn = runpy.run_path(str(DOCS / "pictures" / "draw.py"))
    for name, picture in drawn["PICTURES"].items():
        assert (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8") == drawn["svg"](picture)
