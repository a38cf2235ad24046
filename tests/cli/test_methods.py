"""``discreet methods``: the list, coverage level by level, and the parameters of a method."""

from __future__ import annotations

import json

import pytest

from discreet.methods import registry
from discreet.methods.declaration import Declaration
from discreet.methods.registry import list_methods
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


@pytest.mark.parametrize("name", sorted(list_methods()))
def test_every_parameter_of_a_method_is_shown_with_what_it_means(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(run(capsys, "methods", name, "--json")[1])
    assert shown["parameters"].keys() == shown["about"].keys()
    assert all(shown["about"].values())
    for preset in shown.get("presets", ()):
        settings = shown["presets"][preset]["settings"]
        assert {key: shown["parameters"][key][preset] for key in settings} == settings
    text = run(capsys, "methods", name)[1]
    assert all(f"\n{parameter} " in text for parameter in shown["parameters"])


def test_parameters_stand_as_they_are_set(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "methods", "progap")
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if len(line.split()) == 3}
    assert rows["batch_size"] == ["256", "null"]
    assert rows["frozen"] == ["false", "false"]
    assert rows["architecture"] == ["opinions", "paper"]
    assert "``" not in out


def test_an_unknown_method_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "methods", "progab")
    assert code == 2
    assert not out
    assert "did you mean progap?" in err
