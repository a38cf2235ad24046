"""Edges up to a moment: the column of an edge table that says when."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from discreet.errors import GraphError, ParameterError
from discreet.graph.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

LOG = logging.getLogger("discreet")
TIME_COLUMNS = ("time", "timestamp", "date")


def select_edges(edges: pd.DataFrame, column: str, until: str) -> pd.DataFrame:
    """The rows up to a moment; where none is left, the holder is told, and nothing is refused: edges may be private.

    Guarantee: whether a row is kept depends on that row alone, so two tables that differ in one edge still do after.
    """
    numbers = edges[column].dtype.kind in "iuf"
    kept = _numbers_until(edges[column], until) if numbers else _dates_until(edges, column, until)
    if len(edges) and not kept.any():
        LOG.warning(f"no edge of the table is from {until!r} or before: column {column!r} says when each was")
    return edges[kept].reset_index(drop=True)


def time_column(edges: pd.DataFrame, schema: Schema) -> str:
    """The column of times: the one that the schema names, or one of a usual name."""
    by_name = {str(column).lower(): str(column) for column in edges.columns}
    found = schema.time or next((by_name[name] for name in TIME_COLUMNS if name in by_name), None)
    if found is None or found not in edges.columns:
        raise GraphError(
            "edges are asked for up to a moment, but the edge table has no column of times: name it with "
            '--column time=NAME, or time = "NAME" under [edges] in schema.toml'
        )
    return found


def _numbers_until(values: pd.Series, until: str) -> pd.Series:
    try:
        return values <= float(until)
    except ValueError:
        raise ParameterError(
            f"the column {values.name!r} holds numbers, so the last moment must be one, not {until!r}"
        ) from None


def _dates_until(edges: pd.DataFrame, column: str, until: str) -> pd.Series:
    """A date without a time means all of that day."""
    import pandas as pd

    written = re.fullmatch(r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2})([ T].*\S)?\s*", until)
    try:
        if written is None:  # 01.06.2024 is the first of June here and the sixth of January there
            raise ValueError(until)
        last = pd.Timestamp(until)
    except (ValueError, OverflowError):
        raise ParameterError(f"the last moment must be a date such as 2024-06-30, not {until!r}") from None
    if written[2] is None:
        last = last + pd.Timedelta(days=1) - pd.Timedelta(1, "ns")
    moments = pd.to_datetime(edges[column], errors="coerce", format="ISO8601", utc=True)
    wrong = moments.isna()
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise GraphError(
            f"column {column!r} of the edge table holds {str(edges[column].iloc[row])!r:.60} in row {row}: write dates "
            "as 2024-06-30"
        )
    return moments <= (last.tz_localize("UTC") if last.tzinfo is None else last)
