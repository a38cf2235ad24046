"""Loops as machine code: made on first use, kept on disk where some folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def compiled(kernel: F) -> F:
    """The kernel as machine code that lets go of the interpreter, so that threads may run it side by side."""
    made: F = _compiled(kernel)
    return made


@cache
def _compiled(kernel: Callable[..., Any]) -> Any:
    import numba  # late: half a second that only who has much to compute needs to wait

    try:
        return numba.njit(cache=True, nogil=True)(kernel)
    except RuntimeError:  # numba found no place for a cache
        return numba.njit(nogil=True)(kernel)
