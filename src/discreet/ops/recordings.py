"""What a GPU is asked for again and again: written down on the device that it is asked of, and played back there."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch


class Recording:
    """What ``work`` asks of one device, written down without doing it.

    Torch records on the current device, and on one stream for all recordings, made on the device of the first. On any
    other device work would be done while it is recorded, and a replay would do nothing. So both are given here.
    """

    def __init__(
        self, work: Callable[[], None], device: torch.device, generators: Iterable[torch.Generator] = ()
    ) -> None:
        """``generators`` are those that the work draws from."""
        self._device = device
        self._graph = torch.cuda.CUDAGraph()
        for generator in generators:
            self._graph.register_generator_state(generator)
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        with torch.cuda.device(device), torch.cuda.graph(self._graph, stream=stream):
            work()

    def replay(self) -> None:
        """Do it once; it may still be going on when this returns."""
        with torch.cuda.device(self._device):
            self._graph.replay()
