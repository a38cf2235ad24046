"""Released inputs of every degree of hostility: what a query must project before its bound holds."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from discreet.arrays import FloatArray


def hostile_rows(count: int, width: int, rng: np.random.Generator, hostility: str) -> FloatArray:
    """Rows of numbers, from harmless to none at all."""
    rows = rng.standard_normal((count, width))
    if hostility == "zeros":
        return np.zeros_like(rows)
    if hostility == "huge":
        return rows * 10.0 ** rng.integers(10, 30)
    if hostility == "flipped":
        return np.where(np.arange(count)[:, None] % 2, -1.0, 1.0) * rows[0]
    if hostility == "aligned":
        return np.tile(rows[0], (count, 1))
    if hostility == "cancelling":
        return rows[0] * 1e8 * np.where(np.arange(count)[:, None] % 2, -1.0, 1.0) + rows
    if hostility == "not finite":
        rows[rng.integers(count)] = rng.choice([np.nan, np.inf, -np.inf])
    return rows


class _Rows(nn.Module):
    """A linear map of features, scaled or broken as asked."""

    def __init__(self, weight: torch.Tensor, hostility: str) -> None:
        super().__init__()
        self.weight, self._hostility = weight, hostility

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        rows = features @ self.weight
        scale = {"zeros": 0.0, "huge": 1e20, "flipped": -1.0, "cancelling": 1e8, "not finite": torch.inf}
        return rows * scale.get(self._hostility, 1.0)


def hostile_network(features: int, width: int, rng: np.random.Generator, hostility: str) -> nn.Module:
    """A released network on features."""
    return _Rows(torch.from_numpy(rng.standard_normal((features, width))).float(), hostility)


LOUD = {"zeros": 0.0, "huge": 1e6, "flipped": -1.0, "cancelling": 1e3}
"""What the weights of a released network are multiplied with."""


@torch.no_grad()
def hostile_parameters(network: nn.Module, rng: np.random.Generator, hostility: str) -> nn.Module:
    """The network with its parameters turned over, blown up, or one of each that is no number."""
    for parameter in network.parameters():
        parameter *= LOUD.get(hostility, 1.0)
        if hostility == "not finite":
            parameter.view(-1)[rng.integers(parameter.numel())] = float(rng.choice([np.nan, np.inf]))
    return network
