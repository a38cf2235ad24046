"""``discreet predict``: within what the release covers, or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from discreet.cli.output import warn_of_ranges
from discreet.graph.datasets import load
from discreet.privacy.levels import NodeLevel
from discreet.release.load import load_release
from tests.cli.helpers import QUICK, refused, run


def test_one_row_per_node_with_the_users_own_names(
    capsys: pytest.CaptureFixture[str], tables: Path, release: Path
) -> None:
    data = ["--data", str(tables), "--undirected", "--threads", "1"]
    code, _, _ = run(capsys, "predict", str(release), *data, "--out", "predictions.csv")
    lines = Path("predictions.csv").read_text().splitlines()
    assert code == 0
    assert lines[0] == "id,prediction,probability_cat,probability_dog"
    first = lines[1].split(",")
    assert first[0] == "person-0"
    assert first[1] == ("cat", "dog")[float(first[3]) > float(first[2])]
    assert float(first[2]) + float(first[3]) == pytest.approx(1, abs=1e-4)
    assert len(lines) == 41


def predictions(capsys: pytest.CaptureFixture[str], tables: Path, *more: str) -> str:
    """What `predict` writes for these tables by the release beside them."""
    Path("p.csv").unlink(missing_ok=True)
    assert run(capsys, "predict", "release", "--data", str(tables), "--out", "p.csv", *more)[0] == 0
    return Path("p.csv").read_text()


def rewrite(tables: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Change the node table."""
    change(pd.read_csv(tables / "nodes.csv")).to_csv(tables / "nodes.csv", index=False)


@pytest.mark.usefixtures("release")
class TestNextMonth:
    def test_labels_are_not_needed(self, capsys: pytest.CaptureFixture[str], tables: Path) -> None:
        before = predictions(capsys, tables)
        rewrite(tables, lambda table: table.drop(columns="label"))
        assert predictions(capsys, tables) == before

    def test_class_names_are_those_of_the_release(self, capsys: pytest.CaptureFixture[str], tables: Path) -> None:
        before = predictions(capsys, tables)
        rewrite(tables, lambda table: table.assign(label=table["label"].map({"cat": "z-cat", "dog": "a-dog"})))
        assert predictions(capsys, tables) == before

    def test_the_order_of_columns_does_not_matter(self, capsys: pytest.CaptureFixture[str], tables: Path) -> None:
        before = predictions(capsys, tables)
        rewrite(tables, lambda table: table[["weight", "label", "height", "id"]])
        assert predictions(capsys, tables) == before

    def test_the_ranges_are_those_of_training(self, capsys: pytest.CaptureFixture[str], tables: Path) -> None:
        written = []
        for wild in (1000.0, 5000.0):  # beyond the range of training both are its end
            rewrite(tables, lambda table, wild=wild: table.assign(height=[wild, *table["height"][1:]]))
            written.append(predictions(capsys, tables, "--uncovered"))
        assert written[0] == written[1]

    def test_columns_missing_and_too_many(self, capsys: pytest.CaptureFixture[str], tables: Path) -> None:
        rewrite(tables, lambda table: table.rename(columns={"height": "tallness"}))
        err = refused(capsys, "predict", "release", "--data", str(tables), "--out", "p.csv")
        assert "lacks height" in err
        assert "has tallness" in err

    def test_the_hint_for_columns_that_are_too_many_works(
        self, capsys: pytest.CaptureFixture[str], tables: Path
    ) -> None:
        before = predictions(capsys, tables)
        rewrite(tables, lambda table: table.assign(score=1.0))
        err = refused(capsys, "predict", "release", "--data", str(tables), "--out", "q.csv")
        assert "has score beside (ignore them with --column ignore=NAME" in err
        assert predictions(capsys, tables, "--column", "ignore=score") == before
        options = ["--column", "ignore=score,height", "--out", "q.csv"]
        assert "lacks columns that the model was fitted on: height" in refused(
            capsys, "predict", "release", "--data", str(tables), *options
        )

    def test_some_nodes_some_classes_and_other_files(self, capsys: pytest.CaptureFixture[str], tables: Path) -> None:
        lines = predictions(capsys, tables, "--nodes", "person-7,person-3").splitlines()
        assert [line.split(",")[0] for line in lines] == ["id", "person-7", "person-3"]
        lines = predictions(capsys, tables, "--top", "1").splitlines()
        assert lines[0] == "id,class_1,probability_1"
        lines = predictions(capsys, tables, "--top", "5:dog").splitlines()
        chances = [float(line.split(",")[3]) for line in lines[1:]]
        assert len(chances) == 5
        assert chances == sorted(chances, reverse=True)
        assert run(capsys, "predict", "release", "--data", str(tables), "--out", "p.parquet")[0] == 0
        assert list(pd.read_parquet("p.parquet").columns) == ["id", "prediction", "probability_cat", "probability_dog"]

    def test_other_file_types_are_refused(self, capsys: pytest.CaptureFixture[str], tables: Path) -> None:
        for name in ("p.xlsx", "p.json"):
            err = refused(capsys, "predict", "release", "--data", str(tables), "--out", name)
            assert "written as .csv, .tsv or .parquet" in err

    def test_modes_follow_the_umask(self, capsys: pytest.CaptureFixture[str], tables: Path) -> None:
        old = os.umask(0o022)
        try:
            predictions(capsys, tables)
        finally:
            os.umask(old)
        assert Path("p.csv").stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            (["--nodes", "nobody"], "no node 'nobody'"),
            (["--nodes", "@nowhere.txt"], "nowhere.txt"),
            (["--top", "0"], "--top takes"),
            (["--top", "5:cow"], "no class 'cow'"),
            (["--schema", "schema.toml"], "its own schema"),
        ],
    )
    def test_bad_options(self, capsys: pytest.CaptureFixture[str], tables: Path, more: list[str], words: str) -> None:
        assert words in refused(capsys, "predict", "release", "--data", str(tables), "--out", "p.csv", *more)


def test_owners_get_a_file_each(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    data = ["--data", str(tables)]
    settings = ["--method", "mlp", "--set", "inference=own-hop", *QUICK]
    assert run(capsys, "train", *data, *settings, "--out", "release")[0] == 0
    arguments = ["predict", "release", *data, "--audience", "owner"]
    code, _, err = run(capsys, *arguments, "--out", "p.csv")
    assert code == 0
    assert "40 rows" in err
    assert "--per-owner" in err
    code, _, err = run(capsys, *arguments, "--out", "rows", "--per-owner")
    assert (code, err) == (0, "")
    assert len(list(Path("rows").iterdir())) == 40
    assert Path("rows/person-3.csv").read_text().splitlines()[1].startswith("person-3,")
    ranked = [*arguments, "--out", "ranked", "--per-owner", "--top", "5:dog"]
    assert "compares nodes with one another" in refused(capsys, *ranked)
    assert run(capsys, *ranked, "--uncovered")[0] == 0
    assert len(list(Path("ranked").iterdir())) == 5


def test_a_release_moves_to_the_device_that_is_asked_for(
    capsys: pytest.CaptureFixture[str], tables: Path, release: Path
) -> None:
    arguments = ["predict", str(release), "--data", str(tables), "--undirected"]
    for device in ("cpu", "cpu:0"):
        assert run(capsys, *arguments, "--device", device, "--out", f"{device}.csv")[0] == 0
    assert Path("cpu:0.csv").read_text() == Path("cpu.csv").read_text()


def test_another_graph_is_uncovered(capsys: pytest.CaptureFixture[str], tables: Path, release: Path) -> None:
    rows = (tables / "nodes.csv").read_text().replace("person-0,", "person-0,9")
    (tables / "nodes.csv").write_text(rows)
    arguments = ["predict", str(release), "--data", str(tables), "--undirected", "--out", "p.csv"]
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "no stage paid for" in err
    assert "give it to train with --also, or use discreet extend" in err
    assert "--uncovered" in err
    assert "=True" not in err
    assert not Path("p.csv").exists()
    assert run(capsys, *arguments, "--uncovered")[0] == 0


def test_missing_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere" in refused(capsys, "predict", "nowhere", "--data", "csbm", "--out", "p.csv")


def test_existing_output_is_never_touched(capsys: pytest.CaptureFixture[str], release: Path) -> None:
    Path("p.csv").write_text("precious")
    assert "p.csv" in refused(capsys, "predict", str(release), "--data", "csbm", "--out", "p.csv")
    assert Path("p.csv").read_text() == "precious"


def test_a_device_that_is_not_there(capsys: pytest.CaptureFixture[str], release: Path) -> None:
    arguments = ["predict", str(release), "--data", "csbm", "--out", "p.csv"]
    assert "toaster" in refused(capsys, *arguments, "--device", "toaster")


def test_a_column_in_other_units_is_named(capsys: pytest.CaptureFixture[str], tables: Path, release: Path) -> None:
    """Where features are public; a release at node level says nothing of private ones."""
    table = pd.read_csv(tables / "nodes.csv")
    (table.assign(height=5 + 100 * table["height"].abs())).to_csv(tables / "nodes.csv", index=False)
    arguments = ["predict", str(release), "--data", str(tables), "--undirected", "--public-graph"]
    code, _, err = run(capsys, *arguments, "--out", "p.csv")
    assert code == 0
    assert re.search(r"warning: column 'height': \d+% of the cells are \S+ or above, .* same units", err)
    assert "weight" not in err
    warn_of_ranges(load(str(tables), schema=load_release(release).schema_), NodeLevel())
    assert capsys.readouterr().err == ""
