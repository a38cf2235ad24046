"""The site: every page is in the navigation, every anchor exists, and it builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.console import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# Made when the site is built, by docs/site_hooks.py.
MADE = {"changelog.md", "contributing.md", "security.md", "reference/command.md"}
LINK = re.compile(r"\]\(([^)#\s]*\.md)?#([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def navigation() -> set[str]:
    pages: set[str] = set()

    def walk(node: object) -> None:
        if isinstance(node, str):
            pages.add(node)
        elif isinstance(node, list):
            for entry in node:
                walk(entry)
        elif isinstance(node, dict):
            for entry in node.values():
                walk(entry)

    walk(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    return pages


def anchors(page: Path) -> set[str]:
    """The ids of headings, as the site makes them, and those that are written out."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {_slug(heading) for heading in headings} | set(re.findall(r'id="([^"]+)"', text))


def _slug(heading: str) -> str:
    plain = heading.encode("ascii", "ignore").decode().lower()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip())


def test_every_page_is_in_the_navigation() -> None:
    """Add a new page under ``nav`` in mkdocs.yml."""
    there = {str(page.relative_to(DOCS)).replace(os.sep, "/") for page in PAGES} | MADE
    assert navigation() - there == set(), "mkdocs.yml names pages that do not exist"
    assert there - navigation() == set(), "add these pages to the navigation in mkdocs.yml"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_anchors_exist(page: Path) -> None:
    missing = []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        found = (page.parent / target) if target else page
        if found.exists() and anchor not in anchors(found):
            missing.append(f"{target}#{anchor}")
    assert not missing


def test_questions_are_thirty_and_lead_somewhere() -> None:
    rows = re.findall(r"^\| (.+\?) \| \[", (DOCS / "questions.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(set(rows)) == 30


@pytest.mark.slow
def test_site_builds_without_a_warning(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    found = (tmp_path / "site" / "search" / "search_index.json").read_text(encoding="utf-8").lower()
    assert not [word for word in ("sensitivity", "next month", "paper") if word not in found]
    outside = re.findall(r'(?:src|href)="(https?://[^"]+)"', (tmp_path / "site" / "index.html").read_text())
    assert not [url for url in outside if url.endswith((".js", ".css"))], "the site must not reach the network"
