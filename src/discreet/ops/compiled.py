"""Loops as machine code: made on first use, kept on disk where some folder can be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def compiled(kernel: F, *, in_any_order: bool = False) -> F:
    """The kernel as machine code that lets go of the interpreter, so that threads may run it side by side.

    Its sums are taken as they are written or, where that is said, ``in_any_order``, which is what a processor needs to
    add several numbers at a time. Numbers that are not finite count either way.
    """
    made: F = _compiled(kernel, in_any_order)
    return made


@cache
def _compiled(kernel: Callable[..., Any], in_any_order: bool) -> Any:
    import numba  # late: half a second that only who has much to compute needs to wait

    order: bool | set[str] = {"reassoc", "contract"} if in_any_order else False
    try:
        return numba.njit(cache=True, nogil=True, fastmath=order)(kernel)
    except RuntimeError:  # numba found no place for a cache
        return numba.njit(nogil=True, fastmath=order)(kernel)


def in_threads(kernel: Callable[..., None], portions: Sequence[tuple[Any, ...]], threads: int) -> None:
    """``kernel(*portion)`` for every portion, side by side on so many threads."""
    if threads == 1 or len(portions) <= 1:
        for portion in portions:
            kernel(*portion)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="portions") as pool:
        list(pool.map(lambda portion: kernel(*portion), portions))
