"""``discreet data``: the graphs that have a name, and an account of your own tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discreet.graph import load
from tests.cli.helpers import QUICK, refused, run


def test_it_lists_the_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "data")
    assert code == 0
    assert "cora" in out
    assert "ogbn_arxiv/raw/edge.csv.gz" in out  # what to put where
    assert "Facebook100/School/raw/School.mat" in out
    code, out, _ = run(capsys, "data", "--json")
    assert code == 0
    assert set(json.loads(out)["rows"][0]) == {"name", "nodes", "edges", "features", "classes", "status", "wanted"}


def test_a_graph_with_a_name_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "data", "csbm")
    assert code == 0
    assert out.startswith("csbm: 2000 nodes, undirected edges\n\n100 features as they are, 2 classes")
    assert "there is no file or folder at" in refused(capsys, "data", "csbn")


def test_every_column_of_a_folder_is_accounted_for(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    edges = pd.read_csv(tables / "edges.csv")
    edges.assign(amount=3.5, date="2024-06-01").to_csv(tables / "edges.csv", index=False)
    nodes = pd.read_csv(tables / "nodes.csv")
    nodes.assign(story=[f"long text {place}" * 3 for place in range(40)]).to_csv(tables / "nodes.csv", index=False)
    code, out, _ = run(capsys, "data", str(tables), "--json")
    rows = {(row["table"], row["column"]): row for row in json.loads(out)["rows"]}
    assert code == 0
    assert {name for _, name in rows} == {*nodes.columns, "story", *edges.columns, "amount", "date"}
    assert rows["nodes", "height"]["read as"] == "numeric"
    assert "from " in rows["nodes", "height"]["becomes"]
    assert rows["nodes", "label"]["becomes"] == "classes cat, dog"
    assert rows["edges", "amount"]["read as"] == "ignore"


def test_statistics_are_shown_where_they_are_public(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    code, out, _ = run(capsys, "data", str(tables), "--level", "node")
    assert code == 0
    assert out.count("to be declared") == 3
    assert "numeric" not in out  # kinds are read off cells too
    assert "cat, dog" not in out


def test_one_cell_does_not_change_what_is_said_of_undeclared_columns(
    capsys: pytest.CaptureFixture[str], tables: Path
) -> None:
    """A word, or a value that nobody else has, makes other kinds of columns: at level node nothing may tell."""
    said, nodes = [], pd.read_csv(tables / "nodes.csv")
    for pets in ("2", "many", "", "1e300"):
        nodes.assign(pets=[pets, *(str(place % 3) for place in range(39))]).to_csv(tables / "nodes.csv", index=False)
        shown = run(capsys, "data", str(tables), "--level", "node")
        plan = ["plan", "--data", str(tables), "--method", "dp-mlp", "--level", "node"]
        said.append([shown, run(capsys, *plan), run(capsys, *plan, "--column", "classes=cat,dog")])
    assert said == [said[0]] * 4


def test_a_draft_is_read_back_and_makes_node_level_possible(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    node = ["train", "--data", str(tables), "--method", "dp-mlp", "--level", "node", "--set", "steps=1"]
    assert "--column classes=" in refused(capsys, *node)
    assert "[columns.height]" in refused(capsys, *node, "--column", "classes=cat,dog")
    code, _, err = run(capsys, "data", str(tables), "--write-schema", str(tables / "schema.toml"))
    assert code == 0
    assert "public knowledge" in err
    assert run(capsys, *node)[0] == 0
    assert "exists" in refused(capsys, "data", str(tables), "--write-schema", str(tables / "schema.toml"))


def test_lists_of_classes_and_features(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    code, out, _ = run(capsys, "data", str(tables), "--column", "classes=dog,cat,cow", "--column", "features=weight")
    assert code == 0
    assert "classes dog, cat, cow" in out
    for given in (["features=height,weight"], ["features=height", "features=weight"]):
        more = [part for text in given for part in ("--column", text)]
        code, out, _ = run(capsys, "data", str(tables), "--json", *more)
        kinds = {row["column"]: row["read as"] for row in json.loads(out)["rows"]}
        assert kinds["height"] == kinds["weight"] == "numeric"


def test_edges_up_to_a_date(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    edges = pd.read_csv(tables / "edges.csv")
    days = ["2024-06-01T10:00", "2024-06-30T23:59", *["2024-07-01"] * (len(edges) - 2)]
    edges.assign(when=days).to_csv(tables / "edges.csv", index=False)
    graph = load(str(tables), time="when", edges_until="2024-06-30")
    assert graph.num_edges == 2
    assert graph.schema.edges_ignored == ()
    assert load(str(tables)).num_edges == len(edges)
    data = ["data", str(tables), "--edges-until"]
    assert "no column of times" in refused(capsys, *data, "2024-06-30")
    for until in ("soon", "01.06.2024", "06/01/2024", "2024-06"):  # of which pandas would read the last three, somehow
        assert "must be a date" in refused(capsys, *data, until, "--column", "time=when")
    code, _, err = run(capsys, *data, "2023-06-30", "--column", "time=when")
    assert (code, "no edge of the table is from '2023-06-30'" in err) == (0, True)  # edges may be private
    edges.assign(when=["never", *days[1:]]).to_csv(tables / "edges.csv", index=False)
    assert "holds 'never' in row 0" in refused(capsys, *data, "2024-06-30", "--column", "time=when")


def test_weights_are_refused_or_left_out_by_name(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    edges = pd.read_csv(tables / "edges.csv")
    edges.assign(weight=0.5).to_csv(tables / "edges.csv", index=False)
    assert "--column weights=ignore" in refused(capsys, "train", "--data", str(tables))
    assert "train wants --column weight=weight" in run(capsys, "data", str(tables))[1]
    assert "train wants" not in run(capsys, "data", str(tables), "--column", "weights=ignore")[1]
    (tables / "schema.toml").write_text('[edges]\nignore = ["weight"]\n')
    assert run(capsys, "data", str(tables))[0] == 0
    (tables / "schema.toml").write_text('[edges]\nweight = "weight"\n')
    refusal = refused(capsys, "train", "--data", str(tables), "--method", "gcon")
    assert "gcon does not take edges with weights" in refusal


def test_weights_travel_with_a_release(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    """Trained, checked, predicted with and extended by tables that have the column; without it they are refused."""
    edges = pd.read_csv(tables / "edges.csv")
    edges.assign(amount=np.arange(len(edges)) * 10).to_csv(tables / "edges.csv", index=False)
    how = ["--column", "weight=amount", "--column", "full_weight=500", "--method", "gap", *QUICK]
    code, _, err = run(capsys, "train", "--data", str(tables), *how, "--out", "release", "--json")
    assert code == 0, err
    assert "undirected, with weights" in err
    assert run(capsys, "verify", "release")[0] == 0
    assert run(capsys, "predict", "release", "--data", str(tables), "--out", "told.csv")[0] == 0
    october = shutil.copytree(tables, Path("october"))
    nodes = pd.read_csv(october / "nodes.csv")
    nodes.assign(height=nodes["height"] + 1).to_csv(october / "nodes.csv", index=False)
    extended = run(capsys, "extend", "release", "--data", str(october), "--epsilon", "1", "--out", "further")
    assert extended[0] == 0, extended[2]
    assert run(capsys, "verify", "further")[0] == 0
    edges.to_csv(october / "edges.csv", index=False)
    told = refused(capsys, "extend", "release", "--data", str(october), "--epsilon", "1", "--out", "more")
    assert "no column 'amount'" in told


def test_what_looks_like_an_oversight_is_said_where_tables_are_public(
    capsys: pytest.CaptureFixture[str], tables: Path
) -> None:
    nodes = pd.read_csv(tables / "nodes.csv")
    labels = [name.upper() if place == 3 else name for place, name in enumerate(nodes["label"])]
    labels[4:6] = ["unknown", "nan"]  # the second is what pandas makes of an empty cell that became text
    odd = {"answer": [{"cat": "yes", "dog": "no"}[name] for name in nodes["label"]], "one": 7, "none": None}
    mixed = ["m" if place % 5 else "M" for place in range(len(nodes))]
    nodes.assign(label=labels, sex=mixed, **odd).to_csv(tables / "nodes.csv", index=False)
    code, out, _ = run(capsys, "data", str(tables))
    assert code == 0
    assert "classes that differ in upper and lower case alone: 'DOG' and 'dog'" in out
    assert "categories of column 'sex' that differ in upper and lower case alone: 'M' and 'm'" in out
    assert "read as classes: unknown; leave a cell empty" in out
    assert "column 'one' holds one value throughout" in out
    assert "column 'none' holds no value at all" in out
    assert "warning" not in run(capsys, "data", str(tables), "--level", "node")[1]
    nodes.assign(sex=mixed, **odd).to_csv(tables / "nodes.csv", index=False)
    telling = "column 'answer' alone tells the class of every labelled node"
    assert telling in run(capsys, "data", str(tables))[1]
    assert "column 'sex' alone" not in run(capsys, "data", str(tables))[1]
    assert telling in run(capsys, "train", "--data", str(tables), "--method", "mlp", *QUICK)[2]


def test_a_column_that_training_would_refuse_says_what_to_do(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    nodes = pd.read_csv(tables / "nodes.csv")
    nodes = pd.concat([nodes] * 3, ignore_index=True)
    texts = {"id": [f"p{place}" for place in range(120)], "story": [f"text {place}" for place in range(120)]}
    nodes.assign(**texts).to_csv(tables / "nodes.csv", index=False)
    (tables / "edges.csv").write_text("source,target\np1,p2\n")
    code, out, _ = run(capsys, "data", str(tables))
    assert code == 0
    assert "train wants --column ignore=story" in out
    assert "--column ignore=story" in refused(capsys, "train", "--data", str(tables))
    assert "train wants" not in run(capsys, "data", str(tables), "--column", "ignore=story")[1]


def test_cells_of_several_lines_and_control_characters_keep_to_their_line(
    capsys: pytest.CaptureFixture[str], tables: Path
) -> None:
    nodes = pd.read_csv(tables / "nodes.csv")
    words = ["sick;\noften away" if place % 2 else "\x1b[31mred" for place in range(len(nodes))]
    nodes.assign(remark=words).to_csv(tables / "nodes.csv", index=False)
    code, out, _ = run(capsys, "data", str(tables))
    assert code == 0
    assert "sick;\\noften away" in out
    assert "\x1b" not in out


def test_labels_of_one_class_are_noticed(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    nodes = pd.read_csv(tables / "nodes.csv")
    nodes.assign(label="cat").to_csv(tables / "nodes.csv", index=False)
    assert "every label is 'cat': there is nothing to tell apart" in run(capsys, "data", str(tables))[1]
