"""``--preset`` on every command that makes a model, and what a run as published says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.bench.suite import read_suite, suite_names
from discreet.bench.trials import with_preset
from discreet.methods.registry import list_methods
from tests.bench.helpers import written
from tests.cli.helpers import refused, run, small_graph_file

GCON = ("--method", "gcon", "--preset", "paper", "--set", "epochs=1", "--set", "width=4")
CLAIM = ("--method", "dpar", "--level", "node", "--set", "accounting=as-published", "--set", "node_rate=0.5")


def test_plan_and_train_take_a_preset(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", *GCON)
    assert code == 0
    assert "preset paper: settings of GCON" in out
    assert "differs from the paper" in out
    data = small_graph_file()
    code, out, _ = run(capsys, "train", "--data", data, *GCON, "--out", "release", "--json")
    assert code == 0, out
    config = json.loads(Path("release", "config.json").read_text())["params"]
    assert (config["preset"], config["scoring"], config["width"]) == ("paper", "plain", 4)


def test_presets_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "mlp has no preset" in refused(capsys, "plan", "--method", "mlp", "--preset", "paper")
    assert "name a method" in refused(capsys, "plan", "--method", "auto", "--preset", "paper")
    assert "preset" in refused(capsys, "plan", "--method", "gcon", "--preset", "papre")


def test_bench_runs_a_suite_with_a_preset(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    suite = 'title = "s"\ndatasets = ["csbm"]\n[[cases]]\nmethod = "gcon"\nlevel = "edge"\nepsilon = 1\n'
    path = str(written(tmp_path, suite + '[[cases]]\nmethod = "mlp"\nlevel = "edge"\nepsilon = 1\n'))
    code, out, _ = run(capsys, "bench", path, "--list", "--preset", "paper", "--json")
    assert code == 0
    assert [row["name"] for row in json.loads(out)["rows"]] == ["gcon, preset paper"]
    assert "no method with preset" in refused(capsys, "bench", path, "--list", "--preset", "papre")


@pytest.mark.parametrize("name", [name for name in suite_names() if name not in ("networks", "speed")])
def test_every_suite_of_a_paper_can_be_run_with_it(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, err = run(capsys, "bench", name, "--list", "--preset", "paper", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"]


def test_a_case_of_every_method_becomes_those_that_have_the_preset(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    suite = 'title = "s"\ndatasets = ["csbm"]\n[[cases]]\nmethod = "*"\nlevel = "local"\nepsilon = 1\n'
    code, out, _ = run(capsys, "bench", str(written(tmp_path, suite)), "--list", "--preset", "paper", "--json")
    assert code == 2, "most methods have no local level, as without a preset"
    suite = suite.replace('"local"', '"*"')
    code, out, err = run(capsys, "bench", str(written(tmp_path, suite)), "--list", "--preset", "paper", "--json")
    assert code == 0, err
    found = {(row["name"], row["method"]) for row in json.loads(out)["rows"]}
    having = {name for name, declared in list_methods().items() if "paper" in declared.presets}
    assert found == {(f"{name}, preset paper", name) for name in having}


def test_a_line_that_a_suite_has_for_a_preset_is_not_made_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It comes first, whatever the order of the suite: it has the settings that were meant for the preset."""
    case = '[[cases]]\nmethod = "gcon"\nlevel = "edge"\nepsilon = [1, 4]\n'
    own = case.replace("[1, 4]", "4") + 'name = "gcon, preset paper"\nsettings = { preset = "paper", steps = 3 }\n'
    path = written(tmp_path, 'title = "s"\ndatasets = ["csbm"]\n' + case + own)
    cases = with_preset(read_suite(str(path)), "paper").cases
    assert [case.settings for case in cases] == [{"preset": "paper", "steps": 3}, {"preset": "paper"}]
    code, out, err = run(capsys, "bench", str(path), "--list", "--preset", "paper", "--json")
    assert code == 0, err
    assert sorted(row["epsilon"] for row in json.loads(out)["rows"]) == ["1", "4"]


def test_what_a_case_sets_stays_with_a_preset() -> None:
    """Or a line would run another method than it says."""
    cases = {case.name: case.settings for case in with_preset(read_suite("dpdgc-table2"), "paper").cases}
    assert cases["dpdgc, random, preset paper"] == {"embedding": "random", "preset": "paper"}
    assert cases["RandEdge+SAGE, preset paper"]["mechanism"] == "edge-rand"
    cases = {case.name: case.settings for case in with_preset(read_suite("dpar-table1"), "paper").cases}
    assert cases["dpar, preset paper"] == {"preset": "paper"}


def test_infinity_is_a_word_where_a_parameter_takes_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "plan", *GCON, "--set", "steps=inf")[0] == 0


def test_as_published_is_said_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    data = small_graph_file()
    given = ("--data", data, *CLAIM, "--epsilon", "8", "--set", "steps=3", "--set", "sources=20", "--json")
    code, out, _ = run(capsys, "train", *given, "--out", "release", "--private-figures")
    assert code == 0
    found = json.loads(out)
    assert (found["verified"], found["covers"], found["accounting"]) == (False, "nothing", "as-published")
    assert found["claim"] == {
        "epsilon": 8.0,
        "by": "DPAR, theorems 1 to 3 as printed",
        "status": "claimed by the paper, not verified",
    }
    assert found["epsilon_proved"] == found["epsilon_spent"]
    assert found["epsilon_proved"] == "Infinity" or found["epsilon_proved"] > 8
    code, _, err = run(capsys, "predict", "release", "--data", data, "--out", "p.csv", "--uncovered")
    assert code == 0
    assert "covers nothing: its epsilon is claimed by the paper, not verified" in err
    code, out, _ = run(capsys, "plan", "--data", data, *CLAIM)
    assert "covers    nothing" in out
    assert "the claim is about a node with all of its edges" in out
    code, out, _ = run(capsys, "train", "--data", data, "--set", "epochs=1", "--json")
    assert json.loads(out)["verified"] is True
