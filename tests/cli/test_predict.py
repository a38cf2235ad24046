"""``discreet predict``: within what the release covers, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import refused, run


def test_one_row_per_node_with_the_users_own_names(
    capsys: pytest.CaptureFixture[str], tables: Path, release: Path
) -> None:
    data = ["--data", str(tables), "--undirected", "--threads", "1"]
    code, _, _ = run(capsys, "predict", str(release), *data, "--out", "predictions.csv")
    lines = Path("predictions.csv").read_text().splitlines()
    assert code == 0
    assert lines[0] == "node,class,probability"
    assert lines[1].startswith("person-0,")
    assert lines[1].split(",")[1] in ("cat", "dog")
    assert len(lines) == 41


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
    assert code == 1
    assert "no stage paid for" in err
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
