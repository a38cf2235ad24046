"""A recording is made and played back on the device of its work, whatever device is current."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from discreet.ops.recordings import Recording


class _Torch:
    """Stands for what torch does: which device is current, and what happened on which."""

    def __init__(self) -> None:
        self.current = torch.device("cuda:0")
        self.seen: list[tuple[str, torch.device]] = []

    def note(self, what: str) -> None:
        self.seen.append((what, self.current))

    @contextmanager
    def device(self, device: torch.device) -> Iterator[None]:
        before, self.current = self.current, device
        yield
        self.current = before

    @contextmanager
    def graph(self, graph: _Graph, stream: torch.device) -> Iterator[None]:
        with self.device(stream):
            yield


class _Graph:
    def __init__(self, torch_: _Torch) -> None:
        self._torch = torch_

    def replay(self) -> None:
        self._torch.note("replay")


def test_recordings_keep_to_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    stands = _Torch()
    monkeypatch.setattr(torch.cuda, "device", stands.device)
    monkeypatch.setattr(torch.cuda, "graph", stands.graph)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: device)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: _Graph(stands))
    second = torch.device("cuda:1")
    recording = Recording(lambda: stands.note("work"), second)
    recording.replay()
    assert stands.seen == [("work", second), ("replay", second)]
    assert stands.current == torch.device("cuda:0")


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two CUDA devices here")
def test_a_second_device_records_after_the_first() -> None:
    for device in (torch.device("cuda:0"), torch.device("cuda:1")):
        total = torch.zeros(1, device=device)

        def add(total: torch.Tensor = total) -> None:
            total.add_(1)

        add()
        recording = Recording(add, device)
        assert float(total) == 1
        recording.replay()
        assert float(total) == 2
