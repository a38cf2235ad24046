"""``discreet methods``: the list, and coverage level by level."""

from __future__ import annotations

import json

import pytest

from discreet.methods import registry
from discreet.methods.declaration import Declaration
from tests.cli.helpers import run


def test_it_lists_every_method(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "methods")
    assert code == 0
    assert "gap" in out
    code, out, _ = run(capsys, "methods", "--json")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert {"gap", "hop-bayes", "lpgnn"} <= {row["method"] for row in rows}
    assert all({"method", "levels", "covers", "summary"} <= row.keys() for row in rows)


def test_coverage_by_level_is_grouped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    own, others = "weights+predictions", "weights+others-predictions"
    covers = {"none": own, "edge": own, "neighbor": others, "node": others}
    mine = Declaration("mine", "mine:Mine", covers, "of my own", "a paper")
    plain = Declaration("plain", "plain:Plain", {"edge": "weights"}, "simple")
    monkeypatch.setattr(registry, "list_methods", lambda: {"mine": mine, "plain": plain})
    out = run(capsys, "methods")[1].splitlines()
    assert f"none, edge: {own}; neighbor, node: {others}  of my own" in out[1]
    assert out[2].split() == ["plain", "edge", "weights", "simple"]
    rows = json.loads(run(capsys, "methods", "--json")[1])["rows"]
    assert rows[0] == {
        "method": "mine",
        "levels": list(covers),
        "covers": covers,
        "summary": "of my own",
        "paper": "a paper",
    }
    assert "paper" not in rows[1]
