"""The site: every anchor exists, and it builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.console import ROOT

DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]
LINK = re.compile(r"\]\(([^)#\s]*\.md)?#([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The ids of headings, as the site makes them, and those that are written out."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {_slug(heading) for heading in headings} | set(re.findall(r'id="([^"]+)"', text))


def _slug(heading: str) -> str:
    plain = heading.encode("ascii", "ignore").decode().lower()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
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
