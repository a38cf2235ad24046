"""The training loop that every method without DP-SGD shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from discreet.errors import GraphError
from discreet.graph.graph import Graph
from discreet.methods.optimizers import Adam, cosine
from discreet.ops.sparse import feature_tensor, select_rows
from discreet.ops.threads import one_thread_if

Progress = Callable[[str, int, int], None]
SMALL_BATCH = 4096


@dataclass(frozen=True)
class TrainOptions:
    """How to descend. ``batch_size=None`` takes all rows at once."""

    epochs: int
    learning_rate: float
    weight_decay: float
    batch_size: int | None


def training_rows(graph: Graph) -> np.ndarray:
    """Indices of the labelled training nodes; an error where there is none."""
    rows = np.flatnonzero(graph.mask("train") & (graph.labels >= 0))
    if len(rows) == 0:
        raise GraphError("no training node has a label")
    return rows


def train(
    network: nn.Module,
    forward: Callable[[Tensor], Tensor],
    labels: Tensor,
    rows: Tensor,
    options: TrainOptions,
    generator: torch.Generator,
    *,
    title: str = "training",
    progress: Progress | None = None,
    on_epoch: Callable[[], None] | None = None,
) -> None:
    """Minimise cross-entropy on ``rows`` with Adam and a learning rate that falls to zero along a cosine.

    ``forward(batch)`` gives the logits of those rows; ``on_epoch`` runs before each epoch. There is no early
    stopping and no best epoch: what is returned does not depend on validation data.
    """
    parameters = [p for p in network.parameters() if p.requires_grad]
    optimizer = Adam(parameters, weight_decay=options.weight_decay)
    network.train()
    with threads_for(min(options.batch_size or len(rows), len(rows))):
        for epoch in range(options.epochs):
            rate = options.learning_rate * cosine(epoch, options.epochs)
            if on_epoch is not None:
                on_epoch()
            for batch in batches(rows, options.batch_size, generator):
                loss = nn.functional.cross_entropy(forward(batch), labels[batch])
                optimizer.step(torch.autograd.grad(loss, parameters), rate)
            if progress is not None:
                progress(title, epoch + 1, options.epochs)
    network.eval()


def threads_for(batch: int) -> AbstractContextManager[None]:
    """All threads for large steps, one for small ones."""
    return one_thread_if(batch <= SMALL_BATCH)


def train_on_features(
    network: nn.Module,
    graph: Graph,
    options: TrainOptions,
    generator: torch.Generator,
    *,
    title: str = "training",
    progress: Progress | None = None,
) -> None:
    """Train a row-wise network on the features of the labelled training nodes."""
    features = feature_tensor(graph.features, generator.device)
    rows = torch.tensor(training_rows(graph), device=generator.device)
    everything = select_rows(features, rows)

    def forward(batch: Tensor) -> Tensor:
        chosen = everything if batch is rows else select_rows(features, batch)
        logits: Tensor = network(chosen)
        return logits

    labels = torch.tensor(graph.labels, device=generator.device)
    train(network, forward, labels, rows, options, generator, title=title, progress=progress)


def batches(rows: Tensor, size: int | None, generator: torch.Generator) -> Iterator[Tensor]:
    """All rows at once (the same tensor object each time), or shuffled parts."""
    if size is None or size >= len(rows):
        yield rows
        return
    order = torch.randperm(len(rows), generator=generator, device=generator.device)
    yield from torch.split(rows[order], size)
