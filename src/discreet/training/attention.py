"""Graph attention (Veličković et al. 2018) on edge arrays: memory grows with edges × width, nothing is n × n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from discreet.graph.parts import Topology
from discreet.training.networks import ACTIVATIONS, Dropout, Linear

_SLOPE = 0.2
"""Of the leaky ReLU, as in the paper of GAT."""


@dataclass(frozen=True)
class Edges:
    """Every edge as sender and receiver, a loop at every node included."""

    sender: Tensor
    receiver: Tensor

    @classmethod
    def of(cls, graph: Topology, device: str | torch.device) -> Edges:
        """The edges of a graph, in the order of receivers."""
        source, target = graph.edges()
        loops = np.arange(graph.num_nodes)
        pair = np.concatenate([source, loops]), np.concatenate([target, loops])
        order = np.argsort(pair[1], kind="stable")
        return cls(*(torch.from_numpy(end[order]).to(device) for end in pair))


class AttentionLayer(nn.Module):
    """Each node averages what it receives, weighed by a softmax over its own edges; heads stand side by side."""

    def __init__(self, inputs: int, outputs: int, heads: int, generator: torch.Generator) -> None:
        super().__init__()
        self.linear = Linear(inputs, outputs * heads, generator)
        draws = [torch.rand(heads, outputs, generator=generator, device=generator.device) for _ in range(2)]
        bound = (6 / (outputs + 1)) ** 0.5
        self.sent, self.received = (nn.Parameter((2 * draw - 1) * bound) for draw in draws)
        self._shape = (-1, heads, outputs)

    def forward(self, x: Any, edges: Edges) -> Tensor:
        """One row per node, all heads concatenated."""
        z = self.linear(x).view(self._shape)
        weight = self._weights(z, edges)
        out = torch.zeros_like(z).index_add(0, edges.receiver, weight[:, :, None] * z[edges.sender])
        return out.flatten(start_dim=1)

    def _weights(self, z: Tensor, edges: Edges) -> Tensor:
        """The softmax over the edges that reach each node, by head."""
        score = (z * self.sent).sum(dim=2)[edges.sender] + (z * self.received).sum(dim=2)[edges.receiver]
        score = nn.functional.leaky_relu(score, _SLOPE)
        at = edges.receiver[:, None].expand_as(score)
        empty = torch.full((len(z), score.shape[1]), -torch.inf, device=z.device)
        largest = empty.scatter_reduce(0, at, score.detach(), "amax")
        share = torch.exp(score - largest[edges.receiver])
        total = torch.zeros_like(empty).scatter_add(0, at, share)
        return share / total[edges.receiver]


class Attention(nn.Module):
    """A stack of attention layers: several heads in hidden layers, one in the last.

    ``residual`` adds a second map of the node's own row in every layer, which attention cannot drown.
    ``norms`` brings every hidden row to mean 0 and spread 1 (LayerNorm), and drops entries of the features too.
    """

    def __init__(
        self,
        widths: Sequence[int],
        activation: str,
        dropout: float,
        heads: int,
        generator: torch.Generator,
        *,
        norms: bool = False,
        residual: bool = False,
    ) -> None:
        super().__init__()
        sizes = [widths[0], *(max(1, width // heads) * heads for width in widths[1:-1]), widths[-1]]
        last = len(sizes) - 2
        self.layers = nn.ModuleList(
            AttentionLayer(a, b if depth == last else b // heads, 1 if depth == last else heads, generator)
            for depth, (a, b) in enumerate(pairwise(sizes))
        )
        self.own = nn.ModuleList(Linear(a, b, generator) for a, b in pairwise(sizes)) if residual else None
        self.norms = nn.ModuleList(nn.LayerNorm(b, device=generator.device) for b in sizes[1:-1]) if norms else None
        self.dropout = Dropout(dropout, generator)
        self._activation = ACTIVATIONS[activation]

    def forward(self, x: Any, edges: Edges) -> Tensor:
        """Logits of every node."""
        if self.norms is not None:
            x = self.dropout(x)
        last = len(self.layers) - 1
        for depth in range(last):
            out = self._layer(depth, x, edges)
            x = self.dropout(self._activation(out if self.norms is None else self.norms[depth](out)))
        return self._layer(last, x, edges)

    def _layer(self, depth: int, x: Any, edges: Edges) -> Tensor:
        out: Tensor = self.layers[depth](x, edges)
        return out if self.own is None else out + self.own[depth](x)
