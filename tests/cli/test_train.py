"""``discreet train``: what it reports, releases, refuses and leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import QUICK, refused, run
from tests.data_root import DATA_ROOT, needs_data


def test_it_reports_what_it_fitted_and_spent(trained: tuple[dict[str, Any], str]) -> None:
    result, err = trained
    assert "plan for gap" in err
    assert result["method"] == "gap"
    assert result["level"] == "edge"
    assert result["epsilon_spent"] <= result["epsilon"] == 4
    assert set(result["accuracy"]) == {"train", "val", "test"}
    assert result["covers"] == "weights+predictions"
    assert result["release"].endswith("release")
    assert list(result) == [
        *("data", "method", "level", "epsilon", "delta", "epsilon_spent", "accounting", "verified"),
        *("classes", "accuracy", "balanced_accuracy", "micro_f1", "macro_f1", "roc_auc", "pr_auc", "majority"),
        *("by_class", "confusion", "warnings", "note"),
        *("seconds", "peak_rss_mb", "covers", "seed", "split", "release", "ledger"),
    ]
    assert "covers them" in result["note"]


def test_figures_are_readable(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "train", *QUICK)
    assert code == 0
    for words in ("the commonest class throughout", "balanced accuracy", "ROC-AUC", "precision", "true class"):
        assert words in out


def test_mlp_stands_beside_the_model_where_it_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "train", "--method", "gap", *QUICK, "--beside-mlp")
    assert code == 0
    assert out.count("mlp, on features alone") == 5  # under each score
    told = refused(capsys, "train", "--method", "gap", "--level", "node", "--beside-mlp")
    assert "level node protects them" in told


def test_private_labels_are_not_shown_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    private = ["train", "--method", "gap", "--level", "node", "--set", "steps=1", "--set", "head_steps=1"]
    code, out, _ = run(capsys, *private)
    assert code == 0
    assert "for the holder's eyes" in out
    assert "recall" not in out
    code, out, _ = run(capsys, *private, "--private-figures")
    assert code == 0
    assert "recall" in out
    assert "for the holder's eyes" in out


def test_the_card_says_what_is_protected(release: Path) -> None:
    assert "one undirected edge" in (release / "card.md").read_text()


@pytest.mark.parametrize("method", ["mlp", "gcn", "sage", "gap"])
def test_level_none_says_that_it_is_not_private(capsys: pytest.CaptureFixture[str], method: str) -> None:
    code, out, err = run(capsys, "train", "--method", method, "--level", "none", "--epsilon", "inf", *QUICK, "--json")
    assert code == 0
    assert json.loads(out)["epsilon"] == "infinite"
    assert "NOT PRIVATE" in err


# ------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "-1"], "epsilon"),
        (["--epsilon", "inf"], "none"),
        (["--epsilon", "four"], "epsilon"),
        (["--delta", "2"], "delta"),
        (["--delta", "soon"], "soon"),
        (["--method", "gapp"], "gap"),
        (["--method", "gcn"], "level"),
        (["--level", "planet"], "planet"),
        (["--level", "local"], "local"),
        (["--level", "edge:directed"], "directed"),
        (["--data", "missing/folder"], "missing"),
        (["--data", "missing.npz"], "missing"),
        (["--data", "corra"], "cora"),
        (["--split", "90/20"], "90/20"),
        (["--set", "hopps=2"], "hops"),
        (["--set", "hops=two"], "hops"),
        (["--set", "hops=2.5"], "hops"),
        (["--set", "dropout=1.0"], "dropout"),
        (["--set", "hops"], "hops"),
        (["--set", "activation=sine"], "activation"),
        (["--device", "toaster"], "toaster"),
        (["--column", "id"], "ROLE=NAME"),
        (["--column", "id=a", "--column", "id=b"], "given twice"),
        (["--column", "directed=yes"], "no role 'directed'"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_bad_options_get_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], word: str) -> None:
    assert word in refused(capsys, "train", "--method", "gap", *arguments, "--out", "release")


def test_existing_output_is_never_touched(capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").mkdir()
    (Path("taken") / "precious").write_text("x")
    assert "taken" in refused(capsys, "train", "--out", "taken")
    assert (Path("taken") / "precious").read_text() == "x"


def test_a_missing_value_has_a_declared_meaning(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    text = (tables / "nodes.csv").read_text().splitlines()
    text[1] = "person-0,nan,1.0,cat"
    (tables / "nodes.csv").write_text("\n".join(text) + "\n")
    columns = (
        "[columns]\nheight = { kind = 'numeric', range = [-3, 3] }\nweight = { kind = 'numeric', range = [-3, 3] }\n"
    )
    (tables / "schema.toml").write_text(columns)
    assert "missing" in refused(capsys, "train", "--data", str(tables))
    (tables / "schema.toml").write_text(columns.replace("height = {", "height = { missing = 'indicator',"))
    assert run(capsys, "train", "--data", str(tables), *QUICK, "--out", "release")[0] == 0
    kept = json.loads(Path("release/config.json").read_text())["schema"]["features"]
    assert kept == ["height", "height (missing)", "weight"]


def test_edge_to_a_node_that_does_not_exist(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    with (tables / "edges.csv").open("a") as file:
        file.write("person-0,stranger\n")
    assert "stranger" in refused(capsys, "train", "--data", str(tables), "--undirected")


def test_directed_graph_at_the_undirected_level(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    err = refused(capsys, "train", "--data", str(tables), "--directed")
    assert "--undirected" in err
    assert "edge:directed" in err
    arguments = ["--data", str(tables), "--directed", "--level", "edge:directed"]
    code, out, _ = run(capsys, "train", *arguments, *QUICK, "--json")
    assert code == 0
    assert json.loads(out)["level"] == "edge:directed"


# ------------------------------------------------------------------------ what is left behind


def test_a_full_disk_leaves_nothing_behind(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.write_bytes

    def full(self: Path, content: bytes) -> int:
        if self.name == "config.json":
            raise OSError(28, "No space left on device", str(self))
        return real(self, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    code, _, err = run(capsys, "train", *QUICK, "--out", "release", "--json")
    assert code == 2
    assert "No space left" in err
    assert list(Path.cwd().iterdir()) == []


def test_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "discreet.cli", "train", "--set", "epochs=100000", "--out", "release"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    process.stdout.readline()  # the plan is printed just before training starts
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@needs_data
def test_real_data_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--data", "cora", "--data-root", str(DATA_ROOT), "--seed", "1"]
    code, out, _ = run(capsys, "train", *arguments, "--json")
    assert code == 0
    assert json.loads(out)["accuracy"]["test"] > 0.72
