"""``discreet doctor``: what is here, and what is missing."""

from __future__ import annotations

import json
import os
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from discreet.methods import registry
from tests.cli.helpers import QUICK, refused, run


def test_it_reports_versions_and_places(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "doctor")[0] == 0
    code, out, _ = run(capsys, "doctor", "--json")
    assert code == 0
    assert {"python", "torch", "devices", "data_roots", "missing_extras"} <= json.loads(out).keys()


def test_leftovers_are_named_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = Path("elsewhere")
    elsewhere.mkdir()
    names = [f".release-{'0a' * 16}.partial", f"elsewhere/.x-{'ff' * 16}.partial"]
    Path(names[0]).mkdir()
    (Path(names[0]) / "config.json").write_text("{}")
    Path(names[1]).write_text("half")
    Path(f".young-{'0a' * 16}.partial").write_text("a run that is still writing")
    Path(".partial").write_text("somebody else's")
    for name in names:
        os.utime(name, (0, 0))
    code, out, _ = run(capsys, "doctor", "elsewhere", "--json")
    assert code == 0
    assert [Path(path).name for path in json.loads(out)["leftovers"]] == [Path(name).name for name in names]
    assert all(Path(name).exists() for name in names)
    code, out, _ = run(capsys, "doctor", "elsewhere", "--json", "--clean")
    assert json.loads(out)["removed"] == 2
    assert not any(Path(name).exists() for name in names)
    assert len([path for path in Path.cwd().rglob("*") if path.is_file()]) == 2


def test_a_broken_package_is_named_and_the_rest_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [
        EntryPoint("exits", "a_module_that_exits:IT", registry.GROUP),
        EntryPoint("absent", "no_such_module:IT", registry.GROUP),
        EntryPoint("wrong", "json:dumps", registry.GROUP),
    ]
    Path("a_module_that_exits.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(Path.cwd())
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    registry.list_methods.cache_clear()
    try:
        code, out, _ = run(capsys, "methods", "--json")
        found = json.loads(out)
        assert code == 0
        assert set(found["broken"]) == {"exits", "absent", "wrong"}
        assert "gap" in {row["method"] for row in found["rows"]}
        assert "broken: wrong: json:dumps is a function" in run(capsys, "methods")[1]
        assert "no_such_module" in refused(capsys, "plan", "--method", "absent")
        assert "absent" in json.loads(run(capsys, "doctor", "--json")[1])["broken_methods"]
        assert run(capsys, "plan", *QUICK)[0] == 0
    finally:
        registry.list_methods.cache_clear()


def test_nothing_private_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path.cwd() / "somebody"))
    monkeypatch.setenv("DISCREET_DATA", str(Path.cwd() / "a customer"))
    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    said = run(capsys, "doctor", "--json", "--data-root", "another customer")[1]
    assert "somebody" not in said
    assert "customer" not in said
    assert "--data-root (absent), $DISCREET_DATA (absent), ~/.cache/discreet (absent)" in said
