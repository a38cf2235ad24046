"""The command, in process: what it prints, writes, refuses and leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from discreet.cli import main
from tests.data_root import DATA_ROOT, needs_data

QUICK = ["--set", "epochs=1", "--set", "hidden=4"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Exit code 2, one sentence on standard error, nothing on standard output, nothing written."""
    before = set(Path.cwd().rglob("*"))
    code, out, err = run(capsys, *arguments)
    assert code == 2, (code, out, err)
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert set(Path.cwd().rglob("*")) == before
    return err


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A graph as a user has it: two CSV files with ids and names of their own."""
    folder = tmp_path / "mine"
    folder.mkdir()
    rng = np.random.default_rng(0)
    names = [f"person-{i}" for i in range(40)]
    rows = [f"{name},{rng.normal():.3f},{rng.normal():.3f},{('cat', 'dog')[i % 2]}" for i, name in enumerate(names)]
    (folder / "nodes.csv").write_text("\n".join(["id,height,weight,label", *rows]) + "\n")
    edges = {tuple(sorted(rng.choice(40, 2, replace=False))) for _ in range(80)}
    lines = [f"{names[a]},{names[b]}" for a, b in edges]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    return folder


def test_train_release_verify_predict(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    data = ["--data", str(tables), "--undirected"]
    code, out, err = run(capsys, "train", *data, *QUICK, "--out", "release", "--json")
    assert code == 0
    result = json.loads(out)
    assert "plan for gap" in err
    assert result["method"] == "gap"
    assert result["level"] == "edge"
    assert result["epsilon_spent"] <= result["epsilon"] == 4
    assert set(result["accuracy"]) == {"train", "val", "test"}
    assert result["covers"] == "weights+predictions"
    assert result["release"] == "release"
    assert {"delta", "seconds", "peak_rss_mb"} <= result.keys()

    code, out, _ = run(capsys, "verify", "release")
    assert (code, "NOT" in out) == (0, False)

    code, _, _ = run(capsys, "predict", "release", *data, "--out", "predictions.csv")
    lines = Path("predictions.csv").read_text().splitlines()
    assert code == 0
    assert lines[0] == "node,class,probability"
    assert lines[1].startswith("person-0,")
    assert lines[1].split(",")[1] in ("cat", "dog")
    assert len(lines) == 41

    card = Path("release/card.md").read_text()
    assert "one undirected edge" in card


def test_verify_refuses_a_changed_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "train", *QUICK, "--out", "release", "--json")[0] == 0
    weights = Path("release/weights.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    code, out, _ = run(capsys, "verify", "release", "--json")
    assert code == 1
    assert json.loads(out)["verified"] is False
    assert run(capsys, "predict", "release", "--data", "csbm", "--out", "p.csv")[0] == 1
    assert not Path("p.csv").exists()


def test_predict_on_another_graph_is_uncovered(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    assert run(capsys, "train", "--data", str(tables), "--undirected", *QUICK, "--out", "release", "--json")[0] == 0
    rows = (tables / "nodes.csv").read_text().replace("person-0,", "person-0,9")
    (tables / "nodes.csv").write_text(rows)
    arguments = ["predict", "release", "--data", str(tables), "--undirected", "--out", "p.csv"]
    code, _, err = run(capsys, *arguments)
    assert code == 1
    assert "no stage paid for" in err
    assert not Path("p.csv").exists()
    assert run(capsys, *arguments, "--uncovered")[0] == 0


@pytest.mark.parametrize("method", ["mlp", "gcn", "sage", "gap"])
def test_level_none_says_that_it_is_not_private(capsys: pytest.CaptureFixture[str], method: str) -> None:
    code, out, err = run(capsys, "train", "--method", method, "--level", "none", "--epsilon", "inf", *QUICK, "--json")
    assert code == 0
    assert json.loads(out)["epsilon"] == "infinite"
    assert "NOT PRIVATE" in err


def test_plan_shows_the_stages_and_trains_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", "--epsilon", "1")
    assert code == 0
    assert "hop 1" in out
    assert "1.41421" in out
    code, out, _ = run(capsys, "plan", "--epsilon", "1", "--json")
    plan = json.loads(out)
    assert plan["stages"][0]["noise_std"] == pytest.approx(3.7306 * 2**0.5, rel=1e-4)
    assert plan["epsilon_spent"] <= 1


def test_seed_and_settings_reach_the_method(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "plan", "--set", "hops=3", "--set", "width=5", "--json")
    assert code == 0
    assert [stage["name"] for stage in json.loads(out)["stages"]] == ["hop 1", "hop 2", "hop 3"]
    assert json.loads(out)["stages"][0]["shape"] == [2000, 5]


def test_audit_replays_attacks_and_reports(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["audit", "--method", "gap", "--pairs", "20", "--fits", "80", "--samples", "2000"]
    code, out, _ = run(capsys, *arguments, "--json", "--out", "report.json")
    assert code == 0
    found = json.loads(out)
    assert found["passed"] is True
    assert 0.99 < found["replay"]["largest_ratio"]["hop 1"] <= 1
    assert found["statistics"]["curator"]["epsilon"] <= 1
    assert found["statistics"]["pipeline"]["judged"] == 40
    assert json.loads(Path("report.json").read_text())["digest"] == found["digest"]
    assert "report.json" in refused(capsys, *arguments, "--out", "report.json")

    from discreet.methods import gap

    monkeypatch.setattr(gap, "edge_sensitivity", lambda aggregation, level: (1.0, "a planted fault"))
    code, out, _ = run(capsys, "audit", "--pairs", "20", "--fits", "0", "--samples", "0")
    assert code == 1
    assert "declared sensitivity" in out
    assert "DOES NOT HOLD" in out


def test_audit_of_a_release_is_attached_and_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "train", *QUICK, "--set", "hops=2", "--out", "release")[0] == 0
    quick = ["--pairs", "5", "--fits", "80", "--samples", "500"]
    code, out, _ = run(capsys, "audit", "release", *quick, "--attach", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["params"]["hops"] == 2
    assert found["epsilon"] == 4
    assert found["delta"] == pytest.approx(1e-5)  # of the 2000 nodes that it was trained on
    code, out, _ = run(capsys, "verify", "release", "--json")
    assert code == 0
    assert json.loads(out)["checks"][-1]["check"] == "audit"
    report = Path("release") / "audit.json"
    report.write_text(report.read_text().replace("true", "false"))
    assert run(capsys, "verify", "release")[0] == 1


def test_audit_refuses_what_it_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert "none" in refused(capsys, "audit", "--level", "none", "--epsilon", "inf")
    assert "release" in refused(capsys, "audit", "somewhere", "--method", "gap")
    assert "somewhere" in refused(capsys, "audit", "somewhere")
    assert "attach" in refused(capsys, "audit", "--attach")
    assert "at least 80" in refused(capsys, "audit", "--fits", "3")


def test_listings(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("methods", "data", "doctor"):
        assert run(capsys, command)[0] == 0
        code, out, _ = run(capsys, command, "--json")
        assert code == 0
        assert json.loads(out)
    assert "gap" in run(capsys, "methods")[1]
    assert "cora" in run(capsys, "data")[1]


def test_help_teaches_and_is_quick() -> None:
    started = time.perf_counter()
    found = subprocess.run([sys.executable, "-m", "discreet.cli", "--help"], capture_output=True, text=True, check=True)
    assert time.perf_counter() - started < 5  # the real limit is measured in benchmarks; this catches a torch import
    for command in ("train", "plan", "methods", "data", "predict", "verify", "audit", "doctor"):
        assert command in found.stdout


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
        (["--nonsense"], "nonsense"),
    ],
)
def test_bad_options_get_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], word: str) -> None:
    assert word in refused(capsys, "train", *arguments, "--out", "release")


def test_existing_output_is_never_touched(capsys: pytest.CaptureFixture[str]) -> None:
    Path("taken").mkdir()
    (Path("taken") / "precious").write_text("x")
    assert "taken" in refused(capsys, "train", "--out", "taken")
    assert (Path("taken") / "precious").read_text() == "x"


def test_nan_feature(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    text = (tables / "nodes.csv").read_text().splitlines()
    text[1] = "person-0,nan,1.0,cat"
    (tables / "nodes.csv").write_text("\n".join(text) + "\n")
    assert "NaN" in refused(capsys, "train", "--data", str(tables), "--undirected")


def test_edge_to_a_node_that_does_not_exist(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    with (tables / "edges.csv").open("a") as file:
        file.write("person-0,stranger\n")
    assert "stranger" in refused(capsys, "train", "--data", str(tables), "--undirected")


def test_directed_graph_at_the_undirected_level(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    err = refused(capsys, "train", "--data", str(tables))
    assert "--undirected" in err
    assert "edge:directed" in err
    code, out, _ = run(capsys, "train", "--data", str(tables), "--level", "edge:directed", *QUICK, "--json")
    assert code == 0
    assert json.loads(out)["level"] == "edge:directed"


def test_missing_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere" in refused(capsys, "verify", "nowhere")
    assert "nowhere" in refused(capsys, "predict", "nowhere", "--data", "csbm", "--out", "p.csv")


def test_a_full_disk_leaves_nothing_behind(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.write_bytes

    def full(self: Path, content: bytes) -> int:
        if self.name == "config.json":
            raise OSError(28, "No space left on device", str(self))
        return real(self, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    code, _, err = run(capsys, "train", *QUICK, "--out", "release", "--json")
    assert code == 1
    assert "No space left" in err
    assert list(Path.cwd().iterdir()) == []


def test_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "discreet.cli", "train", "--set", "epochs=100000", "--out", "release"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stdout is not None
    process.stdout.readline()  # the plan is printed just before training starts
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "interrupted" in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@needs_data
def test_real_data_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--data", "cora", "--data-root", str(DATA_ROOT), "--seed", "1"]
    code, out, _ = run(capsys, "train", *arguments, "--json")
    assert code == 0
    assert json.loads(out)["accuracy"]["test"] > 0.72
