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
        found = recorded.over(batch)
        if count == 0:
            assert found is None
            continue
        assert found is not None
        assert torch.allclose(found, rows[batch].sum(0))
    assert set(sizes) <= {8}
