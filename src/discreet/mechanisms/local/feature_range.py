"""The public range of features: demanded, never read from data."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from discreet.arrays import Array, BoolArray, FloatArray
from discreet.errors import ParameterError

Outside = Literal["refuse", "clip"]
Range = tuple[float, float]


def checked_range(feature_range: Any) -> Range:
    """The range as two finite numbers, the lower first; an error that says what to do where it is not."""
    if feature_range is None:
        raise ParameterError(
            "feature_range must be given: the public range [low, high] of every feature, (0, 1) for example; "
            "reading it from the data would leak the data"
        )
    try:
        low, high = (float(end) for end in feature_range)
    except (TypeError, ValueError):
        raise ParameterError(f"feature_range must be two numbers, low and high, not {feature_range!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise ParameterError(f"feature_range must be two finite numbers, the lower first, not {feature_range!r}")
    return low, high


def checked_outside(outside: Any) -> None:
    """What to do with a feature outside the range must be one of two words."""
    if outside not in ("refuse", "clip"):
        raise ParameterError(f"outside must be refuse or clip, not {outside!r}")


def refuse_outside(rows: Any, feature_range: Range, name_of_row: str | None = "node") -> None:
    """Name a feature that lies outside the range, or is no number, and refuse it.

    ``rows`` is a dense matrix or CSR; an entry that CSR does not store is a zero, which must lie in the range too.
    """
    low, high = feature_range
    dense = isinstance(rows, np.ndarray)
    data: Array = rows if dense else rows.data
    bad = ~((data >= low) & (data <= high))
    if bad.any():
        row, column, value = _first_bad(rows, bad)
    elif not dense and not low <= 0 <= high and rows.nnz < rows.shape[0] * rows.shape[1]:
        row, column, value = _first_unstored(rows)
    else:
        return
    where = f"feature {column}" + (f" of {name_of_row} {row}" if name_of_row else "")
    raise ParameterError(
        f"{where} is {value:g}, outside the public range [{low:g}, {high:g}]: give the true range, "
        "or pass outside='clip' to move such features to its ends"
    )


def _first_bad(rows: Any, bad: BoolArray) -> tuple[int, int, float]:
    if isinstance(rows, np.ndarray):
        row, column = np.unravel_index(int(bad.argmax()), bad.shape)
        return int(row), int(column), float(rows[row, column])
    at = int(bad.argmax())
    return int(np.searchsorted(rows.indptr, at, side="right")) - 1, int(rows.indices[at]), float(rows.data[at])


def _first_unstored(rows: Any) -> tuple[int, int, float]:
    row = int((np.diff(rows.indptr) < rows.shape[1]).argmax())
    stored = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
    return row, int(np.setdiff1d(np.arange(rows.shape[1]), stored)[0]), 0.0


def clipped(values: Array, feature_range: Range) -> FloatArray:
    """Values moved to the ends of the range; what is no number goes to the middle, whatever the others are."""
    low, high = feature_range
    numbers = np.where(np.isnan(values), (low + high) / 2, np.asarray(values, dtype=np.float64))
    return np.clip(numbers, low, high)
