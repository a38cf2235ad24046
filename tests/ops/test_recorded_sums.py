"""Sums in portions that are filled up: every example once, whatever the size of the batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from discreet.ops.recorded_sums import RecordedSum


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 20])
def test_every_example_is_added_once(count: int) -> None:
    rows = torch.cat([torch.randn(20, 3, dtype=torch.float64), torch.zeros(1, 3, dtype=torch.float64)])
    sizes = []

    def add_up(positions: torch.Tensor) -> torch.Tensor:
        sizes.append(len(positions))
        return rows[positions].sum(0)

    batch = np.random.default_rng(count).permutation(20)[:count]
    recorded = RecordedSum(add_up, 8, 20, "cpu")
    for _ in range(2):
        found = recorded.sum_over(batch)
        if count == 0:
            assert found is None
            continue
        assert found is not None
        assert torch.allclose(found, rows[batch].sum(0))
    assert set(sizes) <= {8}


def test_a_gpu_records_after_a_few_sums() -> None:
    """With a recording that does what was recorded: sums stay right, and are asked for through it."""
    rows = torch.cat([torch.randn(9, 2), torch.zeros(1, 2)])
    asked = []

    class Played(RecordedSum):
        def _on_gpu(self) -> bool:
            return True

        def _replayed(self) -> torch.Tensor:
            asked.append("replay")
            return self._add_up(self._positions)

    recorded = Played(lambda positions: rows[positions].sum(0), 4, 9, "cpu")
    for start in range(6):
        batch = np.arange(start, start + 3)
        found = recorded.sum_over(batch)
        assert found is not None
        assert torch.allclose(found, rows[batch].sum(0))
    assert len(asked) == 3
