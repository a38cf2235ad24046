"""Edges with weights: the column of an edge table that says how much an edge counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from discreet.arrays import FloatArray
from discreet.errors import GraphError
from discreet.graph.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Weights = Literal["refuse", "ignore", "read"]
WEIGHT_COLUMNS = ("weight", "weights", "edge_weight")


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


def refuse_undeclared(edges: pd.DataFrame, schema: Schema) -> None:
    """Refuse a column that looks like weights of which nothing is said: dropping them in silence is no answer."""
    for column in edges.columns:
        named = str(column).lower() in WEIGHT_COLUMNS and column not in schema.edges_ignored
        if named and not (edges[column] == 1).all():
            raise GraphError(
                f"the edge table has weights in column {column!r}: read them with --column weight={column} (weight = "
                f'"{column}" under [edges] in schema.toml), or drop them with --column weights=ignore (ignore = '
                f'["{column}"])'
            )


def check_weights_option(weights: str) -> None:
    """Only the words that are known."""
    if weights not in ("refuse", "ignore", "read"):
        raise GraphError(f'weights must be "refuse", "ignore" or "read", not {weights!r}')
