"""Released rows that predictions read: several tensors for each graph that was asked, as arrays of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from discreet.arrays import Array, Arrays
from discreet.methods.stored_arrays import SINGLE, stored_rows


def caches_state(caches: Sequence[Sequence[Tensor]]) -> Arrays:
    """``cache.0.1``, ``cache.0.2``, … of the first graph, ``cache.1.1``, … of the next."""
    return {
        f"cache.{number}.{place}": rows.cpu().numpy()
        for number, of_graph in enumerate(caches)
        for place, rows in enumerate(of_graph, start=1)
    }


def restore_caches(state: Mapping[str, Array], shapes: Sequence[Sequence[Sequence[int]]]) -> list[list[Tensor]]:
    """Inverse of :func:`caches_state`; ``shapes`` are those of each graph's caches, in order."""
    return [
        [
            torch.tensor(stored_rows(state, f"cache.{number}.{place}", *shape, types=[SINGLE]))
            for place, shape in enumerate(of_graph, start=1)
        ]
        for number, of_graph in enumerate(shapes)
    ]
