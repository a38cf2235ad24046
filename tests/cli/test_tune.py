"""``discreet tune``: it reads data and method as train does. The search itself is tested in tests/tuning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import refused, run

FREE = ["--method", "mlp", "--set", "epochs=1", "--search", "hidden=4,6"]


def test_it_takes_the_options_of_train(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    nodes = tables / "nodes.csv"
    nodes.write_text(nodes.read_text().replace("label", "kind", 1))
    data = ["--data", str(tables), "--undirected", "--column", "label=kind", "--split", "60/20/20", "--seed", "3"]
    compute = ["--device", "cpu", "--threads", "1"]
    code, out, err = run(capsys, "tune", *data, *compute, *FREE, "--delta", "1e-4", "--out", "won", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["method"] == "mlp"
    assert found["level"] == "edge"
    assert found["epsilon"] == 4
    assert found["delta"] == 1e-4
    assert found["release"] == "won"
    assert len(found["tried"]) == 2


def test_it_writes_its_options_and_measures_mlp_beside(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [*FREE, "--metric", "roc-auc", "--beside-mlp", "--save-config", "run.toml"]
    code, out, err = run(capsys, "tune", *asked, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert 0.5 < found["mlp_test_score"] <= 1
    again = json.loads(run(capsys, "tune", "--config", "run.toml", "--json")[1])
    assert again == found


def test_it_says_why_it_lacks_two_options_of_train(capsys: pytest.CaptureFixture[str]) -> None:
    assert "charged for both graphs" in refused(capsys, "tune", *FREE, "--also", "csbm")
    assert "discreet train has it" in refused(capsys, "tune", *FREE, "--engine", "dask")
    node = ["--method", "dp-mlp", "--level", "node", "--search", "hidden=4,6"]
    assert "leave --beside-mlp out" in refused(capsys, "tune", *node, "--beside-mlp")


def test_auto_names_the_method_to_search(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--level", "none", "--set", "epochs=1", "--search", "hidden=4,6", "--json"]
    code, out, err = run(capsys, "tune", *arguments)
    assert code == 0, err
    found = json.loads(out)
    assert found["method"] == found["recommendation"]["method"] == "hop-bayes"


def test_bad_options_get_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert "toaster" in refused(capsys, "tune", *FREE, "--device", "toaster")
    assert "ROLE=NAME" in refused(capsys, "tune", *FREE, "--column", "id")
    assert "hidden" in refused(capsys, "tune", "--method", "mlp", "--search", "hiden=4,6")
    Path("taken").mkdir()
    assert "taken" in refused(capsys, "tune", *FREE, "--out", "taken")


def test_another_metric_where_asking_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "tune", *FREE, "--metric", "roc-auc", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["metric"] == "roc-auc"
    assert found["val_score"] == max(trial["val_score"] for trial in found["tried"])
    assert found["test_score"] != found["test_accuracy"]
    assert "metric must be one of" in refused(capsys, "tune", *FREE, "--metric", "auc")
    charged = ["--method", "dp-mlp", "--level", "node", "--search", "hidden=4,6", "--metric", "macro-f1"]
    assert "search by accuracy" in refused(capsys, "tune", *charged)
