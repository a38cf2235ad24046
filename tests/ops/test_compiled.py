"""Machine code of loops, with and without a place to keep it."""

from __future__ import annotations

from typing import Any

import numba
import pytest

from discreet.ops.compiled import compiled


def test_a_read_only_home_costs_the_cache_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    real = numba.njit

    def without_cache(*given: Any, **options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(*given, **options)

    monkeypatch.setattr(numba, "njit", without_cache)

    def double(x: int) -> int:
        return 2 * x

    assert compiled(double)(3) == 6
