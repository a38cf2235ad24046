"""The ledger: nothing is lost, nothing is entered twice, and a limit is kept, by many processes and through kills."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from discreet.errors import DataNotFoundError, LedgerError, ParameterError
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.events.gaussian import gaussian_mu
from discreet.privacy.ledger import Ledger, Run
from discreet.privacy.totals import totals

_ENTRY = "id, dataset, command, method, level, epsilon, delta, event, reserved, released, certificate"
_EDITED = _ENTRY.replace("epsilon", "0")


def gaussian(epsilon: float, level: str = "edge", delta: float = 1e-5) -> Run:
    return Run("train", "gap", level, events.GaussianDpEvent(1 / gaussian_mu(epsilon, delta)), delta)


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db")


def test_a_reservation_counts_and_becomes_a_release(book: Ledger) -> None:
    entry = book.reserve(gaussian(1.0), "bank")
    (found,) = book.entries()
    assert (found.id, found.released, found.population) == (entry, None, "bank")
    assert found.epsilon == pytest.approx(1.0)
    book.release(entry, "digest")
    assert book.entries()[0].certificate == "digest"
    with pytest.raises(LedgerError, match="no open reservation"):
        book.release(entry, "another")
    assert totals(book)[0].total == pytest.approx(1.0)


def test_runs_compose_by_their_events(book: Ledger) -> None:
    for _ in range(4):
        book.reserve(gaussian(1.0), "bank")
    (total,) = totals(book)
    sigma = 1 / gaussian_mu(1.0, 1e-5)
    assert total.total == pytest.approx(epsilon_of(events.GaussianDpEvent(sigma / 2), 1e-5))
    assert total.total < 2.2
    assert total.summed == (pytest.approx(4.0), pytest.approx(4e-5))


def test_levels_do_not_mix(book: Ledger) -> None:
    book.reserve(gaussian(1.0, "edge"), "bank")
    book.reserve(gaussian(2.0, "node:owned,max_degree=10,change=null"), "bank")
    book.reserve(gaussian(2.0, "node:owned,max_degree=20,change=null"), "bank")
    edge, node = totals(book)
    assert (edge.relation, node.relation) == ("edge", "node:owned,change=null")
    assert math.isinf(edge.total)
    assert math.isinf(node.total)
    assert edge.alone == pytest.approx(1.0)
    assert len(node.entries) == 2
    promised = [gaussian(1.0, f"node:promised,max_degree={d}").relation for d in (10, 20)]
    assert promised[0] != promised[1]


def test_a_release_without_a_guarantee_makes_everything_infinite(book: Ledger) -> None:
    book.reserve(gaussian(1.0), "bank")
    book.reserve(Run("train", "gcn", "none", events.NonPrivateDpEvent(), 1e-5), "bank")
    assert [total.total for total in totals(book)] == [math.inf, math.inf]


def test_an_empty_plan_spends_nothing(book: Ledger) -> None:
    book.reserve(Run("train", "mlp", "edge", events.NoOpDpEvent(), 1e-5), "bank", limit=1.0)
    assert totals(book)[0].total == 0


def test_populations_group_datasets(book: Ledger) -> None:
    book.reserve(gaussian(1.0), "march")
    book.reserve(gaussian(1.0), "april", "customers")
    assert len(totals(book)) == 2
    book.reserve(gaussian(1.0), "march", "customers")  # joins with what it has spent
    (total,) = totals(book)
    assert len(total.entries) == 3
    assert book.reserve(gaussian(1.0), "april")
    with pytest.raises(LedgerError, match="belongs to population 'customers'"):
        book.reserve(gaussian(1.0), "april", "employees")


def test_a_dataset_does_not_escape_a_limit_by_joining(book: Ledger) -> None:
    book.reserve(gaussian(1.0), "march", limit=2.0)
    with pytest.raises(LedgerError, match="cannot join"):
        book.reserve(gaussian(1.0), "march", "customers")
    book.reserve(gaussian(1.0), "april")
    book.reserve(gaussian(1.0), "may", "customers", limit=2.0)
    with pytest.raises(LedgerError, match="cannot join"):
        book.reserve(gaussian(1.0), "april", "customers")


def test_a_limit_is_kept(book: Ledger) -> None:
    book.reserve(gaussian(1.0), "bank", limit=2.0)
    book.reserve(gaussian(0.5), "bank")
    room = totals(book)[0].room
    assert room is not None
    with pytest.raises(LedgerError, match="would exceed the limit of epsilon 2"):
        book.reserve(gaussian(1.01 * room), "bank")
    book.reserve(gaussian(0.99 * room), "bank")
    assert totals(book)[0].total <= 2.0
    assert len(book.entries()) == 3
    with pytest.raises(LedgerError, match="fixed at epsilon 2"):
        book.reserve(gaussian(0.1), "bank", limit=3.0)
    with pytest.raises(LedgerError, match="says nothing of that level"):
        book.reserve(gaussian(0.1, "node"), "bank")
    assert len(book.entries()) == 3


def test_a_first_run_that_is_refused_leaves_no_file(book: Ledger) -> None:
    with pytest.raises(LedgerError, match="would exceed"):
        book.reserve(gaussian(3.0), "bank", limit=2.0)
    assert not book.path.exists()


def test_the_first_run_may_use_up_the_limit(book: Ledger) -> None:
    with pytest.raises(LedgerError, match="exceed"):
        book.reserve(gaussian(2.1), "bank", limit=2.0)
    book.reserve(gaussian(2.0), "bank", limit=2.0)
    assert totals(book)[0].room == 0
    with pytest.raises(LedgerError, match="no further run"):
        book.reserve(gaussian(0.1), "bank")


def test_runs_that_sample_nodes_compose_as_black_boxes(book: Ledger) -> None:
    sampled = events.compose([events.SampledNodesDpEvent(0.1), events.GaussianDpEvent(2.0)])
    for _ in range(2):
        book.reserve(Run("train", "dpar", "node", sampled, 1e-5), "bank")
    (total,) = totals(book)
    assert total.alone <= total.summed[0]
    assert total.delta == pytest.approx(2e-5)


def test_bad_input_is_refused(book: Ledger, tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match="no ledger"):
        book.entries()
    with pytest.raises(ParameterError, match="dataset"):
        book.reserve(gaussian(1.0), "  ")
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but a text of some length " * 50)
    with pytest.raises(LedgerError, match="not a database"):
        Ledger(text).entries()
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE something (x)")
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(tmp_path / "other.db").reserve(gaussian(1.0), "bank")
    with pytest.raises(LedgerError, match="unable to open"):
        Ledger(tmp_path / "nowhere" / "ledger.db").reserve(gaussian(1.0), "bank")


def test_the_file_itself_keeps_its_entries(book: Ledger) -> None:
    book.reserve(gaussian(1.0), "bank", limit=2.0)
    with sqlite3.connect(book.path) as file:
        for change in (
            "DELETE FROM entries",
            "UPDATE entries SET epsilon = 0",
            "DELETE FROM limits",
            "UPDATE limits SET epsilon = 9",
            "INSERT OR REPLACE INTO limits SELECT population, relation, 9, delta, fixed, before FROM limits",
            "INSERT OR REPLACE INTO limits (rowid, population, relation, epsilon, delta, fixed, before) "
            "VALUES (1, 'x', 'edge', 9, 0, '', 0)",
            f"INSERT OR REPLACE INTO entries SELECT {_EDITED} FROM entries",
            f"INSERT OR REPLACE INTO entries (rowid, {_ENTRY}) SELECT 1, 'x', {_EDITED[4:]} FROM entries",
            "UPDATE OR REPLACE entries SET rowid = 2",
            "DELETE FROM datasets",
            "UPDATE datasets SET population = 'elsewhere'",
            "UPDATE datasets SET name = 'elsewhere'",
            "INSERT OR REPLACE INTO datasets VALUES ('bank', 'elsewhere')",
            "INSERT OR REPLACE INTO datasets (rowid, name, population) VALUES (1, 'x', 'elsewhere')",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                file.execute(change)


def test_a_file_of_before_gets_the_rules_it_lacks(book: Ledger) -> None:
    book.reserve(gaussian(1.0), "bank", limit=2.0)
    with sqlite3.connect(book.path) as file:
        file.execute("DROP TRIGGER datasets_stay")
    book.entries()
    with sqlite3.connect(book.path) as file, pytest.raises(sqlite3.IntegrityError, match="never"):
        file.execute("DELETE FROM datasets")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE entries; CREATE VIEW entries AS SELECT * FROM datasets",
        "CREATE TABLE other (a)",
        "CREATE TRIGGER other AFTER INSERT ON entries BEGIN DELETE FROM limits; END",
        *(
            f"DROP TRIGGER entries_are_fixed; UPDATE entries SET {change}"
            for change in (
                *(
                    "epsilon = 'x'",
                    "delta = 7",
                    "level = x'00'",
                    "event = '[]'",
                    "reserved = x'ff'",
                    "released = x'ff'",
                ),
                f"event = '{'[' * 3000}'",
            )
        ),
        "DROP TRIGGER limits_are_fixed; UPDATE limits SET epsilon = 'x'",
        "DROP TRIGGER limits_are_fixed; UPDATE limits SET before = 'x'",
    ],
)
def test_files_that_say_something_else_are_refused(book: Ledger, statement: str) -> None:
    book.reserve(gaussian(1.0), "bank", limit=5.0)
    with sqlite3.connect(book.path) as connection:
        connection.executescript(statement)
    with pytest.raises(LedgerError, match=r"which no ledger holds|cannot be read"):
        totals(book)


@pytest.mark.parametrize("name", ["cora ", "Cora", "CORA\u00a0", " ｃｏｒａ"])
def test_spellings_of_a_name_are_one(book: Ledger, name: str) -> None:
    book.reserve(gaussian(2.0), "cora", limit=2.0)
    with pytest.raises(LedgerError, match="no further run"):
        book.reserve(gaussian(1.0), name)
    with pytest.raises(LedgerError, match="no further run"):
        book.reserve(gaussian(1.0), "another", name)
    assert len(totals(book)) == 1


def test_a_name_keeps_the_spelling_of_its_first_entry(book: Ledger) -> None:
    book.reserve(gaussian(1.0), "March", "Customers")
    book.reserve(gaussian(1.0), "march", "customers ")
    assert {(entry.dataset, entry.population) for entry in book.entries()} == {("March", "Customers")}


def test_a_ledger_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Ledger(Path(":memory:")).reserve(gaussian(1.0), "bank")
    assert len(Ledger(Path(":memory:")).entries()) == 1
    os.mkfifo("pipe")
    for path in ("pipe", "/dev/null", "."):
        with pytest.raises(LedgerError, match="not a plain file"):
            Ledger(Path(path)).reserve(gaussian(1.0), "bank")
        with pytest.raises(LedgerError, match="not a plain file"):
            Ledger(Path(path)).entries()


def test_a_full_disk_enters_nothing_and_loses_nothing(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    book.reserve(gaussian(1.0), "bank")
    connect = Ledger._connect

    def full(self: Ledger) -> sqlite3.Connection:
        connection = connect(self)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(Ledger, "_connect", full)
    entered = 1
    with pytest.raises(LedgerError, match="full"):  # noqa: PT012  (the page fills up after a few)
        for _ in range(100):
            book.reserve(gaussian(1.0), "bank")
            entered += 1
    monkeypatch.undo()
    assert len(book.entries()) == entered
    assert sqlite3.connect(book.path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


# -------------------------------------------------------------------- processes


def work(book: Ledger, out: Path, runs: int, limit: float) -> None:
    """Release again and again: enter, write a folder, and say so. Ends with code 3 where the limit ends it."""
    run = Run("train", "gap", "edge", events.GaussianDpEvent(4.0), 1e-5)
    try:
        for _ in range(runs):
            entry = book.reserve(run, "bank", limit=limit)
            (out / entry).mkdir()
            book.release(entry, entry)
    except LedgerError:
        os._exit(3)


def start(book: Ledger, out: Path, runs: int, limit: float = 1000.0) -> multiprocessing.process.BaseProcess:
    out.mkdir(exist_ok=True)
    # Forked, for it costs seconds to import everything again.
    process = multiprocessing.get_context("fork").Process(target=work, args=(book, out, runs, limit))
    process.start()
    return process


def check(book: Ledger, out: Path) -> None:
    """No release without its entry, and no entry lost that was said to be released."""
    entries = {entry.id: entry for entry in book.entries()}
    folders = {path.name for path in out.iterdir()}
    assert folders <= entries.keys()
    assert {name for name, entry in entries.items() if entry.released} <= folders


def kill_at_random_times(book: Ledger, out: Path, kills: int) -> None:
    rng = random.Random(0)
    for _ in range(kills):
        written = len(os.listdir(out)) if out.exists() else 0
        worker = start(book, out, 10**6)
        while len(os.listdir(out)) == written:  # however busy the machine is
            time.sleep(0.005)
        time.sleep(0.1 * rng.random())
        worker.kill()
        worker.join()
        assert worker.exitcode == -signal.SIGKILL
        check(book, out)


def test_killed_in_the_middle(book: Ledger, tmp_path: Path) -> None:
    kill_at_random_times(book, tmp_path / "out", 4)


@pytest.mark.slow
def test_fifty_kills(book: Ledger, tmp_path: Path) -> None:
    kill_at_random_times(book, tmp_path / "out", 50)


def test_two_processes_share_one_limit(book: Ledger, tmp_path: Path) -> None:
    workers = [start(book, tmp_path / "out", 100, limit=2.0) for _ in range(2)]
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [3, 3]
    entries = book.entries()
    limit = book.limits()[0].filter
    one = limit.cost(entries[0].event, 0.0, 0.0).divergence
    assert len(entries) == int(limit.budget / one)
    check(book, tmp_path / "out")


def test_two_processes_make_one_file(book: Ledger, tmp_path: Path) -> None:
    workers = [start(book, tmp_path / "out", 5) for _ in range(2)]
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(book.entries()) == 10
