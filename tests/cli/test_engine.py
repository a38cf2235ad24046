"""``--engine dask``, and partitions on the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discreet.graph import Graph, save_npz
from discreet.graph.partition_writer import write_graph
from discreet.graph.synthetic import csbm
from discreet.release.load import load_release
from tests.cli.helpers import QUICK, refused, run, small_graph_file

pytest.importorskip("pyarrow")
MODEL = ["--method", "gap", "--level", "edge", "--epsilon", "4", *QUICK, "--set", "insecure_noise_seed=1"]


@pytest.fixture
def parts(capsys: pytest.CaptureFixture[str]) -> str:
    code, out, _ = run(capsys, "data", "convert", small_graph_file(), "--out", "parts", "--partitions", "3", "--json")
    assert code == 0
    assert json.loads(out) == {"data": "csbm", "nodes": 120, "partitions": 3, "out": "parts"}
    return "parts"


def test_workers_give_the_release_of_this_process(capsys: pytest.CaptureFixture[str], parts: str) -> None:
    pytest.importorskip("distributed")
    results = []
    for name, options in (("here", []), ("there", ["--engine", "dask", "--workers", "1"])):
        code, out, err = run(capsys, "train", "--data", parts, *MODEL, *options, "--out", name, "--json")
        assert code == 0, err
        results.append(json.loads(out))
    assert results[0]["accuracy"] == results[1]["accuracy"]
    assert Path("here/weights.safetensors").read_bytes() == Path("there/weights.safetensors").read_bytes()
    assert load_release("here").certificate_ == load_release("there").certificate_
    assert not list(Path(parts).glob(".*"))  # no scratch is left

    for out_path in ("predictions", "predictions.csv"):
        code, _, err = run(capsys, "predict", "there", "--data", parts, "--out", out_path)
        assert code == 0, err
    tables = [pd.read_parquet(path) for path in sorted(Path("predictions").iterdir())]
    assert [len(table) for table in tables] == [40, 40, 40]
    whole = pd.read_csv("predictions.csv", dtype={"prediction": str})
    assert pd.concat(tables)["prediction"].tolist() == whole["prediction"].tolist()


def test_no_figures_where_predictions_read_edges(capsys: pytest.CaptureFixture[str], parts: str) -> None:
    pytest.importorskip("distributed")
    options = ["--method", "gcon-ssp", "--epsilon", "4", "--set", "epochs=1", "--engine", "dask", "--workers", "1"]
    code, out, err = run(capsys, "train", "--data", parts, *options, "--out", "release", "--json")
    assert code == 0, err
    assert json.loads(out)["accuracy"] is None
    assert "lie in partitions" in json.loads(out)["note"]


def test_what_cannot_be_is_refused(capsys: pytest.CaptureFixture[str], parts: str) -> None:
    train = ["train", "--data", parts, *MODEL]
    assert "--engine is local or dask" in refused(capsys, *train, "--engine", "spark")
    assert "go with --engine dask" in refused(capsys, *train, "--workers", "2")
    assert "reads a folder of partitions" in refused(capsys, "train", "--data", "csbm", *MODEL, "--engine", "dask")
    assert "say these to discreet data convert" in refused(capsys, *train, "--engine", "dask", "--undirected")
    assert "needs --out FOLDER and --partitions" in refused(capsys, "data", "convert", "csbm")
    assert "takes one graph" in refused(capsys, "data", "convert")
    assert "go with convert" in refused(capsys, "data", "csbm", "--partitions", "2")
    assert "from 1 to 100000" in refused(capsys, "data", "convert", "csbm", "--out", "x", "--partitions", "0")
    assert "exists already" in refused(capsys, "data", "convert", "csbm", "--out", parts, "--partitions", "2")


def test_a_method_without_a_block_form_is_refused(capsys: pytest.CaptureFixture[str], parts: str) -> None:
    pytest.importorskip("distributed")
    options = ["--method", "dpgcn", "--epsilon", "4", "--engine", "dask", "--workers", "1"]
    assert "asks for more than sums over edges" in refused(capsys, "train", "--data", parts, *options)


@pytest.mark.parametrize(
    "options",
    [
        ["--method", "hop-bayes"],
        ["--method", "auto", "--level", "node:owned,max_degree=4"],
        ["--method", "gap", "--split", "20/20/20"],
        ["--method", "hop-bayes", "--threshold", "macro-f1"],
    ],
)
def test_a_plan_needs_the_manifest_alone(capsys: pytest.CaptureFixture[str], parts: str, options: list[str]) -> None:
    """The plan of the whole graph, though no edge can be read; nor any node, where nothing is chosen by labels."""
    code, whole, err = run(capsys, "plan", "--data", small_graph_file(), *options, "--json")
    assert code == 0, err
    reads_labels = "--split" in options or "--threshold" in options
    for path in Path(parts).glob("edges-*" if reads_labels else "*.parquet"):
        path.unlink()
    code, outlined, err = run(capsys, "plan", "--data", parts, *options, "--json")
    assert code == 0, err
    assert json.loads(outlined) == json.loads(whole)


def test_a_plan_from_the_manifest_takes_every_class_to_occur(capsys: pytest.CaptureFixture[str]) -> None:
    """Class numbers that were read off labels are refused where most never occur; no label is read here."""
    ends, features = np.arange(60), np.zeros((60, 3), dtype=np.float32)
    graph = Graph.from_edges(ends, np.roll(ends, 1), features, ends % 5, directed=False)
    assert graph.inferred
    write_graph(graph, Path("five"), 2)
    save_npz(graph, Path("five.npz"))
    options = ["--method", "gap", "--epsilon", "2", "--json"]
    plans = [run(capsys, "plan", "--data", data, *options) for data in ("five.npz", "five")]
    assert [code for code, _, _ in plans] == [0, 0], plans[1][2]
    assert json.loads(plans[0][1]) == json.loads(plans[1][1])


@pytest.mark.parametrize("options", [[], ["--split", "ogb"]])
def test_a_plan_from_partitions_has_the_split_of_the_benchmark(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """The sizes of its parts decide the noise, at a level that protects labels too."""
    graph = csbm(num_nodes=60, num_features=3)
    graph = replace(graph, named_splits=[("ogb", np.repeat([1, 2, 3], [40, 8, 12]))])
    write_graph(graph, Path("ranked"), 2)
    save_npz(graph, Path("ranked.npz"))
    given = ["--method", "dp-mlp", "--level", "node", "--epsilon", "2", *options, "--json"]
    plans = [run(capsys, "plan", "--data", data, *given) for data in ("ranked.npz", "ranked")]
    assert [code for code, _, _ in plans] == [0, 0], plans[1][2]
    assert json.loads(plans[0][1]) == json.loads(plans[1][1])
    other = run(capsys, "plan", "--data", "ranked", *given[:-1], "--split", "75/10/15", "--json")[1]
    assert json.loads(plans[0][1])["stages"] != json.loads(other)["stages"]
