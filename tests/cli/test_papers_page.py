"""Every command of docs/papers.md works: plans are made, suites are listed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from discreet.bench.suite import suite_names
from discreet.methods.registry import list_methods
from tests.cli.helpers import run, small_graph_file

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
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
