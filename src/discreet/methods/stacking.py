"""Training a head on what a network says of a node beside other inputs, when the network has seen the labels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from discreet.graph.graph import Graph
from discreet.methods.training import Progress, TrainOptions, train, training_rows
from discreet.ops.sparse import SparseMatrix, feature_tensor, select_rows


def train_beside(
    head: nn.Module,
    network: nn.Module,
    view: Callable[[Tensor | SparseMatrix], Tensor],
    beside: Tensor,
    graph: Graph,
    options: TrainOptions,
    generator: torch.Generator,
    *,
    own_dropout: float,
    title: str,
    progress: Progress | None,
) -> None:
    """Fit ``head`` to the training labels from ``view`` of a node's features, and the rows ``beside`` it.

    The network behind ``view`` has seen the labels of training nodes, so what it says of them looks better
    than what it says of any other node, and a head that always saw it would learn to ignore the rest. So it
    is left out at rate ``own_dropout``, and drawn afresh, with the network's dropout, in every epoch.
    """
    device = generator.device
    rows = torch.tensor(training_rows(graph), device=device)
    labels = torch.tensor(graph.labels, device=device)
    features = select_rows(feature_tensor(graph.features, device), rows)
    own = torch.zeros(graph.num_nodes, graph.num_classes, device=device)

    def redraw() -> None:
        network.train()
        with torch.no_grad():
            own[rows] = view(features)
        network.eval()

    def forward(batch: Tensor) -> Tensor:
        seen = torch.rand(len(batch), 1, generator=generator, device=device) >= own_dropout
        logits: Tensor = head(torch.cat([own[batch] * seen, beside[batch]], dim=1))
        return logits

    train(head, forward, labels, rows, options, generator, title=title, progress=progress, on_epoch=redraw)
