"""Edges with weights: the column of an edge table that says how much an edge counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp

from discreet.arrays import Array, FloatArray
from discreet.errors import GraphError
from discreet.graph.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Weights = Literal["refuse", "ignore", "read"]
WEIGHT_COLUMNS = ("weight", "weights", "edge_weight")
SUM_PLACES = 23
"""Binary places of what is summed over edges: sums of up to 2³⁰ terms of norm 1 are exact, and it is far finer than any
noise."""
_AT_ONCE = 1 << 20
"""Entries."""


def weight_column(columns: list[str], weights: str, schema: Schema) -> str | None:
    """The column of weights: the one that the schema names; with ``read``, one of a usual name. None: none is read."""
    check_weights_option(weights)
    if weights == "ignore":
        return None
    usual = next((name for name in columns if str(name).lower() in WEIGHT_COLUMNS), None)
    found = schema.weight if schema.weight is not None else (usual if weights == "read" else None)
    if weights == "read" and found is None:
        raise GraphError("weights are to be read, but the edge table has no column of weights: name it with weight")
    if found is not None and found not in columns:
        raise GraphError(f"the edge table has no column {found!r}, which is to hold the weights of edges")
    return found


def read_weights(edges: pd.DataFrame, column: str, full: float | None) -> FloatArray:
    """One weight for each row, as a part of ``full``, which counts as a whole edge; what lies beyond [0, 1] is clipped.

    Guarantee: what becomes of a row depends on that row and on what was declared alone.
    """
    import pandas as pd

    numbers = pd.to_numeric(edges[column], errors="coerce").to_numpy(dtype=np.float64)
    missing = np.isnan(numbers)
    if missing.any():
        row = int(missing.argmax())
        raise GraphError(f"row {row} of the edge table has no number in column {column!r}, which holds weights")
    return np.clip(numbers / (1.0 if full is None else full), 0.0, 1.0)


def undeclared(columns: Iterable[str], schema: Schema) -> list[str]:
    """Columns that look like weights, of which nothing is said."""
    return [name for name in columns if str(name).lower() in WEIGHT_COLUMNS and name not in schema.edges_ignored]


def refuse_undeclared(edges: pd.DataFrame, schema: Schema) -> None:
    """Refuse a column that looks like weights of which nothing is said: dropping them in silence is no answer."""
    for column in undeclared(edges.columns, schema):
        if not (edges[column] == 1).all():
            raise GraphError(
                f"the edge table has weights in column {column!r}: read them with --column weight={column} (weight = "
                f'"{column}" under [edges] in schema.toml), or drop them with --column weights=ignore (ignore = '
                f'["{column}"])'
            )


def check_weights_option(weights: str) -> None:
    """Only the words that are known."""
    if weights not in ("refuse", "ignore", "read"):
        raise GraphError(f'weights must be "refuse", "ignore" or "read", not {weights!r}')


def weighted_sums(entries: sp.csr_array, rows: Array) -> FloatArray:
    """Row v adds up weight × row over v's entries, each term cut off, towards zero, at a multiple of 2^−SUM_PLACES.

    Guarantee: sums of up to 2³⁰ terms of norm 1 are exact, so their order does not matter. What an entry of any weight
    in [0, 1] adds lies between 0 and its sender's row, number by number; so one that comes, goes or gets another weight
    moves the sum by no more than the length of that row. Without the lattice partial sums round differently once they
    have moved apart, and at 2¹⁸ neighbours of tiny weights a sum moved further than that by 1e-5 of it.
    """
    receivers = np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))
    steps = np.zeros((entries.shape[0], rows.shape[1]))
    for start in range(0, entries.nnz, _AT_ONCE):  # a table of rows may be larger than memory
        some = slice(start, start + _AT_ONCE)
        weights = entries.data[some].astype(np.float64)[:, None]
        terms = np.trunc(weights * rows[entries.indices[some]] * 2.0**SUM_PLACES)
        first, counts = receivers[start], np.bincount(receivers[some] - receivers[start])
        ends = np.concatenate([[0], np.cumsum(counts)])
        added = sp.csr_array((np.ones(len(terms)), np.arange(len(terms)), ends), shape=(len(counts), len(terms)))
        steps[first : first + len(counts)] += added @ terms
    return steps / 2.0**SUM_PLACES
