"""Reading one file of a graph in partitions: its columns, its entries, its digest (see ``graph.partitions``)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Array, SingleArray
from discreet.errors import DataNotFoundError, GraphError, ParameterError
from discreet.graph.partition_manifest import StoredBlock

UNREADABLE = (OSError, LookupError, ValueError, TypeError, NotImplementedError)
"""What pyarrow raises over a file that is no sound Parquet file."""


def read_columns(path: Path, columns: Sequence[str]) -> list[Any]:
    """Columns of a Parquet file as arrays of pyarrow, each in one piece."""
    parquet = import_parquet()
    check_plain(path)
    try:
        table = parquet.read_table(path, columns=list(columns), memory_map=True, use_threads=False)
        return [table.column(name).combine_chunks() for name in columns]
    except UNREADABLE:
        raise GraphError(f"{path} is not a partition with the columns {', '.join(columns)}") from None


def check_plain(path: Path) -> None:
    """Refuse what is not there, and what would never end: a pipe, or a link to a device."""
    if not path.is_file():
        raise DataNotFoundError(f"there is no partition {path}")


def import_parquet() -> Any:
    """pyarrow's reader and writer; an error that says what to install."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ParameterError("graphs in partitions need pyarrow: install discreet[cluster]") from error
    return pyarrow.parquet


def read_edges(
    folder: Path, block: StoredBlock, num_nodes: int, *, weighted: bool
) -> tuple[Array, Array, SingleArray | None]:
    """CSR rows (indptr, indices, weights) of the entries that reach the block's nodes; another file is refused.

    What is wrong is said without a node or a number: entries are private.
    """
    columns = ["source", "target", *(["weight"] if weighted else [])]
    source, target, *rest = (np.asarray(part) for part in read_columns(folder / block.edges_file, columns))
    wrong = GraphError(f"{folder / block.edges_file} does not hold the entries that its manifest states")
    if source.dtype.kind != "i" or target.dtype.kind != "i" or len(source) != block.entries:
        raise wrong
    if len(source):
        key_rises = (np.diff(target) > 0) | ((np.diff(target) == 0) & (np.diff(source) > 0))
        inside = block.first <= int(target[0]) and int(target[-1]) < block.rows.stop
        scales = all(w.dtype == np.float32 and bool(((w >= 0) & (w <= 1)).all()) for w in rest)
        known = int(source.min()) >= 0 and int(source.max()) < num_nodes
        if not (inside and scales and known and key_rises.all() and (source != target).all()):
            raise wrong
    counts = np.bincount(target - block.first, minlength=block.nodes)
    index = np.int32 if max(num_nodes, block.entries) < 2**31 - 1 else np.int64
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    return indptr, source.astype(index, copy=False), rest[0] if rest else None


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    check_plain(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
