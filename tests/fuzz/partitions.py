"""Folders of partitions whose manifest, files or columns are not what they say; some are sound."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from discreet.graph import csbm
from discreet.graph.partition_files import file_digest
from discreet.graph.partition_manifest import MANIFEST
from discreet.graph.partition_writer import write_graph
from tests.fuzz.spoil import Case, Random, choose_value, scratch, spoilt

READERS = [
    *(["plan", "--data", "parts", "--method", "mlp"], ["plan", "--data", "parts", "--method", "mlp", "--split=2/4/4"]),
    *(["data", "parts"], ["data", "convert", "parts", "--out", "out", "--partitions", "2"]),
    ["train", "--data", "parts", "--method", "mlp", "--set", "epochs=1", "--set", "hidden=2", "--out", "out"],
]
ODD: list[Any] = [None, True, 0, -1, 1, 1.5, 24.0, 2**40, 2**80, "", "x", "24", "../x", "\0", [], {}, [[]], ["a"], [1]]
EDGES, NODES = "edges-00000.parquet", "nodes-00000.parquet"
FILES = [MANIFEST, EDGES, NODES, "edges-00001.parquet", "nodes-00001.parquet"]


def partitions(rng: Random) -> Case:
    """A graph in two partitions with a value, a column or a file changed, and a command that reads it."""
    change = rng.choice([_same, _changed_value, _changed_value, _changed_value, _changed_column, _changed_file])(rng)
    sealed = rng.random() < 0.7

    def prepare(folder: Path) -> None:
        shutil.copytree(_written(), folder / "parts")
        change(folder / "parts")
        if sealed and (folder / "parts" / MANIFEST).is_file():
            _reseal(folder / "parts")

    return list(rng.choice(READERS)), prepare


@cache
def _written() -> Path:
    folder = scratch() / "partitions"
    write_graph(csbm(num_nodes=24, num_features=3, average_degree=4, phi=0.2, epsilon=0.5), folder, 2)
    return folder


def _same(rng: Random) -> Callable[[Path], None]:
    return lambda folder: None


def _changed_value(rng: Random) -> Callable[[Path], None]:
    """One value of the manifest, anywhere."""
    seed = rng.random()

    def change(folder: Path) -> None:
        inner, path = Random(seed), folder / MANIFEST
        value = json.loads(path.read_text())
        spot, key = choose_value(inner, value)
        if inner.random() < 0.15:
            del spot[key]
        elif inner.random() < 0.1:
            spot[key] = json.loads("[" * 500 + "]" * 500)
        elif isinstance(spot[key], int) and inner.random() < 0.3:
            spot[key] += inner.choice([-1, 1, 12])
        else:
            spot[key] = inner.choice(ODD)
        path.write_text(json.dumps(value))

    return change


def _changed_column(rng: Random) -> Callable[[Path], None]:
    """One column of a file: of another type, other values, another length, or gone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name, how, seed = rng.choice([EDGES, NODES]), rng.randrange(6), rng.random()

    def change(folder: Path) -> None:
        inner = Random(seed)
        table = pq.read_table(folder / name)
        at = inner.randrange(table.num_columns)
        rows = table.num_rows
        odd = [
            pa.array(["x"] * rows),
            pa.array([None] * rows, pa.int64()),
            pa.array([float("nan")] * rows),
            pa.array([2**40] * rows),
            pa.array([-5] * rows),
            pa.array([[1.0]] * rows),
            pa.array([[]] * rows, pa.list_(pa.float32())),
            pa.array([True] * rows),
            pa.array([{"a": 1}] * rows),
        ]
        if how == 0:
            table = table.remove_column(at)
        elif how == 1:
            table = table.slice(0, inner.choice([0, 1, rows - 1]))
        elif how == 2:
            table = table.rename_columns(["other" if i == at else n for i, n in enumerate(table.column_names)])
        else:
            table = table.set_column(at, table.column_names[at], inner.choice(odd))
        made = io.BytesIO()
        pq.write_table(table, made)
        (folder / name).write_bytes(made.getvalue())

    return change


def _changed_file(rng: Random) -> Callable[[Path], None]:
    """A file that is spoilt, gone, or no plain file."""
    name, seed = rng.choice(FILES), rng.random()
    kinds: list[Callable[[Path], None]] = [
        lambda path: path.write_bytes(spoilt(Random(seed), (_written() / path.name).read_bytes())),
        lambda path: None,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"[" * 100_000),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to("/etc/hostname"),
        lambda path: path.mkdir(),
        os.mkfifo,
    ]
    make = rng.choice(kinds)

    def change(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return change


def _reseal(folder: Path) -> None:
    """Make the digests right again, as somebody would who means it."""
    with suppress(ValueError, TypeError, AttributeError, LookupError, OSError, RecursionError):
        stated = json.loads((folder / MANIFEST).read_text())
        for block in stated["blocks"]:
            block["sha256"] = {name: file_digest(folder / name) for name in block["sha256"]}
        (folder / MANIFEST).write_text(json.dumps(stated))
