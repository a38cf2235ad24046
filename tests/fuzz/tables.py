"""Folders of tables with a schema beside them: sound ones, and ones that are spoilt in a few places."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from tests.fuzz.spoil import Case, Random, spoilt

ODD_CELLS = [
    *("", "nan", "inf", "-inf", "1e400", "x", "1,5", '"', '""', "9" * 400, "0x1", "NA", "1e-400", "\0", "true", "None"),
    *(
        "1e308",
        "-1e308",
        str(2**63),
        str(2**64),
        "1_000",
        "١",
        "\ufeff",
        "a\tb",
        "\ud7ff",
        "0000",
        "1.",
        ".5",
        "+1",
        "--1",
    ),
]
# What a column holds, by kind; each is a function of a random generator.
CELLS: dict[str, Callable[[Random], str]] = {
    "number": lambda rng: f"{rng.gauss(0, 1):.3f}",
    "amount": lambda rng: f"{10 ** rng.uniform(-2, 9):.2f}",
    "whole": lambda rng: str(rng.randrange(-3, 100)),
    "flag": lambda rng: rng.choice(["0", "1"]),
    "truth": lambda rng: rng.choice(["yes", "no"]),
    "word": lambda rng: rng.choice(["red", "green", "blue", "NA", ""]),
    "date": lambda rng: f"2024-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
    "constant": lambda rng: "7",
    "missing": lambda rng: rng.choice(["", "NaN", "1"]),
    "text": lambda rng: f"{rng.random()}@example.org",
}
ROLES = [
    *("id=id", "label=label", "split=split", "source=source", "target=target", "time=time", "weights=ignore"),
    *("classes=a,b,c", "classes=a", "ignore=f0", "features=f0", "source=a", "x=y", "id=f0", "label=f0", "time=source"),
    *("ignore=id", "features=", "classes=", "=", "id", "classes=a,a", "source=target"),
]
SCHEMA: dict[str, Any] = {
    "nodes": {"id": "id", "label": "label", "classes": ["a", "b", "c"]},
    "edges": {"source": "source", "target": "target", "directed": False, "ignore": ["time", "weight"]},
}
COLUMN: list[dict[str, Any]] = [
    *({"kind": "numeric", "range": [-3, 3]}, {"kind": "numeric", "range": [0, 1], "missing": "indicator"}),
    *({"kind": "numeric", "range": [0.1, 1e9], "scale": "log", "missing": 1}, {"kind": "as-is"}, {"kind": "ignore"}),
    *({"kind": "category", "categories": ["red", "green"], "other": True}, {"kind": "boolean"}, {"kind": "boolean"}),
    *({"kind": "category", "categories": []}, {"kind": "numeric", "range": [3, -3]}, {"kind": "numeric"}, {}),
    *({"kind": "numeric", "range": [-1e308, 1e308]}, {"kind": "numeric", "range": [0, 0]}, {"kind": "x", "y": 1}),
]
ODD_VALUES = [
    *(None, True, 0, -1, 1.5, "", "x", "f0", "id", [], ["a", "a"], [1], [[]], {}, {"a": 1}, float("inf"), float("nan")),
    *(2**70, "\x7f", "*", "[", "f*", "é", "label"),
]
FULL_WEIGHTS = [1, 1000, 0.5, 0, -1, 1e300, 1e-320, float("nan"), float("inf"), "1", True, None, [1], 2**70]
LEVELS = [
    ["--method", "mlp", "--level", "edge"],
    ["--method", "mlp", "--level", "edge"],
    ["--method", "mlp", "--level", "edge:directed", "--directed"],
    ["--method", "dp-mlp", "--level", "node", "--column", "classes=a,b,c"],
]
UNTIL = ["2024-06-30", "2024-06-30T12:00", "5", "", "nan", "x", "99999-01-01", "1e400", "2024-02-30"]


def tables(rng: Random) -> Case:
    """Two tables, perhaps a schema, and a command that reads them; half of the cases are sound."""
    harm = rng.random() < 0.5
    header, rows = _nodes(rng, harm)
    ends = _edges(rng, [row[0] for row in rows], harm)
    suffix = rng.choice([".csv"] * 6 + [".tsv", ".parquet", ".txt" if harm else ".pq"])
    files = {
        f"nodes{suffix}": _written(rng, [header, *rows], suffix, harm),
        f"edges{suffix}": _written(rng, ends, suffix, harm),
    }
    if rng.random() < 0.4:
        files["schema.toml"] = _schema(rng, header, harm)
    special = _special(rng, list(files)) if harm and rng.random() < 0.1 else {}

    def prepare(folder: Path) -> None:
        (folder / "tables").mkdir()
        for name, content in files.items():
            (folder / "tables" / name).write_bytes(content)
        for name, make in special.items():
            (folder / "tables" / name).unlink()
            make(folder / "tables" / name)

    return _command(rng, harm), prepare


def _command(rng: Random, harm: bool) -> list[str]:
    arguments = ["plan", *rng.choice(LEVELS)] if rng.random() < 0.7 else ["data", "tables"]
    if arguments[0] == "plan":
        arguments += ["--data", "tables"]
        if rng.random() < 0.1:
            arguments += ["--edges-until", rng.choice(UNTIL if harm else UNTIL[:2])]
    elif rng.random() < 0.5:
        arguments += ["--write-schema", "out"]
    elif rng.random() < 0.3:
        arguments = ["data", "convert", "tables", "--out", "out", "--partitions", "2"]
        arguments += ["--edges-until", rng.choice(UNTIL if harm else UNTIL[:2])] if rng.random() < 0.3 else []
    if rng.random() < 0.15:
        arguments += ["--column", rng.choice(["weight=weight", "weights=ignore", "weights=read"])]
    if harm and rng.random() < 0.3:
        arguments += ["--column", rng.choice(ROLES)]
    return arguments


def _nodes(rng: Random, harm: bool) -> tuple[list[str], list[list[str]]]:
    prefix = rng.choice(["", "p", "é", "0", "-", " "])
    names = [f"{prefix}{i}" for i in range(rng.choice([1, 2, 30]) if harm and rng.random() < 0.2 else 30)]
    kinds = [rng.choice(list(CELLS) if harm else list(CELLS)[:-1]) for _ in range(rng.choice([1, 3, 3, 20]))]
    header = ["id", "label", *(f"f{i}" for i in range(len(kinds)))]
    rows = [[name, rng.choice(["a", "b", "c", "a"]), *(CELLS[kind](rng) for kind in kinds)] for name in names]
    if rng.random() < 0.2:
        header.append("split")
        for row in rows:
            row.append(rng.choice(["train", "val", "test", "test"] if not harm else ["train", "val", "", "other"]))
    if harm:
        for _ in range(rng.choice([0, 1, 1, 3])):
            row = rng.choice([header, *rows])
            row[rng.randrange(len(row))] = rng.choice(ODD_CELLS)
    return header, rows


def _edges(rng: Random, names: list[str], harm: bool) -> list[list[str]]:
    head = rng.choice([["source", "target"], ["source", "target"], ["src", "dst"], ["a", "b"]])
    rows = [[rng.choice(names), rng.choice(names)] for _ in range(rng.choice([0, 1, 40, 40, 40]))]
    if rng.random() < 0.3:
        head = [*head, "time"]
        kind = rng.choice(["date", "date", "whole"])
        rows = [[*row, CELLS[kind](rng)] for row in rows]
    if rng.random() < 0.3:
        head = [*head, "weight"]
        amounts = ["1", "0.5", "2", "0", "1000"]
        rows = [[*row, rng.choice([*amounts, "-1", "nan", "1e400", "x", ""] if harm else amounts)] for row in rows]
    if harm and rows and rng.random() < 0.3:
        rng.choice(rows)[rng.randrange(len(head))] = rng.choice([*ODD_CELLS, "nobody"])
    return [head, *rows]


# -------------------------------------------------------------------- as files


def _written(rng: Random, rows: list[list[str]], suffix: str, harm: bool) -> bytes:
    rows = [list(row) for row in rows]
    if harm and rng.random() < 0.15:
        row = rng.choice(rows)
        rng.choice(
            [lambda: row.append("1"), lambda: row.pop(), lambda: rows.append(row), lambda: rows.insert(0, row)]
        )()
    if suffix in (".parquet", ".pq"):
        content = _parquet(rng, rows, harm)
    else:
        content = _text(rng, rows, "\t" if suffix == ".tsv" else ",", harm)
    return spoilt(rng, content) if harm and rng.random() < 0.1 else content


def _text(rng: Random, rows: list[list[str]], separator: str, harm: bool) -> bytes:
    quoted = rng.random() < 0.2
    lines = [separator.join(f'"{cell}"' if quoted else cell for cell in row) for row in rows]
    end = rng.choice(["\n", "\n", "\n", "\r\n", "\r" if harm else "\n"])
    encoding = rng.choice(["utf-16", "latin-1", "utf-8-sig"]) if harm and rng.random() < 0.05 else "utf-8"
    return (end.join(lines) + rng.choice([end, ""])).encode(encoding, "replace")


def _parquet(rng: Random, rows: list[list[str]], harm: bool) -> bytes:
    width = len(rows[0])
    body = [(row + [""] * width)[:width] for row in rows[1:]]
    table = pd.DataFrame(body, columns=pd.Index(_distinct(rows[0])), dtype=object)
    for name in table.columns[1:]:
        numbers = pd.to_numeric(table[name], errors="coerce")
        if harm and rng.random() < 0.2:
            table[name] = rng.choice(
                [
                    pd.Series([[1, 2]] * len(table), dtype=object),
                    pd.Series([{"a": 1}] * len(table), dtype=object),
                    pd.Series([b"x"] * len(table), dtype=object),
                    pd.Series([None] * len(table), dtype=object),
                    pd.Series([pd.Timestamp("2024-01-01")] * len(table)),
                    pd.Series(numbers.fillna(0).astype("complex64").abs()),
                    table[name].astype("category"),
                ]
            )
        elif numbers.notna().all() and len(numbers):
            table[name] = numbers
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=rng.random() < 0.2)
    return buffer.getvalue()


def _distinct(names: list[str]) -> list[str]:
    return [name if name not in names[:place] else f"{name}.{place}" for place, name in enumerate(names)]


def _schema(rng: Random, header: list[str], harm: bool) -> bytes:
    made: dict[str, Any] = json.loads(json.dumps(SCHEMA))
    if rng.random() < (0.5 if harm else 0.2):
        made["columns"] = {
            name: rng.choice(COLUMN if harm else COLUMN[3:5]) for name in header if name not in ("id", "label", "split")
        }
    if harm:
        for _ in range(rng.choice([0, 1, 1, 2])):
            if rng.random() < 0.3:
                made["edges"] |= {"weight": "weight", "full_weight": rng.choice(FULL_WEIGHTS), "ignore": ["time"]}
            table = made[rng.choice(list(made))]
            table[rng.choice([*table, "extra"])] = rng.choice(ODD_VALUES)
    content = "\n".join(_toml(name, table) for name, table in made.items()).encode()
    return spoilt(rng, content) if harm and rng.random() < 0.1 else content


def _toml(name: str, table: dict[str, Any]) -> str:
    lines = [f"{json.dumps(key)} = {_toml_value(value)}" for key, value in table.items()]
    return "\n".join([f"[{name}]", *lines])


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, float) and value != value:
        return "nan"
    if isinstance(value, float) and value in (float("inf"), -float("inf")):
        return "inf"
    return '""' if value is None else json.dumps(value)


def _special(rng: Random, names: list[str]) -> dict[str, Callable[[Path], None]]:
    """One file that is no plain file."""
    kinds: list[Callable[[Path], None]] = [
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.name),
        lambda path: path.mkdir(),
        lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    ]
    return {rng.choice(names): rng.choice(kinds)}
