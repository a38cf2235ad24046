"""``dpdgc`` where nothing is protected: W is trained as any network is, and rows are read as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from discreet.graph.graph import Graph
from discreet.methods.decoupled_networks import RowNetwork, TwoWeights
from discreet.methods.dpdgc_embedding import FloatArray, Released, random_weight, step_weight
from discreet.methods.optimizers import Adam, cosine
from discreet.methods.training import Progress, TrainOptions, train, training_rows
from discreet.ops.propagation import hop_matrix
from discreet.ops.row_embedding import embed_rows
from discreet.ops.sparse import SparseMatrix, feature_tensor, select_rows

if TYPE_CHECKING:
    from discreet.methods.dpdgc import DPDGC

IntArray = npt.NDArray[np.int64]
FOLDS, TOGETHER = 3, 2
RATE, DROPOUT = 0.003, 0.5
BATCHES = 8
"""Batches an epoch at most: every step moves all of W."""


def plain_rows(model: DPDGC, graph: Graph, residuals: FloatArray, progress: Progress | None) -> Tensor:
    """What the head reads of rows that are not trained: A·W as it is."""
    if model._embedding() == "random":
        weight = random_weight(model, graph.num_nodes)
        return Released(embed_rows(graph.adjacency, weight) / model.row_norm, 0.0).damped()
    step = embed_rows(graph.adjacency.T.tocsr(), residuals)
    return Released(embed_rows(graph.adjacency, step_weight(step, 1.0, 0.0)), 0.0, step).damped()


def weigh_rows(model: DPDGC, graph: Graph, progress: Progress | None) -> tuple[Tensor, TwoWeights]:
    """Log-probabilities of every node from its adjacency row, and how to weigh them against its features.

    Without noise an embedding of rows learns the training labels by heart, and so does a network on features. So both
    are trained again on folds: what is said of a training node comes from networks that never saw its label, and the
    two weights are fitted to that. Other nodes are judged by networks that saw all training labels.
    """
    matrix = hop_matrix(graph, "sum", device=str(model._device))
    features = feature_tensor(graph.features, model._device)
    rows = training_rows(graph)
    order = torch.randperm(len(rows), generator=model._generator, device=model._generator.device).cpu().numpy()
    parts = [rows[order[fold::FOLDS]] for fold in range(min(FOLDS, len(rows)))]
    by_rows = np.zeros((graph.num_nodes, graph.num_classes))
    by_features = np.zeros_like(by_rows)
    for held in parts:
        kept = np.setdiff1d(rows, held) if len(parts) > 1 else rows
        by_rows[held] = _said(model, graph, matrix, kept, "rows", progress)[held]
        by_features[held] = _said(model, graph, features, kept, "features", progress)[held]
    rest = np.setdiff1d(np.arange(graph.num_nodes), rows)
    for _ in range(TOGETHER):
        by_rows[rest] += _said(model, graph, matrix, rows, "rows", progress)[rest] / TOGETHER
    cache = torch.from_numpy(by_rows).float().to(model._device)
    head = TwoWeights(graph.num_classes).to(model._device)
    own = torch.from_numpy(np.exp(by_features)).float().to(model._device)
    _fit_weights(head, torch.cat([own, cache], dim=1), graph, rows)
    return cache, head


def _said(
    model: DPDGC,
    graph: Graph,
    given: Tensor | SparseMatrix,
    rows: IntArray,
    of: str,
    progress: Progress | None,
) -> FloatArray:
    """Log-probabilities of all nodes, by a network on adjacency rows or on features that was trained on these nodes."""
    network: nn.Module
    if of == "rows":
        classes, width = graph.num_classes, model._width(graph.public)
        network = RowNetwork(graph.num_nodes, width, classes, model.activation, DROPOUT, model._generator)
        batch = None if model.batch_size is None else max(model.batch_size, -(-len(rows) // BATCHES))
        options = TrainOptions(2 * model.epochs, RATE, 0.0, batch)
    else:
        network, options = model._feature_network(), model._options()

    def forward(batch: Tensor) -> Tensor:
        logits: Tensor = network(select_rows(given, batch))
        return logits

    labels, kept = torch.tensor(graph.labels, device=model._device), torch.tensor(rows, device=model._device)
    train(network, forward, labels, kept, options, model._generator, title=of, progress=progress)
    with torch.no_grad():
        return torch.log_softmax(network(given), dim=1).cpu().double().numpy()


def _fit_weights(head: TwoWeights, both: Tensor, graph: Graph, rows: IntArray, steps: int = 100) -> None:
    """Two numbers by cross-entropy on the training nodes."""
    kept = torch.tensor(rows, device=both.device)
    labels = torch.tensor(graph.labels, device=both.device)[kept]
    parameters = list(head.parameters())
    optimizer = Adam(parameters)
    for step in range(steps):
        loss = nn.functional.cross_entropy(head(both[kept]), labels)
        optimizer.step(torch.autograd.grad(loss, parameters), 0.05 * cosine(step, steps))
    head.eval()
