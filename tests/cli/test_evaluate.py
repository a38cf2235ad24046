"""``discreet evaluate``: covered, certified, or for research only, and it says which."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.helpers import QUICK, refused, run, small_graph_file

NODE = ["--method", "dp-mlp", "--level", "node", "--set", "steps=2", "--set", "hidden=4"]


def small() -> list[str]:
    return ["--data", small_graph_file()]


def trained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code, _, err = run(capsys, "train", *small(), *arguments, "--out", "made", "--json")
    assert code == 0, err
    return "made"


def test_at_edge_level_figures_are_free(capsys: pytest.CaptureFixture[str]) -> None:
    release = trained(capsys, "--method", "mlp", "--set", "epochs=1")
    code, out, _ = run(capsys, "evaluate", release, *small())
    assert code == 0
    assert "the guarantee covers them" in out
    assert "true class" in out
    code, _, err = run(capsys, "evaluate", release, *small(), "--epsilon", "1")
    assert code == 0
    assert "--epsilon is not spent" in err
    entered = ["--ledger", "book.db", "--dataset", "bank"]
    assert "goes with --epsilon" in refused(capsys, "evaluate", release, *small(), *entered)
    for given in (["--out", "figures.json"], entered):
        assert "nothing to certify" in refused(capsys, "evaluate", release, *small(), "--epsilon", "1", *given)


def test_at_node_level_they_are_for_research_or_cost_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    release = trained(capsys, *NODE)
    code, out, _ = run(capsys, "evaluate", release, *small(), "--json")
    assert code == 0
    assert "research only" in json.loads(out)["note"]
    code, out, err = run(capsys, "evaluate", release, *small(), "--epsilon", "1", "--out", "figures.json", "--json")
    assert code == 0
    assert "confusion  gaussian" in err
    found, written = json.loads(out), json.loads(Path("figures.json").read_text())
    assert found["certificate"] == written["certificate"]
    assert written["composed"]["epsilon"] > written["certificate"]["epsilon"]
    code, out, _ = run(capsys, "evaluate", release, *small(), "--epsilon", "1", "--nodes", "all")
    assert code == 0
    assert "for somebody in both" in out


def test_figures_are_entered_in_a_ledger(capsys: pytest.CaptureFixture[str]) -> None:
    release, book = trained(capsys, *NODE), ["--ledger", "book.db", "--dataset", "bank"]
    options = ["--epsilon", "1", "--out", "figures.json", *book, "--json"]
    code, out, err = run(capsys, "evaluate", release, *small(), *options)
    assert code == 0, err
    (total,) = json.loads(run(capsys, "ledger", "book.db", "--json")[1])["totals"]
    (entry,) = total["entries"]
    assert entry["id"] == json.loads(out)["ledger"]
    assert entry["certificate"] == json.loads(Path("figures.json").read_text())["digest"]
    assert total["epsilon"] == pytest.approx(1.0)


def test_bad_options_get_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    release = trained(capsys, *NODE)
    assert "--epsilon" in refused(capsys, "evaluate", release, *small(), "--out", "figures.json")
    assert "epsilon" in refused(capsys, "evaluate", release, *small(), "--epsilon", "0")
    assert "test, val, train, all, not 'some'" in refused(capsys, "evaluate", release, *small(), "--nodes", "some")
    assert "missing" in refused(capsys, "evaluate", "missing", *small())


def test_rows_in_another_order_are_another_split(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    """The split of training goes by rows: of the same nodes in another order it would measure some that it taught."""
    options = ["--data", str(tables), "--method", "gap", *QUICK]
    assert run(capsys, "train", *options, "--out", "made", "--json")[0] == 0
    assert "trained on" not in run(capsys, "evaluate", "made", "--data", str(tables))[2]
    nodes = pd.read_csv(tables / "nodes.csv")
    nodes[::-1].to_csv(tables / "nodes.csv", index=False)
    code, _, err = run(capsys, "evaluate", "made", "--data", str(tables))
    assert code == 0
    assert "some of its test nodes were trained on" in err


@pytest.mark.usefixtures("release")
def test_tables_are_read_by_the_schema_of_the_release(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    """Ranges and classes are those of training; figures on the labels that happen to be known are not given out."""
    nodes = pd.read_csv(tables / "nodes.csv")
    nodes.assign(height=[1000.0, *nodes["height"][1:]]).to_csv(tables / "nodes.csv", index=False)
    data = ["--data", str(tables), "--split", "50/10/40"]
    assert run(capsys, "report", "release", *data, "--private-figures", "--out", "page.html")[0] == 0
    assert "no graph (mlp)" in Path("page.html").read_text()
    nodes.assign(label=nodes["label"].replace("dog", "Dog")).to_csv(tables / "nodes.csv", index=False)
    assert "label 'Dog' is not in the class list (cat, dog)" in refused(capsys, "evaluate", "release", *data)
