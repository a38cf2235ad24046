"""The command in process, and what every refusal of bad input looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.cli import main
from discreet.graph import csbm
from discreet.graph.io import save_npz

QUICK = ["--set", "epochs=1", "--set", "hidden=4"]


def small_graph_file(seed: int = 0, num_nodes: int = 120) -> str:
    """A graph drawn at random, as a file in the folder of the test."""
    return str(save_npz(csbm(num_nodes=num_nodes, seed=seed), f"graph-{seed}.npz", overwrite=True))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Exit code 2, one sentence on standard error, nothing on standard output, nothing written."""
    before = set(Path.cwd().rglob("*"))
    code, out, err = run(capsys, *arguments)
    assert code == 2, (code, out, err)
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert set(Path.cwd().rglob("*")) == before
    return err
