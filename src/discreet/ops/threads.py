"""One thread for small work: there a second gains nothing, and on a busy machine it can cost a hundredfold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread_if(small: bool) -> Iterator[None]:
    """Run the block on one thread if it is small; torch's thread count is put back afterwards."""
    before = torch.get_num_threads()
    if not small or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
