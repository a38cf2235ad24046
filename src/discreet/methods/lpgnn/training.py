"""Training on reports: one network over the whole graph, the best epoch chosen by reports of validation nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from discreet.graph.parts import Topology
from discreet.ops.sparse import SparseMatrix, hop_matrix
from discreet.training.attention import Attention, Edges
from discreet.training.convolutions import Convolutions
from discreet.training.descent import Adam, Progress
from discreet.training.networks import Activation

ModelName = Literal["sage", "gcn", "gat"]


def build_network(
    model: ModelName,
    widths: list[int],
    generator: torch.Generator,
    *,
    activation: Activation,
    dropout: float,
    heads: int,
) -> nn.Module:
    """Layers that read denoised rows and the graph."""
    if model == "gat":
        return Attention(widths, activation, dropout, heads, generator)
    return Convolutions(widths, activation, dropout, model == "sage", generator)


def structure_of(model: ModelName, graph: Topology, device: str) -> SparseMatrix | Edges:
    """What the layers of a model read of the graph, which is public."""
    if model == "gat":
        return Edges.of(graph, device)
    if model == "sage":
        return hop_matrix(graph, "mean", device=device)
    return hop_matrix(graph, "mean" if graph.directed else "symmetric", self_loops=True, device=device)


def train_on_reports(
    network: nn.Module,
    forward: Callable[[], Tensor],
    loss: Callable[[Tensor], Tensor],
    score: Callable[[Tensor], float] | None,
    *,
    epochs: int,
    learning_rate: float,
    weight_decay: float,
    patience: int,
    title: str = "training",
    progress: Progress | None = None,
) -> float:
    """Adam on all training nodes at once; the weights of the epoch with the least score are kept, and it is returned.

    ``score`` judges logits of the network at rest, by reports alone; training stops where it has not fallen for
    ``patience`` epochs. Without a score the last epoch is kept.
    """
    parameters = [p for p in network.parameters() if p.requires_grad]
    optimizer = Adam(parameters, weight_decay=weight_decay)
    best, best_state, best_epoch = float("inf"), None, 0
    for epoch in range(epochs):
        network.train()
        value = loss(forward())
        if score is not None:  # before the step: the same weights, so that their products are shared
            found = _at_rest(network, forward, score)
            if found < best:
                best, best_epoch, best_state = found, epoch, _copy(network)
            elif epoch - best_epoch >= patience:
                break
        optimizer.step(torch.autograd.grad(value, parameters), learning_rate)
        if progress is not None:
            progress(title, epoch + 1, epochs)
    if best_state is not None:
        network.load_state_dict(best_state)
    network.eval()
    return best


@torch.no_grad()
def _at_rest(network: nn.Module, forward: Callable[[], Tensor], score: Callable[[Tensor], float]) -> float:
    network.eval()
    return score(forward())


def _copy(network: nn.Module) -> dict[str, Any]:
    return {key: value.detach().clone() for key, value in network.state_dict().items()}
