"""What a released network says of every node from its bounded ego-net, in rows of bounded norm (DP-SAGE of DPDGC)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from discreet.arrays import SingleArray
from discreet.graph.parts import PrivatePart
from discreet.ops.rows import clip_rows, finite_rows
from discreet.privacy.levels import NoPrivacy
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query
from discreet.queries.ego_nets import BoundedEgoNets, ReadsEgoNets

AT_ONCE = 4096
"""Ego-nets that are read at once, which bounds memory."""


@dataclass(frozen=True)
class EgoNetOutputs(Query):
    """The network's outputs on the ego-nets of all nodes, centred, rows clipped to ``norm``.

    Input: ``network``, released, which reads ego-nets one by one.

    Guarantee, for every network: as many outputs change as ``reach.touched_examples`` says of examples (and no more
    than there are nodes), each by at most twice ``norm``. An output that is not finite becomes zero.
    """

    proof: ClassVar[str] = PROVED_HERE

    ego_nets: BoundedEgoNets
    num_classes: int
    norm: float = 1.0

    @property
    def words(self) -> str:
        """What is asked."""
        return "the network's outputs on the bounded graph, rows clipped"

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per node."""
        return (self.ego_nets.num_nodes, self.num_classes)

    def bound(self) -> Bound:
        """How far all rows move together in ℓ2."""
        if isinstance(self.ego_nets.level, NoPrivacy):
            return Bound(math.inf, "l2", NO_BOUND)
        rows = min(self.ego_nets.touched()[0], self.ego_nets.num_nodes)
        why = f"one unit changes at most {rows} rows of norm at most {self.norm:g}"
        return Bound(2 * self.norm * math.sqrt(rows), "l2", why, self.norm)

    @torch.no_grad()
    def answer(self, private: PrivatePart, *, network: ReadsEgoNets, **inputs: Any) -> SingleArray:
        """Outputs of all nodes from their bounded ego-nets, a part of them at a time."""
        nodes = np.arange(self.ego_nets.num_nodes)
        parts = []
        for ids in np.array_split(nodes, 1 + len(nodes) // AT_ONCE):
            logits = self.ego_nets.logits(private, ids, network)
            centred = finite_rows(logits - logits.mean(dim=1, keepdim=True))
            parts.append(clip_rows(centred, self.norm))
        return torch.cat(parts).cpu().numpy()
