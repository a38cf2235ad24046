"""``--config``: options of a command in one file, which the command line overrides."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.helpers import QUICK, refused, run, small_graph_file

TEXT = """
method = "gap"
epsilon = 2
level = "edge"
undirected = true

[set]
epochs = 1
hops = 2
"""


@pytest.fixture(autouse=True)
def file() -> str:
    Path("run.toml").write_text(TEXT)
    return "run.toml"


def test_a_file_gives_options_and_the_command_line_wins(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "plan", "--config", "run.toml", "--epsilon", "3", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["method"], found["epsilon"]) == ("gap", 3)
    assert [stage["name"] for stage in found["stages"]] == ["hop 1", "hop 2"]
    assert json.loads(run(capsys, "plan", "--config", "run.toml", "--json")[1])["epsilon"] == 2


def test_a_file_of_windows(capsys: pytest.CaptureFixture[str]) -> None:
    """Its line ends, and the mark that editors there put first."""
    Path("run.toml").write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    code, out, err = run(capsys, "plan", "--config", "run.toml", "--json")
    assert code == 0, err
    assert json.loads(out)["epsilon"] == 2


def test_a_run_is_written_and_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--config", "run.toml", "--seed", "3", "--save-config", "again.toml", "--json"]
    code, first, err = run(capsys, "train", *options, "--out", "release")
    assert code == 0, err
    written = tomllib.loads(Path("again.toml").read_text())
    assert (written["seed"], written["undirected"], written["set"]) == (3, True, ["epochs=1", "hops=2"])
    assert "out" not in written
    assert sorted(path.name for path in Path("release").iterdir() if path.suffix == ".toml") == []
    code, second, err = run(capsys, "train", "--config", "again.toml", "--json")
    assert code == 0, err
    same = ("data", "method", "level", "epsilon", "seed", "split")
    assert {key: json.loads(first)[key] for key in same} == {key: json.loads(second)[key] for key in same}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("epsilonn = 1", "did you mean epsilon?"),
        ("epsilon = [", "not valid TOML"),
        ("undirected = 3", "switch"),
        ("epsilon = true", "cannot be True"),
        ('set = "hops=2"', "must be a list"),
        ("epsilon = 'four'", "epsilon"),
        ("level = 2020-01-01", "level"),
        ("[set]\nhidden = 2020-01-01", "set"),
    ],
)
def test_a_bad_file_gets_one_sentence(capsys: pytest.CaptureFixture[str], text: str, word: str) -> None:
    Path("run.toml").write_text(text)
    assert word in refused(capsys, "train", "--config", "run.toml")


def test_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere.toml" in refused(capsys, "train", "--config", "nowhere.toml")
    assert "/dev/zero" in refused(capsys, "train", "--config", "/dev/zero")
    assert "run.toml" in refused(capsys, "train", "--save-config", "run.toml")


def test_version_and_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"discreet {version('discreet')}\n", "")
    code, out, _ = run(capsys, "train", "--config", "run.toml")
    assert code == 0
    assert out.startswith("csbm: 2000 nodes (1500 train, 200 val, 300 test), 100 features, 2 classes")


@pytest.mark.parametrize(("level", "epsilon"), [("edge", "4.0"), ("none", "inf")])
def test_the_budget_is_saved_though_it_was_not_given(
    capsys: pytest.CaptureFixture[str], level: str, epsilon: str
) -> None:
    options = ["--method", "mlp", "--level", level, *QUICK, "--data", small_graph_file(), "--save-config", "saved.toml"]
    code, _, err = run(capsys, "train", *options)
    assert code == 0, err
    assert f"\nepsilon = {epsilon}\n" in Path("saved.toml").read_text()
    code, _, err = run(capsys, "train", "--config", "saved.toml")
    assert code == 0, err


def test_one_file_serves_train_plan_and_tune(capsys: pytest.CaptureFixture[str]) -> None:
    """What train alone has is passed over; graphs that are added are not, for they change the plan."""
    data, also = small_graph_file(), small_graph_file(1)
    options = ["--data", data, "--method", "gap", "--set", "epochs=1", "--epsilon", "2", "--beside-mlp"]
    code, _, err = run(capsys, "train", *options, "--save-config", "made.toml")
    assert code == 0, err
    text = Path("made.toml").read_text()
    assert "[]" not in text
    code, alone, err = run(capsys, "plan", "--config", "made.toml", "--json")
    assert code == 0, err
    code, both, err = run(capsys, "plan", "--config", "made.toml", "--also", also, "--json")
    assert code == 0, err
    assert len(json.loads(both)["stages"]) > len(json.loads(alone)["stages"])
    search = ["--search", "hops=1,2", "--trials", "2", "--not-accounted"]
    assert run(capsys, "tune", "--config", "made.toml", *search, "--json")[0] == 0
    Path("made.toml").write_text(f'{text}also = ["{also}"]\n')
    assert "tune has no --also" in refused(capsys, "tune", "--config", "made.toml", *search)
