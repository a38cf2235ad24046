"""The site: every anchor exists, and it builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, Page, browser
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


@pytest.mark.slow
def test_site_does_not_reach_the_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        html = page.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|<link[^>]*href)="https?://[^"]+"', html), page


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no browser")
@pytest.mark.parametrize("width", [400, 1280])
def test_search_finds_words_in_a_site_that_is_opened_as_files(site: Path, width: int) -> None:
    with browser() as page:
        page.open(site / "index.html", width)
        for words in ("sensitivity", "next month", "paper"):
            page.evaluate(f"""(() => {{
                const box = document.querySelector("[data-md-component=search-query]");
                box.focus(); box.value = "{words}";
                box.dispatchEvent(new Event("input", {{bubbles: true}}));
                box.dispatchEvent(new KeyboardEvent("keyup", {{bubbles: true}}));
                return true; }})()""")
            assert _found(page) > 0, words
        assert not page.complaints


def _found(page: Page) -> int:
    """How many results are shown, as soon as there are any."""
    for _ in range(40):
        shown = page.evaluate("document.querySelectorAll('.md-search-result__item').length")
        if shown:
            return shown
        time.sleep(0.25)
    return 0
