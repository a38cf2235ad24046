"""A training step recorded on a GPU and played again: what a step computes takes less time than Python takes to ask.

Everything that changes from step to step (batch, learning rate) lies in tensors on the device and is found there by a
counter, so that a step is one call. For public or released rows alone: noisy steps go through the curator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from discreet.ops.recordings import Recording

WORTH_RECORDING = 64
"""Steps of one shape from which recording, which takes as long as some dozens of them, pays."""
_WARM_UP = 3
"""Steps before it: libraries make their work space on first use, which a recording must not hold."""


class RecordedPasses:
    """Passes over rows in batches of one size, each batch a call of ``take(batch, rate)`` with a rate on the device.

    ``generators`` are those that a step draws from. ``take`` must do the same work for every batch of a size, without
    waiting for the device.
    """

    def __init__(
        self,
        take: Callable[[Tensor, Tensor], None],
        rows: Tensor,
        size: int,
        rates: Tensor,
        generators: Iterable[torch.Generator],
    ) -> None:
        """``rates`` hold a row for every step of all passes."""
        self._take, self._size, self._rates = take, size, rates
        self._rows, self._order = rows, rows.clone()
        self._generators = list(generators)
        self._within = torch.arange(size, device=rows.device)
        self._place = torch.zeros((), dtype=torch.int64, device=rows.device)
        self._step = torch.zeros((), dtype=torch.int64, device=rows.device)
        self._recording: Recording | None = None
        self._taken = 0

    def run(self, order: Tensor | None) -> None:
        """One pass, in this order of the rows; None for their own."""
        if order is not None:
            torch.index_select(self._rows, 0, order, out=self._order)
        self._place.zero_()
        for _ in range(len(self._rows) // self._size):
            self._next()
        left = len(self._rows) % self._size
        if left:
            self._take(self._order[-left:], self._rates.index_select(0, self._step.view(1))[0])
            self._step.add_(1)

    def _next(self) -> None:
        self._taken += 1
        if self._recording is not None:
            self._recording.replay()
        elif self._taken <= _WARM_UP:
            self._run_one()
        else:
            self._record()
            self._next()

    def _run_one(self) -> None:
        batch = self._order.index_select(0, self._place * self._size + self._within)
        self._take(batch, self._rates.index_select(0, self._step.view(1))[0])
        self._place.add_(1)
        self._step.add_(1)

    def _record(self) -> None:
        """Write down what a step does, without doing it."""
        self._recording = Recording(self._run_one, self._rows.device, self._generators)
        self._taken -= 1


def adam_rates(rates: Iterable[float], betas: tuple[float, float], device: torch.device) -> Tensor:
    """For each step what Adam multiplies its first moment by, and the root of its second: corrections included."""
    rows = [
        (rate / (1 - betas[0] ** step), 1 / math.sqrt(1 - betas[1] ** step)) for step, rate in enumerate(rates, start=1)
    ]
    return torch.tensor(rows, dtype=torch.float32, device=device)
