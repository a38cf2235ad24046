"""Commands on the tables of two neighbours, with the same answers of every stage: nothing that they say or write may
differ, but times and what is for the eyes of the owner of a changed record.
"""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from discreet.cli import main
from discreet.mechanisms.curator import Curator

Rows = list[list[str]]
Edges = list[tuple[int, int]]
PEOPLE = 18
HIDING = ("_answer", "_answer_step", "_batch", "_draw_key")
"""Where a curator draws something: what one side got, the other gets again."""
SCHEMA = """
[nodes]
classes = ["a", "b", "rare"]
[edges]
directed = false
[columns.age]
kind = "numeric"
range = [0, 100]
missing = "indicator"
[columns.job]
kind = "category"
categories = ["cook", "smith"]
other = true
missing = "indicator"
"""


class Pair(NamedTuple):
    """Two tables of people, and the rows of whom they differ in."""

    one: tuple[Rows, Edges]
    two: tuple[Rows, Edges]
    unit: int


def people() -> tuple[Rows, Edges]:
    """id, age, job, label and split of everybody, and who knows whom."""
    rng = np.random.default_rng(0)
    rows = [
        [f"p{i}", str(rng.integers(20, 90)), ("cook", "smith")[i % 2], "ab"[i % 2], ("train", "val", "test")[i % 3]]
        for i in range(PEOPLE)
    ]
    return rows, [(i, j) for i in range(PEOPLE) for j in range(i) if rng.random() < 0.15]


def person_removed(only_label: bool) -> Pair:
    """A person whom nobody resembles, with friends, or nobody in that place."""
    rows, edges = people()
    rows[0] = ["p0", "1e11", "astronaut", "rare", "train"]
    if only_label:
        rows = [row if row[0] == "p0" else [*row[:3], "", row[4]] for row in rows]
    edges = [*edges, (0, 5)]
    without = [["p0", "", "", "", "train"], *rows[1:]]
    return Pair((rows, edges), (without, [edge for edge in edges if 0 not in edge]), 0)


def edge_removed() -> Pair:
    """The only friendship there is, or none."""
    rows, _ = people()
    return Pair((rows, [(2, 3)]), (rows, []), -1)


def record_replaced() -> Pair:
    """Another record in the place of a person's, at a level that lets edges be known."""
    rows, edges = people()
    return Pair((rows, edges), ([["p0", "1e11", "astronaut", rows[0][3], "train"], *rows[1:]], edges), 0)


def write(folder: Path, tables: tuple[Rows, Edges]) -> None:
    folder.mkdir()
    rows, edges = tables
    (folder / "nodes.csv").write_text("id,age,job,label,split\n" + "".join(",".join(row) + "\n" for row in rows))
    (folder / "edges.csv").write_text("s,t\n" + "".join(f"p{u},p{v}\n" for u, v in edges))
    (folder / "schema.toml").write_text(SCHEMA)


def replay(monkeypatch: pytest.MonkeyPatch, answers: list[Any], recorded: Iterator[Any] | None) -> None:
    """Keep what curators draw, or give again what was kept; what they would draw is drawn all the same."""
    for name in HIDING:
        real = getattr(Curator, name)

        def draws(self: Curator, *given: Any, real: Any = real) -> Any:
            drawn = real(self, *given)
            answers.append(drawn if recorded is None else next(recorded))
            return answers[-1] if isinstance(answers[-1], bytes) else answers[-1].copy()

        monkeypatch.setattr(Curator, name, draws)


def said_and_written(
    tables: tuple[Rows, Edges], commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> dict[str, object]:
    """Exit code and words of each command, and each file; times are left out."""
    write(Path("people"), tables)
    found: dict[str, object] = {}
    for number, command in enumerate(commands):
        bits = random.Random(number)
        secrets.token_bytes = lambda size=32, bits=bits: bits.randbytes(size)
        code, words = main(command), capsys.readouterr()
        found[f"{number} {command[0]}"] = code, *(_timeless(text) for text in words)
    for path in sorted(Path.cwd().rglob("*")):
        if path.is_file() and path.parent.name != "people":
            found[str(path.relative_to(Path.cwd()))] = path.stat().st_mode, path.read_bytes()
    return found


def _timeless(text: str) -> str:
    return re.sub(r"(seconds|peak_rss_mb)\W+[0-9.e+-]+", r"\1", text)


def commands_of(method: str, level: str, settings: tuple[str, ...]) -> list[list[str]]:
    given = ["--method", method, "--level", level, "--delta", "0.01", *(f"--set={text}" for text in settings)]
    data = ["--data", "people"]
    return [
        ["data", "people", "--level", level],
        ["train", *data, *given, "--out", "release", "--log-level", "debug", "--save-config", "options.toml"],
        ["train", *data, *given, "--split", "50/25/25", "--json"],
        ["verify", "release"],
        ["predict", "release", *data, "--out", "anyone.csv"],
        ["predict", "release", *data, "--out", "own", "--audience", "owner", "--per-owner"],
        ["evaluate", "release", *data, "--epsilon", "1", "--delta", "0.01", "--out", "figures.json"],
        ["report", "release", *data, "--out", "page.html"],
    ]


NODE, LOCAL = "node:promised,max_degree=17", ("feature_range=[-1,1]", "outside=clip", "epochs=1", "hidden=2")
CASES = {
    "dp-mlp, only label": (person_removed(True), "dp-mlp", NODE, ("steps=1", "hidden=2")),
}
LONGER = {
    "lpgnn, features alone": (record_replaced(), "lpgnn", "local:features", LOCAL),
    "gap, only edge": (edge_removed(), "gap", "edge", ("epochs=1", "hidden=2")),
    "dp-mlp": (person_removed(False), "dp-mlp", NODE, ("steps=1", "hidden=2")),
    "gap": (person_removed(False), "gap", NODE, ("steps=1", "hidden=2")),
    "progap": (person_removed(True), "progap", NODE, ("steps=1", "hidden=2")),
    "hop-bayes": (person_removed(True), "hop-bayes", NODE, ("steps=1",)),
    "dpdgc": (person_removed(False), "dpdgc", NODE, ("hidden=2",)),
    "hop-bayes, edge": (edge_removed(), "hop-bayes", "edge", ("epochs=1",)),
    "progap, edge": (edge_removed(), "progap", "edge", ("epochs=1",)),
    "lpgnet": (edge_removed(), "lpgnet", "edge", ("epochs=1",)),
    "dpgcn": (edge_removed(), "dpgcn", "edge", ("epochs=1",)),
    "simgat": (record_replaced(), "simgat", "local", LOCAL),
}


@pytest.mark.parametrize("name", [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in LONGER)])
def test_neighbours_cannot_be_told_apart(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair, *what = {**CASES, **LONGER}[name]
    commands, answers, found = commands_of(*what), [], []
    monkeypatch.setattr(secrets, "token_bytes", secrets.token_bytes)  # set anew for each command, and back at the end
    for side in (pair.one, pair.two):
        with monkeypatch.context() as patched:
            replay(patched, [] if found else answers, iter(list(answers)) if found else None)
            (tmp_path / f"{len(found)}").mkdir()
            patched.chdir(tmp_path / f"{len(found)}")
            found.append(said_and_written(side, commands, capsys))
    one, two = found
    assert one["1 train"][0] == 0
    own = {f"own/p{pair.unit}.csv"}
    assert {key for key in {*one, *two} if one.get(key) != two.get(key)} <= own
