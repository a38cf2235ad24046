"""Graph networks that run on ego-nets (to train) and on whole graphs (to predict), with the same parameters.

All parameters lie in affine layers, so gradients of single examples are clipped without being formed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from discreet.graph.parts import Topology
from discreet.ops.egonets import EgoNets, EgoTensors
from discreet.ops.slot_rows import SlotRows
from discreet.ops.sparse import SparseMatrix, hop_matrix
from discreet.training.networks import ACTIVATIONS, Activation, Linear

Convolution = Literal["gcn", "sage", "gin", "gat"]


@dataclass(frozen=True)
class EgoShape:
    """What an :class:`EgoNetwork` is made of: rounds of messages of one kind, and linear maps before and after them."""

    convolution: Convolution
    hidden: int
    hops: int
    activation: Activation
    encoder_layers: int = 1
    decoder_layers: int = 1
    heads: int = 1


class Conv(nn.Module, ABC):
    """One round of messages. Senders are weighted sums, so an absent sender (mask false) plays no part."""

    @abstractmethod
    def on_egos(self, own: Tensor, senders: Tensor, mask: Tensor) -> Tensor:
        """New rows of nodes (…, H) from their own rows (…, H), their senders' (…, K, H) and who is there (…, K)."""

    @abstractmethod
    def on_graph(self, rows: Tensor, graph: Topology) -> Tensor:
        """New rows of all nodes, from all their senders."""


def _present(senders: Tensor, mask: Tensor) -> Tensor:
    """Senders with absent ones at zero: chosen, not multiplied, since 0 times an overflow is not 0."""
    return torch.where(mask.unsqueeze(-1), senders, torch.zeros_like(senders))


class GcnConv(Conv):
    """A linear map of the mean over a node and its senders: inverse-degree weights (the DP-GNN paper)."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.map = Linear(width, width, generator)

    def on_egos(self, own: Tensor, senders: Tensor, mask: Tensor) -> Tensor:
        """Mean, then map."""
        total = own + _present(senders, mask).sum(-2)
        mapped: Tensor = self.map(total / (1 + mask.sum(-1, keepdim=True)))
        return mapped

    def on_graph(self, rows: Tensor, graph: Topology) -> Tensor:
        """The same with one sparse product."""
        mapped: Tensor = self.map(hop_matrix(graph, "mean", self_loops=True, device=str(rows.device)) @ rows)
        return mapped


class SageConv(Conv):
    """One map of the node's own row and one of the mean over its senders."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.own, self.others = Linear(width, width, generator), Linear(width, width, generator)

    def on_egos(self, own: Tensor, senders: Tensor, mask: Tensor) -> Tensor:
        """Two maps, added."""
        mean = _present(senders, mask).sum(-2) / mask.sum(-1, keepdim=True).clamp_min(1)
        mapped: Tensor = self.own(own) + self.others(mean)
        return mapped

    def on_graph(self, rows: Tensor, graph: Topology) -> Tensor:
        """The same with one sparse product."""
        mean = hop_matrix(graph, "mean", device=str(rows.device)) @ rows
        mapped: Tensor = self.own(rows) + self.others(mean)
        return mapped


class GinConv(Conv):
    """Two maps of the plain sum over a node and its senders (GIN with ε = 0)."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first, self.second = Linear(width, width, generator), Linear(width, width, generator)

    def _mapped(self, total: Tensor) -> Tensor:
        hidden = self.first(total)
        mapped: Tensor = self.second(torch.relu(nn.functional.layer_norm(hidden, hidden.shape[-1:])))
        return mapped

    def on_egos(self, own: Tensor, senders: Tensor, mask: Tensor) -> Tensor:
        """Sum, then maps."""
        return self._mapped(own + _present(senders, mask).sum(-2))

    def on_graph(self, rows: Tensor, graph: Topology) -> Tensor:
        """The same with one sparse product."""
        return self._mapped(rows + hop_matrix(graph, "sum", device=str(rows.device)) @ rows)


class GatConv(Conv):
    """Dot-product attention of a node over itself and its senders; each head reads its own part of the width."""

    def __init__(self, width: int, generator: torch.Generator, heads: int = 1) -> None:
        super().__init__()
        self.query, self.key, self.value = (Linear(width, width, generator) for _ in range(3))
        self._heads, self._scale = heads, 1 / math.sqrt(width // heads)

    def _split(self, rows: Tensor) -> Tensor:
        """Rows (…, H) as (…, heads, H / heads)."""
        return rows.unflatten(-1, (self._heads, -1))

    def on_egos(self, own: Tensor, senders: Tensor, mask: Tensor) -> Tensor:
        """Weights by softmax over those who are there; by sums, since small products round by how many there are."""
        everyone = torch.cat([own.unsqueeze(-2), _present(senders, mask)], dim=-2)
        there = torch.cat([torch.ones_like(mask[..., :1]), mask], dim=-1)
        keys, values = self._split(self.key(everyone)), self._split(self.value(everyone))
        scores = (keys * self._split(self.query(own)).unsqueeze(-3)).sum(-1) * self._scale
        weights = torch.softmax(scores.masked_fill(~there.unsqueeze(-1), -math.inf), dim=-2)
        return (weights.unsqueeze(-1) * values).sum(-3).flatten(-2)

    def on_graph(self, rows: Tensor, graph: Topology) -> Tensor:
        """The same, entry by entry."""
        sender, receiver = (torch.from_numpy(part).to(rows.device) for part in graph.edges())
        query, key, value = (self._split(map_(rows)) for map_ in (self.query, self.key, self.value))
        own = (query * key).sum(-1) * self._scale
        scores = (query[receiver] * key[sender]).sum(-1) * self._scale
        top = own.scatter_reduce(0, receiver.unsqueeze(1).expand_as(scores), scores, "amax")
        weights, mine = torch.exp(scores - top[receiver]), torch.exp(own - top)
        total = mine.index_add(0, receiver, weights)
        summed = (value * mine.unsqueeze(-1)).index_add(0, receiver, value[sender] * weights.unsqueeze(-1))
        return (summed / total.unsqueeze(-1)).flatten(-2)


CONVOLUTIONS: dict[str, type[Conv]] = {"gcn": GcnConv, "sage": SageConv, "gin": GinConv, "gat": GatConv}


def _conv(shape: EgoShape, generator: torch.Generator) -> Conv:
    if shape.convolution == "gat":
        return GatConv(shape.hidden, generator, shape.heads)
    make: type = CONVOLUTIONS[shape.convolution]
    made: Conv = make(shape.hidden, generator)
    return made


class EgoNetwork(nn.Module):
    """Encoder, ``hops`` rounds of messages, decoder (DP-GNN). Rows are normalised by layer, without parameters.

    ``encoder``, of ``shape.hidden`` outputs, stands in the place of the first linear map; rows must not meet in it.
    """

    def __init__(
        self,
        features: int,
        shape: EgoShape,
        classes: int,
        generator: torch.Generator,
        encoder: nn.Module | None = None,
    ) -> None:
        super().__init__()
        hidden = shape.hidden
        self.encoder = Linear(features, hidden, generator) if encoder is None else encoder
        self.rounds = nn.ModuleList(_conv(shape, generator) for _ in range(shape.hops))
        self.decoder = Linear(hidden, classes, generator)
        self.encoder_maps = nn.ModuleList(Linear(hidden, hidden, generator) for _ in range(shape.encoder_layers - 1))
        self.decoder_maps = nn.ModuleList(Linear(hidden, hidden, generator) for _ in range(shape.decoder_layers - 1))
        self._activation = ACTIVATIONS[shape.activation]

    def _between(self, rows: Tensor, maps: Iterable[nn.Module] = ()) -> Tensor:
        """Normalise and activate, then the same after each further map."""
        rows = self._activation(nn.functional.layer_norm(rows, rows.shape[-1:]))
        for further in maps:
            mapped = further(rows)
            rows = self._activation(nn.functional.layer_norm(mapped, mapped.shape[-1:]))
        return rows

    def _decoded(self, rows: Tensor) -> Tensor:
        """What the last map reads."""
        for further in self.decoder_maps:
            rows = self._between(further(rows))
        return rows

    def on_egos(self, features: Tensor | SparseMatrix | SlotRows, nets: EgoNets | EgoTensors) -> Tensor:
        """Logits of the centres; ``features`` holds the rows of all slots, example by example."""
        examples, slots = nets.index.shape
        encoded: Tensor = self.encoder(features)
        rows = self._between(encoded.view(examples, slots, -1), self.encoder_maps)
        mask = nets.mask_on(rows.device)
        for conv in self.rounds:
            centres = (rows.shape[1] - 1) // nets.fan_in
            senders = slice(1, 1 + centres * nets.fan_in)
            received = rows[:, senders].unflatten(1, (centres, nets.fan_in))
            present = mask[:, senders].unflatten(1, (centres, nets.fan_in))
            rows = self._between(conv.on_egos(rows[:, :centres], received, present))  # type: ignore[operator]
            mask = mask[:, :centres]
        logits: Tensor = self.decoder(self._decoded(rows[:, 0]))
        return logits

    def on_graph(self, features: Tensor | SparseMatrix, graph: Topology) -> Tensor:
        """Logits of all nodes, from their full neighbourhoods."""
        rows = self._between(self.encoder(features), self.encoder_maps)
        for conv in self.rounds:
            rows = self._between(conv.on_graph(rows, graph))  # type: ignore[operator]
        logits: Tensor = self.decoder(self._decoded(rows))
        return logits
