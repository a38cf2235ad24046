"""What went wrong when a person first brought their own tables, and must not again; and what bad tables are told.

Of the eight things that went wrong, those that are not here have a test beside what they are about: class names,
missing labels and the order of columns in ``test_predict.py``, lists of classes and features in ``test_data.py``,
options of ``tune`` in ``test_tune.py``, next month in ``test_extend.py``, ids of two types in
``tests/graph/test_convert.py``, PyG data in ``tests/methods/test_other_libraries.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.bench.graphs import canonical, graph_of
from discreet.graph import load, save_npz
from tests.cli.helpers import QUICK, refused, run

ROWS = 300


@pytest.fixture
def bank() -> Path:
    """Accounts of which one in twelve is fraud, told by age and by amounts over several powers of ten."""
    rng = np.random.default_rng(0)
    fraud = np.arange(ROWS) % 12 == 0
    nodes = pd.DataFrame(
        {
            "account": [f"a{row}" for row in range(ROWS)],
            "age": np.round(np.where(fraud, 30, 50) + 8 * rng.standard_normal(ROWS)),
            "balance": np.round(np.exp(np.where(fraud, 6, 10) + 1.5 * rng.standard_normal(ROWS)), 2),
            "label": np.where(fraud, "fraud", "legit"),
        }
    )
    ends = rng.choice(ROWS, size=(600, 2))
    edges = pd.DataFrame({"payer": nodes["account"][ends[:, 0]].array, "payee": nodes["account"][ends[:, 1]].array})
    folder = Path("bank")
    folder.mkdir()
    nodes.to_csv(folder / "nodes.csv", index=False)
    edges.assign(amount=rng.integers(1, 900, 600), day="2024-06-01").to_csv(folder / "edges.csv", index=False)
    return folder


def rewrite(folder: Path, name: str = "nodes", **columns: object) -> None:
    table = pd.read_csv(folder / f"{name}.csv")
    table.assign(**columns).to_csv(folder / f"{name}.csv", index=False)


# -------------------------------------------------------------------- what went wrong


@pytest.mark.parametrize("method", [discreet.MLPClassifier, discreet.HopBayes])
def test_columns_of_any_unit_are_scaled(bank: Path, method: type[discreet.NodeClassifier]) -> None:
    """Raw columns of years and euros gave a network AUC 0.57 where scaled ones give 0.93."""
    graph = discreet.split(load(str(bank)), "60/20/20", 0)
    nodes = pd.read_csv(bank / "nodes.csv")
    raw = graph.with_features(nodes[["age", "balance"]].to_numpy(dtype=np.float32))
    privacy = discreet.Privacy(discreet.EdgeLevel(), 1.0)
    model = method(privacy, insecure_noise_seed=0)
    default, plain = (model.fit(given).score(given, metric="roc-auc") for given in (graph, raw))
    assert default > 0.85
    assert default > plain + 0.05


def test_an_accuracy_that_finds_no_fraud_is_not_printed_as_success(
    capsys: pytest.CaptureFixture[str], bank: Path
) -> None:
    code, out, _ = run(capsys, "train", "--data", str(bank), "--method", "mlp", "--set", "epochs=1")
    assert code == 0
    for words in (
        "classes are never predicted on the test nodes: fraud",
        "commonest class throughout",
        "ROC-AUC",
        "PR-AUC",
    ):
        assert words in out, out


def test_every_column_of_edges_that_is_left_out_is_named(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    _, _, err = run(capsys, "train", "--data", str(bank), "--method", "mlp", *QUICK, "--json")
    assert "columns that are not read: amount, day of the edges table" in err


def test_numbers_with_fractions_are_no_classes(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    rewrite(bank, label=np.arange(ROWS) / 7)
    assert "label" in refused(capsys, "train", "--data", str(bank))


def test_categories_and_missing_values_have_a_meaning(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    ages = pd.read_csv(bank / "nodes.csv")["age"].where(np.arange(ROWS) % 5 > 0)
    rewrite(bank, country=np.array(["NL", "BE", "DE"])[np.arange(ROWS) % 3], age=ages)
    code, out, _ = run(capsys, "data", str(bank), "--json")
    assert code == 0
    becomes = {row["column"]: row["becomes"] for row in json.loads(out)["rows"]}
    assert "one column each for BE, DE, NL" in becomes["country"]
    assert "missing has a column" in becomes["age"]


def test_labels_that_the_schema_names_and_the_table_lacks_are_named(
    capsys: pytest.CaptureFixture[str], bank: Path
) -> None:
    (bank / "schema.toml").write_text('[nodes]\nlabel = "state"\n')
    assert "column 'state'" in refused(capsys, "train", "--data", str(bank))


def test_what_a_setting_should_be_is_said_of_the_part_that_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "train", "--method", "mlp", "--set", 'class_weight={"fraud": -1}')
    assert "class_weight should be greater than 0, not -1" in told
    assert "hidden should be a whole number" in refused(capsys, "train", "--method", "mlp", "--set", "hidden=x")
    assert "--threshold is balanced-accuracy" in refused(capsys, "train", "--method", "mlp", "--threshold", "roc-auc")


def test_a_folder_is_an_undirected_graph_everywhere(bank: Path) -> None:
    assert not load(str(bank)).directed
    assert not graph_of(str(bank.resolve()), 0, None).directed
    assert canonical("bank") == "bank"
    assert graph_of("bank", 0, None).num_nodes == ROWS


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ('[nodes]\nlabel = "status"\n[columns.salary]\nkind = "numeric"\nrange = [0, 1]\n', "it lacks salary"),
        ('[columns.age]\nkind = "boolean"\n[columns.balance]\nkind = "as-is"\n', "age"),
        ('[nodes]\nclasses = ["legit"]\n', "fraud"),
        ('[columns.age]\nkind = "category"\ncategories = ["young"]\n[columns.balance]\nkind = "as-is"\n', "age"),
    ],
)
def test_a_schema_that_contradicts_the_table(
    capsys: pytest.CaptureFixture[str], bank: Path, schema: str, words: str
) -> None:
    (bank / "schema.toml").write_text(schema)
    assert words in refused(capsys, "train", "--data", str(bank), "--out", "release")


def test_a_category_that_nobody_has_seen(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    """Refused next month, or one of the others where the schema says so."""
    rewrite(bank, country=np.array(["NL", "BE"])[np.arange(ROWS) % 2])
    for other, known in (("false", False), ("true", True)):
        (bank / "schema.toml").write_text(
            f'[columns.country]\nkind = "category"\ncategories = ["NL", "BE"]\nother = {other}\n'
            '[columns.age]\nkind = "numeric"\nrange = [0, 100]\n[columns.balance]\nkind = "numeric"\nrange = [0, 1e6]\n'
        )
        release = f"release-{other}"
        train = ["train", "--data", str(bank), "--method", "mlp", *QUICK, "--out", release, "--json"]
        assert run(capsys, *train)[0] == 0
        before = (bank / "nodes.csv").read_text()
        rewrite(bank, country=np.array(["NL", "XX"])[np.arange(ROWS) % 2])
        predict = ["predict", release, "--data", str(bank), "--out", f"{release}.csv"]
        if known:
            assert run(capsys, *predict)[0] == 0
        else:
            assert "XX" in refused(capsys, *predict)
        (bank / "nodes.csv").write_text(before)


def test_ids_that_stand_twice(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    rewrite(bank, account=["a1", *(f"a{row}" for row in range(1, ROWS))])
    assert "stands more than once" in refused(capsys, "train", "--data", str(bank), "--out", "release")


def test_weights_for_a_class_that_is_none(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    options = ["--set", 'class_weight={"fruad": 3}', "--out", "release"]
    for method in ("mlp", "gap", "hop-bayes", "dpdgc"):
        told = refused(capsys, "train", "--data", str(bank), "--method", method, *options)
        assert "class_weight names the class 'fruad'; the classes are" in told


# -------------------------------------------------------------------- which nodes are trained on


def marked(folder: Path) -> list[str]:
    """The bank with a column that says which nodes are for training; 150, 60 and 90 of them."""
    rewrite(folder, split=["train"] * 150 + ["val"] * 60 + ["test"] * 90)
    return ["--data", str(folder), "--method", "mlp", "--set", "epochs=1"]


def test_a_column_of_splits_is_the_split(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    """It was shown as read, and then replaced by 75/10/15: nodes that were marked as test were trained on."""
    code, out, _ = run(capsys, "train", *marked(bank), "--out", "made", "--json")
    assert (code, json.loads(out)["split"]) == (0, "own")
    _, out, err = run(capsys, "evaluate", "made", "--data", str(bank), "--json")
    assert sum(map(sum, json.loads(out)["confusion"]["test"])) == 90
    assert "warning" not in err
    code, out, err = run(capsys, "train", *marked(bank), "--split", "60/20/20")
    assert (code, "(180 train, 60 val, 60 test)" in out) == (0, True)
    assert "bank brings a split of its own, which --split 60/20/20 replaces" in err


def test_a_release_is_measured_on_the_split_of_its_training(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    """With another seed or split than the defaults most nodes of ``evaluate`` had been trained on."""
    options = ["--data", str(bank), "--method", "mlp", "--set", "epochs=1", "--seed", "3", "--split", "50/25/25"]
    _, out, _ = run(capsys, "train", *options, "--out", "made", "--json")
    stated = json.loads(out)["confusion"]
    _, out, err = run(capsys, "evaluate", "made", "--data", str(bank), "--json")
    assert (json.loads(out)["confusion"], "trained on" in err) == (stated, False)
    _, _, err = run(capsys, "evaluate", "made", "--data", str(bank), "--seed", "4")
    assert "was trained on split 50/25/25 of seed 3" in err


def test_next_month_has_no_split_of_its_own(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    run(capsys, "train", *marked(bank), "--out", "made")
    nodes = pd.read_csv(bank / "nodes.csv").drop(columns="split")
    nodes.to_csv(bank / "nodes.csv", index=False)
    assert "--nodes all" in refused(capsys, "evaluate", "made", "--data", str(bank))
    code, out, _ = run(capsys, "evaluate", "made", "--data", str(bank), "--nodes", "all", "--json")
    assert (code, sum(map(sum, json.loads(out)["confusion"]["all"]))) == (0, ROWS)
    nodes.drop(columns="label").to_csv(bank / "nodes.csv", index=False)
    assert "nothing to measure; discreet predict needs none" in refused(capsys, "evaluate", "made", "--data", str(bank))


# -------------------------------------------------------------------- words


def test_weights_without_a_whole_edge_say_so(capsys: pytest.CaptureFixture[str], bank: Path) -> None:
    """Amounts as weights were all clipped to 1, without a word."""
    options = ["--data", str(bank), "--method", "mlp", "--set", "epochs=1", "--column", "weight=amount"]
    _, _, err = run(capsys, "train", *options)
    assert "1 and more is a whole edge, unless --column full_weight=NUMBER says what is" in err
    _, _, err = run(capsys, "train", *options, "--column", "full_weight=500")
    assert "with weights, 500 being a whole edge" in err


def test_large_numbers_that_nobody_scaled_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Tables are scaled when they are read; a matrix passes as it is."""
    graph = discreet.csbm(num_nodes=60, seed=0)
    columns = graph.features * np.where(np.arange(graph.num_features) == 3, 1e6, 1.0)
    save_npz(graph.with_features(columns), Path("wild.npz"))
    save_npz(graph, Path("tame.npz"))
    options = ["--method", "mlp", "--set", "epochs=1"]
    code, _, err = run(capsys, "train", "--data", "wild.npz", *options)
    assert (code, "features in columns 3 are large numbers" in err) == (0, True)
    assert "large numbers" not in run(capsys, "train", "--data", "tame.npz", *options)[2]
    node = ["--method", "dp-mlp", "--level", "node", "--set", "steps=2"]  # features are private: nothing is looked at
    assert "large numbers" not in run(capsys, "train", "--data", "wild.npz", *node)[2]


def test_thresholds_have_one_name_in_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "train", "--level", "node:owned,max_degree=5", "--threshold", "macro-f1")
    assert "--threshold reads validation labels" in said
    assert "decide_by" not in said
