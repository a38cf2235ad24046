"""``--ledger`` and ``discreet ledger``: runs are entered before they start, and refused beyond a limit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.methods.gap.estimator import GAP
from discreet.privacy.ledger import Ledger
from discreet.privacy.release_folder import read_certificate
from tests.cli.helpers import QUICK, refused, run

SMALL = ["--data", "csbm", "--method", "gap", *QUICK]
BOOK = ["--ledger", "book.db", "--dataset", "bank"]


def shown(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    code, out, _ = run(capsys, "ledger", "book.db", "--json")
    assert code == 0
    return json.loads(out)["totals"]


def test_train_enters_its_release(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "train", *SMALL, "--epsilon", "1", *BOOK, "--limit", "2", "--out", "release", "--json")
    assert code == 0
    (total,) = shown(capsys)
    (entry,) = total["entries"]
    assert json.loads(out)["ledger"] == entry["id"]
    certificate = read_certificate("release")
    assert entry["certificate"] == certificate["digest"]
    assert entry["id"] == certificate["ledger"]
    assert total["epsilon"] == pytest.approx(1.0)
    assert 0 < total["room"] < 2
    said = refused(capsys, "train", *SMALL, "--epsilon", "2", *BOOK, "--json", "--out", "another")
    assert "exceed the limit of epsilon 2" in said
    code, out, _ = run(capsys, "ledger", "book.db")
    assert code == 0
    assert "(released)" in out
    assert "room for a run" in out


def test_a_fit_that_fails_stays_a_reservation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        assert len(Ledger(Path("book.db")).entries()) == 1  # entered before anything is learnt
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(GAP, "_learn", broken)
    assert run(capsys, "train", *SMALL, *BOOK, "--out", "release")[0] == 2
    (entry,) = shown(capsys)[0]["entries"]
    assert entry["released"] is None
    assert not Path("release").exists()
    assert "counts as spent" in run(capsys, "ledger", "book.db")[1]


def test_tune_enters_what_it_tries(capsys: pytest.CaptureFixture[str]) -> None:
    search = ["tune", *SMALL, "--epsilon", "1", "--search", "hops=1,2", *BOOK]
    assert run(capsys, *search, "--trials", "1.5", "--out", "release", "--json")[0] == 0
    (total,) = shown(capsys)
    assert total["epsilon"] <= 1
    assert total["entries"][0]["released"]
    assert run(capsys, *search, "--not-accounted", "--json")[0] == 0
    one, both = shown(capsys)[0]["entries"]
    assert both["epsilon"] > 1.2 * one["epsilon"]  # every candidate at the full budget


def test_options_that_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--ledger" in refused(capsys, "train", *SMALL, "--dataset", "bank")
    assert "--dataset" in refused(capsys, "train", *SMALL, "--ledger", "book.db")
    assert "no ledger" in refused(capsys, "ledger", "nowhere.db")
    Path("text.db").write_text("something else " * 100)
    assert "not a database" in refused(capsys, "ledger", "text.db")
