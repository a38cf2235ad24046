"""What is said while a command works: nothing by itself, steps on request, progress every half minute, JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.cli import output
from tests.cli.helpers import QUICK, refused, run


def test_steps_are_said_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "train", "--method", "gap", *QUICK, "--json", "--log-level", "debug", "--log-json")
    assert code == 0
    json.loads(out)
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert [line["message"] for line in lines] == ["reading options", "reading data", "planning", "fitting"]
    assert {line["level"] for line in lines} == {"debug"}


def test_progress_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(capsys, "train", "--method", "gap", *QUICK, "--json")[2]
    assert " of " not in plain.splitlines()[-1]
    monkeypatch.setattr(output, "EVERY_SECONDS", 0.0)
    err = run(capsys, "train", "--method", "gap", *QUICK, "--json", "--log-json")[2]
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert lines
    assert all({"step", "done", "total", "seconds"} <= line.keys() for line in lines)
    assert run(capsys, "train", "--method", "gap", *QUICK, "--json", "--log-level", "warning")[2] == plain


def test_what_was_read_and_warnings_are_lines_of_the_log(capsys: pytest.CaptureFixture[str], tables: Path) -> None:
    nodes = (tables / "nodes.csv").read_text().replace("dog\n", "CAT\n", 1)
    (tables / "nodes.csv").write_text(nodes)
    train = ["train", "--data", str(tables), "--method", "gap", *QUICK]
    code, _, err = run(capsys, *train, "--log-json")
    assert code == 0
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["level"] for line in lines] == ["info", "warning"]
    assert "'CAT' and 'cat'" in lines[1]["message"]
    quiet = run(capsys, *train, "--log-level", "warning")[2]
    assert quiet == f"warning: {lines[1]['message']}\n"


def test_a_level_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--log-level" in refused(capsys, "methods", "--log-level", "loud")
