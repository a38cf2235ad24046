"""``discreet extend`` and ``train --also``: next month."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.helpers import QUICK, refused, run, small_graph_file

GAP = ["--method", "gap", *QUICK]


def september() -> list[str]:
    return ["--data", small_graph_file(0)]


def october() -> list[str]:
    return ["--data", small_graph_file(1, 90)]


def test_from_release_to_next_months_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "train", *september(), *GAP, "--epsilon", "2", "--out", "one")[0] == 0
    assert "extend" in refused(capsys, "predict", "one", *october(), "--out", "october.csv")
    code, out, err = run(capsys, "extend", "one", *october(), "--epsilon", "1", "--out", "two", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["epsilon_in_this_graph_alone"] <= 1 < 2 < found["epsilon_in_every_graph"] < 3
    assert run(capsys, "predict", "two", *october(), "--out", "october.csv")[0] == 0
    code, out, _ = run(capsys, "verify", "two")
    assert code == 0, out
    assert "For somebody in the new graph alone" in Path("two/card.md").read_text()


def test_what_cannot_be_extended_gets_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "train", *september(), "--method", "mlp", *QUICK, "--out", "one")[0] == 0
    assert "covered already" in refused(capsys, "extend", "one", *october(), "--epsilon", "1", "--out", "two")
    assert "epsilon" in refused(capsys, "extend", "one", *october(), "--epsilon", "0", "--out", "two")


def test_other_graphs_are_charged_with_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "train", *september(), *GAP, "--also", october()[1], "--out", "one", "--json")
    assert code == 0, err
    assert "extra graph 1 hop 1" in err
    assert run(capsys, "predict", "one", *october(), "--out", "october.csv")[0] == 0


def test_tables_of_next_month_need_no_labels(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    nodes, later = pd.read_csv(tables / "nodes.csv"), tables.parent / "later"
    shutil.copytree(tables, later)
    nodes.rename(columns={"label": "kind"}).to_csv(tables / "nodes.csv", index=False)
    nodes.drop(columns="label").assign(height=nodes["height"] + 1).to_csv(later / "nodes.csv", index=False)
    train = ["train", "--data", str(tables), "--column", "label=kind", "--column", "classes=dog,cat", *GAP]
    code, _, err = run(capsys, *train, "--also", str(later), "--out", "one")
    assert code == 0, err
    assert run(capsys, "predict", "one", "--data", str(later), "--out", "later.csv")[0] == 0
