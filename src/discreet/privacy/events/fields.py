"""Validators of attrs for the fields of events: each names the field and the value that it refuses."""

from __future__ import annotations

import math
from typing import Any

from discreet.errors import PrivacyError


def check_multiplier(event: Any, field: Any, value: Any) -> None:
    """A finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value >= 0):
        raise PrivacyError(f"noise_multiplier must be a finite number of at least 0, not {value!r}")


def check_whole(event: Any, field: Any, value: Any) -> None:
    """A whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PrivacyError(f"{field.name} must be a whole number of at least 1, not {value!r}")


def check_probability(event: Any, field: Any, value: Any) -> None:
    """A number in (0, 1]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise PrivacyError(f"sampling_probability must lie in (0, 1], not {value!r}")
