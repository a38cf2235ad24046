"""A user's own tables, and releases that are trained once; a test gets a copy that it may spoil."""

from __future__ import annotations

import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.cli import main
from tests.cli.helpers import QUICK


@pytest.fixture(scope="session")
def _tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph as a user has it: two CSV files with ids and names of their own."""
    folder = tmp_path_factory.mktemp("tables") / "mine"
    folder.mkdir()
    rng = np.random.default_rng(0)
    names = [f"person-{i}" for i in range(40)]
    rows = [f"{name},{rng.normal():.3f},{rng.normal():.3f},{('cat', 'dog')[i % 2]}" for i, name in enumerate(names)]
    (folder / "nodes.csv").write_text("\n".join(["id,height,weight,label", *rows]) + "\n")
    edges = {tuple(sorted(rng.choice(40, 2, replace=False))) for _ in range(80)}
    lines = [f"{names[a]},{names[b]}" for a, b in edges]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    return folder


@pytest.fixture
def tables(_tables: Path, tmp_path: Path) -> Path:
    return shutil.copytree(_tables, tmp_path / "mine")


@pytest.fixture(scope="session")
def _trained(_tables: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, Path]:
    """What `train --json` on the tables says on both streams, and its release."""
    folder = tmp_path_factory.mktemp("trained") / "release"
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(
            ["train", "--data", str(_tables), "--undirected", "--method", "gap", *QUICK, "--out", str(folder), "--json"]
        )
    assert code == 0, err.getvalue()
    return json.loads(out.getvalue()), err.getvalue(), folder


@pytest.fixture
def trained(_trained: tuple[dict[str, Any], str, Path]) -> tuple[dict[str, Any], str]:
    return _trained[:2]


@pytest.fixture
def release(_trained: tuple[dict[str, Any], str, Path]) -> Path:
    """The release of :func:`trained`, copied to ``release`` in the folder of the test."""
    return shutil.copytree(_trained[2], Path("release"))


@pytest.fixture(scope="session")
def _csbm_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("csbm") / "release"
    assert main(["train", "--method", "gap", *QUICK, "--set", "hops=2", "--out", str(folder), "--json"]) == 0
    return folder


@pytest.fixture
def csbm_release(_csbm_release: Path) -> Path:
    """A release of gap with two hops on csbm, copied to ``release`` in the folder of the test."""
    return shutil.copytree(_csbm_release, Path("release"))
