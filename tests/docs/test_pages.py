"""Start page, guides and tutorials: their commands and code run, and print what the pages say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.docs.console import ROOT, run, same, steps_of

DOCS = ROOT / "docs"
NOTEBOOK = ROOT / "examples" / "pyg" / "pyg_to_paper.ipynb"
RUN = [
    page
    for page in (DOCS / "index.md", *sorted(DOCS.glob("guides/*.md")), *sorted(DOCS.glob("tutorials/*.md")))
    if next(steps_of(page), None)
]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)\n```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = ROOT / "README.md"
    (block,) = python_blocks(readme)
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    assert "spends" in capsys.readouterr().out
    shutil.rmtree("release")
    (commands,) = re.findall(r"^```sh\n(.*?)^```", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(commands.splitlines()) == 4
    for line in commands.splitlines():
        run(line)
    assert Path("predictions.csv").exists()


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(page: Path) -> None:
    for step in steps_of(page):
        printed = run(step.command)
        assert same(step.shown, printed), "\n".join([step.command, *printed])


def test_python_of_the_start_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = python_blocks(DOCS / "index.md")
    exec(compile(block, "docs/index.md", "exec"), {"__name__": "start"})
    assert "spends" in capsys.readouterr().out


def test_notebook_runs_and_is_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert sum(bool(line.strip()) for cell in code for line in cell.splitlines()) <= 15
    assert code == python_blocks(DOCS / "tutorials" / "pyg.md")
    exec(compile("\n".join(code), NOTEBOOK.name, "exec"), {"__name__": "notebook"})
    assert "HopBayes" in Path("table.tex").read_text(encoding="utf-8")
    assert Path("sweep.svg").stat().st_size > 1000


def test_a_page_that_shows_something_else_is_noticed() -> None:
    printed = ["epsilon 2 at delta 1e-05", "", "covers  weights"]
    assert same(["epsilon 2.3 at delta 1e-06", "covers weights"], printed)
    assert same(["...", "covers weights"], printed)
    assert not same(["epsilon 2 at delta 1e-05"], printed)
    assert not same(["...", "covers weights+predictions"], printed)
