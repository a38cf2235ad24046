"""docs/papers.md names every algorithm, table and figure of the papers, and each of its commands works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from discreet.bench.suite import suite_names
from discreet.methods.registry import list_methods
from tests.cli.helpers import run, small_graph_file

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
# What each paper numbers: algorithms, tables and figures.
NUMBERED = {
    "DPAR": {"Algorithm": 3, "Table": 2, "Figure": 12},
    "DP-GNN": {"Algorithm": 3, "Table": 6, "Figure": 3},
    "SimGAT": {"Algorithm": 4, "Table": 0, "Figure": 3},
    "GCON": {"Algorithm": 4, "Table": 0, "Figure": 4},  # its two tables have Roman numbers
    "DPDGC": {"Algorithm": 2, "Table": 2, "Figure": 3},
}
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("discreet ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_works(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, name, *rest = shlex.split(command)
    assert name in ("plan", "bench"), "the page shows cheap commands"
    small = ("--data", small_graph_file(num_nodes=300)) if name == "plan" and "--data" not in rest else ()
    code, out, err = run(capsys, name, *rest, *small)
    assert code == 0, err
    assert out


def test_the_page_has_every_suite_of_a_paper_and_every_preset() -> None:
    of_papers = [
        name for name in suite_names() if name.startswith(("dpar", "dpgnn", "simgat", "lpgnn", "gcon", "dpdgc"))
    ]
    assert len(of_papers) >= 9
    assert not [name for name in of_papers if f"discreet bench {name} --list" not in PAGE]
    having = [name for name, declared in list_methods().items() if "paper" in declared.presets]
    assert not [name for name in having if f"--method {name} " not in PAGE]


@pytest.mark.parametrize("paper", NUMBERED)
def test_everything_that_a_paper_numbers_has_a_line(paper: str) -> None:
    (section,) = re.findall(rf"^## {paper}\b.*?(?=^## |\Z)", PAGE, re.S | re.M)
    items = "\n".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| "))
    for kind, count in NUMBERED[paper].items():
        assert numbers(items, kind) >= set(range(1, count + 1)), kind


def numbers(text: str, kind: str) -> set[int]:
    """Those that follow the word: ``Figures 3, 5 and 6``, ``Tables 2 to 4``, ``Figure 2a``."""
    found: set[int] = set()
    for listed in re.findall(rf"{kind}s? (\d+[a-z]?(?:(?:, | and | to )\d+)*)", text):
        ends = [int(number) for number in re.findall(r"\d+", listed)]
        found |= set(range(ends[0], ends[1] + 1)) if " to " in listed else set(ends)
    return found
