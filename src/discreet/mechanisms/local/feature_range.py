"""The public range of features: demanded, never read from data."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from discreet.arrays import Array, FloatArray
from discreet.errors import ParameterError
from discreet.limits import FEATURE, FEATURE_SPAN, shown

Outside = Literal["refuse", "clip"]
Range = tuple[float, float]


def checked_range(feature_range: Any) -> Range:
    """The range as two finite numbers, the lower first; an error that says what to do where it is not."""
    if feature_range is None:
        raise ParameterError(
            "feature_range must be given: the public range [low, high] of every feature, for example [-1, 1] for "
            "columns that a schema scales; reading it from the data would leak the data"
        )
    try:
        low, high = (float(end) for end in feature_range)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"feature_range must be two numbers, low and high, not {shown(feature_range)}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise ParameterError(f"feature_range must be two finite numbers, the lower first, not {shown(feature_range)}")
    for end in (low, high):
        FEATURE.check("an end of feature_range", end)
    FEATURE_SPAN.check("the difference of the ends of feature_range", high - low)
    return low, high


def checked_outside(outside: Any) -> None:
    """What to do with a feature outside the range must be one of two words."""
    if not isinstance(outside, str) or outside not in ("refuse", "clip"):
        raise ParameterError(f"outside must be refuse or clip, not {shown(outside)}")


def refuse_outside(rows: Any, feature_range: Range) -> None:
    """Refuse features that lie outside the range or are no numbers, in the same words whichever they are.

    ``rows`` is a dense matrix or CSR; an entry that CSR does not store is a zero, which must lie in the range too.
    """
    low, high = feature_range
    dense = isinstance(rows, np.ndarray)
    data: Array = rows if dense else rows.data
    inside = bool(((data >= low) & (data <= high)).all())
    all_stored = dense or rows.nnz == rows.shape[0] * rows.shape[1]
    if not inside or not (all_stored or low <= 0 <= high):
        raise ParameterError(
            f"a feature lies outside the public range [{low:g}, {high:g}] or is no number: give the true range, or "
            "pass outside='clip' to move such features to its ends"
        )


def clipped(values: Array, feature_range: Range) -> FloatArray:
    """Values moved to the ends of the range; what is no number goes to the middle, whatever the others are."""
    low, high = feature_range
    numbers = np.where(np.isnan(values), (low + high) / 2, np.asarray(values, dtype=np.float64))
    return np.clip(numbers, low, high)
