"""A stack of graph convolutions over a whole graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from discreet.ops.sparse import SparseMatrix
from discreet.training.networks import ACTIVATIONS, Dropout, Linear


class Convolutions(nn.Module):
    """Linear maps whose output travels one hop, with a second map for the node's own row where asked.

    ``norms`` brings every hidden row to mean 0 and spread 1 (LayerNorm), and drops entries of the features too.
    """

    def __init__(
        self,
        widths: Sequence[int],
        activation: str,
        dropout: float,
        own_row: bool,
        generator: torch.Generator,
        *,
        norms: bool = False,
    ) -> None:
        super().__init__()
        self.neighbors = nn.ModuleList(Linear(a, b, generator) for a, b in pairwise(widths))
        self.own = nn.ModuleList(Linear(a, b, generator) for a, b in pairwise(widths)) if own_row else None
        self.norms = nn.ModuleList(nn.LayerNorm(b, device=generator.device) for b in widths[1:-1]) if norms else None
        self.dropout = Dropout(dropout, generator)
        self._activation = ACTIVATIONS[activation]

    def first_matrices(self) -> list[Tensor]:
        """What the rows that the network reads are multiplied by."""
        layers = [self.neighbors[0], *([] if self.own is None else [self.own[0]])]
        return [layer.weight for layer in layers if isinstance(layer, Linear)]

    def forward(self, x: Tensor | SparseMatrix, matrix: SparseMatrix) -> Tensor:
        """Logits of every node. Multiplying by W first keeps sparse features sparse and hops narrow."""
        last = len(self.neighbors) - 1
        if self.norms is not None:
            x = self.dropout(x)
        for depth, layer in enumerate(self.neighbors):
            out = matrix @ layer(x)
            if self.own is not None:
                out = out + self.own[depth](x)
            if depth == last:
                break
            normed = out if self.norms is None else self.norms[depth](out)
            x = self.dropout(self._activation(normed))
        return out
