"""A sum over examples that a GPU is asked for again and again: recorded once and played back.

What a noisy step computes takes a GPU less time than Python takes to ask for it. So examples are found on the device
by their positions, in portions of one size. One that is not full is filled up with an example that adds nothing:
exactly zero to every sum, which changes no bit of it. Which portions there are follows from how many examples there
are alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from discreet.arrays import IntArray
from discreet.ops.recordings import Recording

_WARM_UP = 3
"""Sums before recording: libraries make their work space on first use, which a recording must not hold."""


class RecordedSum:
    """``add_up(positions)`` over the positions of any batch, ``portion`` of them at a time.

    ``nobody`` is the position of an example that adds nothing. ``add_up`` must do the same work whatever the positions,
    without waiting for the device, and read everything else where it lies.

    Guarantee: the same sums as without a recording. On a processor nothing is recorded.
    """

    def __init__(self, add_up: Callable[[Tensor], Tensor], portion: int, nobody: int, device: str) -> None:
        """Nothing is computed yet."""
        self._add_up, self._nobody = add_up, nobody
        self._positions = torch.full((portion,), nobody, dtype=torch.int64, device=device)
        self._recording: Recording | None = None
        self._found = torch.empty(0, device=device)
        self._asked = 0

    def sum_over(self, batch: IntArray) -> Tensor | None:
        """The sum over a batch, None if that is empty. Valid until the next one is asked for."""
        total, portion = None, len(self._positions)
        for start in range(0, len(batch), portion):
            part = self._portion(batch[start : start + portion])
            if total is None:
                total = part.clone() if len(batch) > portion else part
            else:
                total.add_(part)
        return total

    def _portion(self, positions: IntArray) -> Tensor:
        filled = np.full(len(self._positions), self._nobody, dtype=np.int64)
        filled[: len(positions)] = positions
        self._positions.copy_(torch.from_numpy(filled))
        if not self._on_gpu() or self._asked < _WARM_UP:
            self._asked += 1
            return self._add_up(self._positions)
        return self._replayed()

    def _on_gpu(self) -> bool:
        return self._positions.device.type == "cuda"

    def _replayed(self) -> Tensor:
        if self._recording is None:
            self._recording = Recording(self._add_up_in_place, self._positions.device)
        self._recording.replay()
        return self._found

    def _add_up_in_place(self) -> None:
        """A sum as it is recorded: from the tensor of positions to one for what was found."""
        self._found = self._add_up(self._positions)
