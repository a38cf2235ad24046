"""``discreet data``: the graphs that have a name."""

from __future__ import annotations

import json

import pytest

from tests.cli.helpers import run


def test_it_lists_the_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "data")
    assert code == 0
    assert "cora" in out
    code, out, _ = run(capsys, "data", "--json")
    assert code == 0
    assert set(json.loads(out)["rows"][0]) == {"name", "nodes", "edges", "features", "classes", "status"}
