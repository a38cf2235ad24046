"""The documents tell the truth: files that they name exist, links lead somewhere, and the example method runs."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from discreet.methods import registry
from discreet.privacy.coverage import COVERAGE

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")]
# Where a path may start: at the root, in the package, or in the documentation.
STARTS = (ROOT, ROOT / "src" / "discreet", DOCS)
FILE = re.compile(r"(?<![\w<>/.-])[\w.-]+(?:/[\w.-]+)*\.(?:py|pyi|md|toml|txt|yml|yaml|cff)\b(?![\w/])")
FOLDER = re.compile(r"`([\w.-]+(?:/[\w.-]+)*)/`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
# Files that a user has or a release holds, not the repository.
# Pages that docs/site_hooks.py makes when the site is built.
MADE = {"changelog.md", "contributing.md", "security.md", "reference/command.md"}
NOT_OURS = {"card.md", "schema.toml", "degree_rule.py", "space.toml"}


def named(text: str) -> set[str]:
    """Every file and folder that a text names, placeholders left out."""
    return {*FILE.findall(text), *FOLDER.findall(text)} - NOT_OURS


def exists(path: str) -> bool:
    return any((start / path).exists() for start in STARTS)


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/adding-a-method.md", "CONTRIBUTING.md"])
def test_named_files_exist(page: str) -> None:
    found = named((ROOT / page).read_text(encoding="utf-8"))
    assert len(found) > 5, "the pattern finds nothing"
    assert not sorted(path for path in found if not exists(path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_with_folders_exist(page: Path) -> None:
    """Elsewhere at least what is written with its folder, as ``queries/sums.py``."""
    found = {path for path in named(page.read_text(encoding="utf-8")) if "/" in path and not path.startswith("..")}
    assert not sorted(path for path in found if not exists(path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = {link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link}
    assert not sorted(link for link in links if not (page.parent / link).exists())


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


def test_every_page_is_in_the_navigation() -> None:
    """Add a new page under ``nav`` in mkdocs.yml."""
    there = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} | MADE
    assert navigation() - there == set(), "mkdocs.yml names pages that do not exist"
    assert there - navigation() == set(), "add these pages to the navigation in mkdocs.yml"


def test_citation_has_the_version() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    assert f"version: {version[1]}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_glossary_has_every_coverage() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    assert not [name for name in COVERAGE if f"`{name}`" not in text]


# -------------------------------------------------------------------- the example of docs/adding-a-method.md


def blocks() -> list[str]:
    """The python blocks of the page: the method, its use, and its tests."""
    text = (DOCS / "adding-a-method.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's package, with its entry point, as an installer would leave it."""
    (tmp_path / "degree_rule.py").write_text(blocks()[0], encoding="utf-8")
    (tmp_path / "test_degree_rule.py").write_text(blocks()[2], encoding="utf-8")
    info = tmp_path / "degree_rule-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: degree-rule\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[discreet.methods]\ndegree-rule = degree_rule:DEGREE_RULE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.list_methods.cache_clear()
    yield
    registry.list_methods.cache_clear()
    for name in ("degree_rule", "test_degree_rule"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("_installed")
def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks()[1], "docs/adding-a-method.md", "exec"), {"__name__": "example"})
    assert "an undirected edge has two ends" in capsys.readouterr().out


@pytest.mark.usefixtures("_installed")
def test_example_passes_its_own_tests() -> None:
    tests: ModuleType = importlib.import_module("test_degree_rule")
    assert len(tests.CHECKS) > 20
    for check in tests.CHECKS:
        tests.test_method(check)
    for level in tests.LEVELS:
        tests.test_query(level)
