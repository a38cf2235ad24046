"""The mechanisms that make a report of a record's features, by name.

NumPy and cryptography alone: this runs where records live.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import ParameterError
from discreet.limits import shown
from discreet.mechanisms.local.additive_reports import GaussianReports, LaplaceReports
from discreet.mechanisms.local.feature_range import checked_range
from discreet.mechanisms.local.multi_bit import MultiBit

FEATURE_MECHANISMS = ("multi-bit", "one-bit", "laplace", "gaussian")
FeatureEncoder = MultiBit | LaplaceReports | GaussianReports


def checked_epsilon(epsilon: float) -> float:
    """The budget of a report as a number of Python's."""
    if (
        isinstance(epsilon, bool)
        or not isinstance(epsilon, int | float | np.number)
        or (isinstance(epsilon, int) and epsilon > 1e300)
    ):
        raise ParameterError(f"epsilon must be a positive number, not {shown(epsilon)}")
    return float(epsilon)


def feature_encoder(
    mechanism: str, *, width: int, feature_range: Any, epsilon: float, delta: float | None = None
) -> FeatureEncoder:
    """The encoder and rectifier of that name for records with ``width`` features."""
    ends = checked_range(feature_range)
    epsilon = checked_epsilon(epsilon)
    if mechanism == "multi-bit":
        return MultiBit(epsilon, width, ends)
    if mechanism == "one-bit":
        return MultiBit(epsilon, width, ends, sampled=width)
    if mechanism == "laplace":
        return LaplaceReports(epsilon, width, ends)
    if mechanism == "gaussian":
        if delta is not None and not isinstance(delta, int | float | np.number):
            raise ParameterError(f"delta must be a number between 0 and 1, not {shown(delta)}")
        return GaussianReports(epsilon, width, ends, delta=delta or 0.0)
    raise ParameterError(f"mechanism must be one of {', '.join(FEATURE_MECHANISMS)}, not {shown(mechanism)}")
