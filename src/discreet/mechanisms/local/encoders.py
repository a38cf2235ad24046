"""The mechanisms that make a report of a record's features, by name.

NumPy and cryptography alone: this runs where records live.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import ParameterError
from discreet.mechanisms.local.additive_reports import GaussianReports, LaplaceReports
from discreet.mechanisms.local.feature_range import checked_range
from discreet.mechanisms.local.multi_bit import MultiBit

FEATURE_MECHANISMS = ("multi-bit", "one-bit", "laplace", "gaussian")
FeatureEncoder = MultiBit | LaplaceReports | GaussianReports


def feature_encoder(
    mechanism: str, *, width: int, feature_range: Any, epsilon: float, delta: float | None = None
) -> FeatureEncoder:
    """The encoder and rectifier of that name for records with ``width`` features."""
    ends = checked_range(feature_range)
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
        raise ParameterError(f"epsilon must be a positive number, not {epsilon!r}")
    if mechanism == "multi-bit":
        return MultiBit(float(epsilon), width, ends)
    if mechanism == "one-bit":
        return MultiBit(float(epsilon), width, ends, sampled=width)
    if mechanism == "laplace":
        return LaplaceReports(float(epsilon), width, ends)
    if mechanism == "gaussian":
        return GaussianReports(float(epsilon), width, ends, delta=delta or 0.0)
    raise ParameterError(f"mechanism must be one of {', '.join(FEATURE_MECHANISMS)}, not {mechanism!r}")
