"""How ``dpar`` predicts: outputs averaged over edges, without noise, so outside its guarantee."""

from __future__ import annotations

import torch
from torch import Tensor

from discreet.graph.parts import Topology
from discreet.ops.sparse import hop_matrix


def average_probabilities(own: Tensor, graph: Topology, steps: int, restart: float) -> Tensor:
    """P steps of Q ← (1 − α)D⁻¹(A + I)Q + αQ₀, which stay probabilities."""
    hop = hop_matrix(graph, "mean", self_loops=True, device=str(own.device))
    rows = own
    for _ in range(steps):
        rows = (1 - restart) * (hop @ rows) + restart * own
    return rows


def average_logits(own: Tensor, graph: Topology, steps: int, restart: float) -> Tensor:
    """P steps of Q ← (1 − α)D⁻¹AQ + αH (the DPAR paper, equation 4); a node that nothing reaches keeps its own row."""
    hop = hop_matrix(graph, "mean", device=str(own.device))
    reached = torch.from_numpy(graph.in_degree() > 0).to(own.device).unsqueeze(1)
    rows = own
    for _ in range(steps):
        rows = torch.where(reached, (1 - restart) * (hop @ rows) + restart * own, own)
    return rows
