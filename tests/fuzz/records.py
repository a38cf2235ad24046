"""Records of other runs, which commands read beside a release: ledgers, rows and tables of a benchmark, reports of
attacks and audits, a policy; and outputs at places that are taken or cannot be written.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from discreet.bench.store import RESULTS
from discreet.bench.suite import parse_suite
from discreet.bench.trials import expand
from discreet.files import to_json
from discreet.privacy.events import GaussianDpEvent
from discreet.privacy.ledger import Ledger, Run
from tests.fuzz.spoil import Case, Random, choose_value, scratch, spoilt

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    "",
    "x",
    "infinite",
    "\0",
    [],
    {},
    [[]],
    {"a": 1},
    ["a"],
    2**62,
]
SUITE = """title = "t"
datasets = ["small"]
seeds = 1
[graphs]
small = "csbm:num_nodes=40,num_features=4"
[[cases]]
method = "mlp"
level = "edge"
epsilon = [1, 2]
settings = { epochs = 1 }
[[tables]]
title = "x"
"""
ATTACKS = {
    "refuted": False,
    "attacks": [
        {
            **{"kind": "link", "against": "release", "knows": "all", "auc": 0.6, "auc_interval": [0.5, 0.7]},
            **{"tpr_at_fpr": {"0.01": 0.02}, "ceiling": {"0.01": 0.5}, "pairs": 100},
        },
        {"kind": "member", "against": "no privacy", "auc": None},
    ],
}
AUDIT = {"passed": True, "replay": {"pairs": 3}, "statistical": {"epsilon": 1.0}, "notes": ["a note"]}
POLICY = 'fine_epsilon = 2\nlargest_delta = 0.5\nedge_level = "fine"\n'
CELLS = """name,dataset,level,epsilon,mean,low,high,seeds,covers
mlp,small,edge,1,50,40,60,2,weights
mlp,small,edge,2,51,,,2,
"""


def records(rng: Random) -> Case:
    """A release, and one record beside it that is sound or not."""
    return rng.choice([_ledger, _rows, _beside, _beside, _outputs])(rng)


def with_release(folder: Path) -> None:
    from tests.fuzz.grammars import _workplace

    _workplace(folder)


# -------------------------------------------------------------------- ledgers

STATEMENTS = [
    "DROP TRIGGER entries_are_fixed; UPDATE entries SET {column} = {value}",
    "DROP TRIGGER limits_are_fixed; UPDATE limits SET {limit} = {value}",
    "DROP TRIGGER datasets_only_join; UPDATE datasets SET population = {value}",
    "DROP TABLE entries; CREATE VIEW entries AS SELECT * FROM limits",
    "DROP TABLE entries; CREATE TABLE entries (id)",
    "CREATE TABLE other (a)",
    "CREATE TRIGGER other AFTER INSERT ON entries BEGIN DELETE FROM limits; END",
    "PRAGMA user_version = 7",
    "SELECT 1",
]
COLUMNS = ["id", "dataset", "command", "method", "level", "epsilon", "delta", "event", "reserved", "released"]
VALUES = [
    *("NULL", "-1", "0", "1.5", "9e999", "-9e999", "'x'", "''", "x'00ff'", "'[]'", "'{}'", "'edge'", "'node'"),
    *(f"'{'[' * 3000}'", "1e300", "'\x1b[2J'"),
]


def _ledger(rng: Random) -> Case:
    statement = rng.choice(STATEMENTS).format(
        column=rng.choice(COLUMNS),
        limit=rng.choice(["epsilon", "delta", "relation", "before"]),
        value=rng.choice(VALUES),
    )
    spoil = rng.random() if rng.random() < 0.3 else None
    train = ["train", "--data", "graph.npz", "--method", "mlp", "--set", "epochs=1", "--set", "hidden=2"]
    commands = [
        ["ledger", "other.db"],
        ["ledger", "other.db", "--json"],
        ["report", "release", "--ledger", "other.db", "--out", "out.html"],
        [*train, "--ledger", "other.db", "--dataset", "b", "--out", "out"],
    ]

    def prepare(folder: Path) -> None:
        with_release(folder)
        shutil.copy(_entered(), folder / "other.db")
        with closing(sqlite3.connect(folder / "other.db")) as connection:
            try:
                connection.executescript(statement)
                connection.commit()
            except sqlite3.Error:  # what a column cannot hold
                connection.rollback()
        if spoil is not None:
            content = (folder / "other.db").read_bytes()
            (folder / "other.db").write_bytes(spoilt(Random(spoil), content))

    return rng.choice(commands), prepare


@cache
def _entered() -> Path:
    path = scratch() / "entered.db"
    run = Run("train", "gap", "edge", GaussianDpEvent(4.0), 1e-5)
    for dataset in ("a", "b"):
        Ledger(path).release(Ledger(path).reserve(run, dataset, limit=20.0), "0" * 64)
    Ledger(path).reserve(run, "a")
    return path


# -------------------------------------------------------------------- results of a benchmark


def _rows(rng: Random) -> Case:
    seed, harm = rng.random(), rng.random() < 0.8
    forms = rng.choice([[], ["--json"], ["--format", "csv"], ["--format", "latex"], ["--metric", "macro-f1"]])

    def prepare(folder: Path) -> None:
        inner = Random(seed)
        rows = json.loads(json.dumps(_run_rows()))
        if harm:
            _spoil_value(inner, inner.choice(rows))
        lines = "\n".join(json.dumps(row, default=str) for row in rows) + "\n"
        content = lines.encode()
        (folder / "results").mkdir()
        (folder / "results" / RESULTS).write_bytes(spoilt(inner, content) if inner.random() < 0.2 else content)
        (folder / "suite.toml").write_text(SUITE)

    return ["bench", "suite.toml", "--tables-only", "--out", "results", *forms], prepare


@cache
def _run_rows() -> list[dict[str, Any]]:
    """Rows as a benchmark writes them, without the benchmark."""
    from discreet.bench.execute import head

    scores = {"train": 0.5, "val": 0.4, "test": 0.6}
    found = []
    for number, entry in enumerate(expand(parse_suite(SUITE, "suite"))):
        bad = number == 1
        outcome: dict[str, Any] = {"status": "failed", "reason": "no"} if bad else {"status": "ok", "reason": None}
        measured = {
            **{"metrics": {"accuracy": scores, "macro_f1": scores}, "epsilon_spent": 1.0, "delta": 1e-5},
            **{"covers": "weights", "accounting": "rigorous", "seconds": 0.1},
        }
        costs = {"wall_seconds": 0.2, "peak_rss_mb": 100.0, "started": "2026-01-01T00:00:00", "device": "cpu"}
        found.append({**head(entry.trial), **outcome, **({} if bad else measured), **costs})
    return to_json(found)  # type: ignore[no-any-return]


def _spoil_value(rng: Random, value: Any) -> None:
    """One value somewhere in JSON, changed or gone."""
    spot, key = choose_value(rng, value)
    if rng.random() < 0.2:
        del spot[key]
    else:
        spot[key] = rng.choice(ODD)


# -------------------------------------------------------------------- what a report shows beside a release


def _beside(rng: Random) -> Case:
    seed, harm = rng.random(), rng.random() < 0.8
    option, content = rng.choice(
        [("--attacks", ATTACKS), ("--audit", AUDIT), ("--sweep", CELLS), ("--policy", POLICY), ("page", CELLS)]
    )

    def prepare(folder: Path) -> None:
        inner = Random(seed)
        with_release(folder)
        made = json.loads(json.dumps(content)) if isinstance(content, dict) else content
        if harm and isinstance(made, dict):
            _spoil_value(inner, made)
        text = (made if isinstance(made, str) else json.dumps(made)).encode()
        (folder / "record").write_bytes(spoilt(inner, text) if harm and inner.random() < 0.5 else text)

    if option == "page":
        return ["report", "record", "--out", "out.html"], prepare
    return ["report", "release", option, "record", "--out", "out.html"], prepare


# -------------------------------------------------------------------- outputs at odd places


def _outputs(rng: Random) -> Case:
    """A command that would succeed, with its output at a place that is taken, inside a release, or no place at all."""
    ending, command = rng.choice(
        [
            (".html", ["report", "release"]),
            (".yaml", ["export", "release", "--registry"]),
            (".csv", ["predict", "release", "--data", "graph.npz"]),
            (".parquet", ["predict", "release", "--data", "graph.npz"]),
            ("", ["predict", "release", "--data", "graph.npz", "--per-owner", "--audience", "owner"]),
            (".json", ["evaluate", "release", "--data", "graph.npz", "--epsilon", "1"]),
            ("", ["data", "convert", "graph.npz", "--partitions", "2"]),
            ("", ["extend", "release", "--data", "new.npz", "--epsilon", "1"]),
        ]
    )
    make: dict[str, Callable[[Path], None]] = {
        "free": lambda path: None,
        "file": lambda path: path.write_text("kept"),
        "folder": lambda path: path.mkdir(),
        "dangling": lambda path: path.symlink_to("nowhere"),
        "loop": lambda path: path.symlink_to(path.name),
        "device": lambda path: path.symlink_to("/dev/full"),
    }
    kind = rng.choice(list(make))
    place = rng.choice(["", "", "", "release/", "file/", "deep/er/", "n" * 300 + "/"])

    def prepare(folder: Path) -> None:
        with_release(folder)
        if place in ("", "release/"):
            make[kind](folder / f"{place}out{ending}")

    return [*command, "--out", f"{place}out{ending}"], prepare
