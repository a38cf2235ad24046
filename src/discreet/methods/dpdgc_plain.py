"""``dpdgc`` where nothing is protected: W is trained as any network is, and rows are read as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from discreet.graph.graph import Graph
from discreet.methods.decoupled_networks import RowEmbedding
from discreet.methods.dpdgc_embedding import FloatArray, Released, random_weight, step_weight
from discreet.methods.training import Progress, TrainOptions, train, training_rows
from discreet.ops.propagation import hop_matrix
from discreet.ops.row_embedding import embed_rows
from discreet.ops.sparse import SparseMatrix, select_rows

if TYPE_CHECKING:
    from discreet.methods.dpdgc import DPDGC

PLAIN_WIDTH = 256
FOLDS = 5


def plain_rows(model: DPDGC, graph: Graph, residuals: FloatArray, progress: Progress | None) -> Tensor:
    """What the head reads: rows of A·W, or (trained) what networks on adjacency rows say of each node."""
    kind = model._embedding()
    if kind == "trained":
        return _said_of_rows(model, graph, progress)
    if kind == "random":
        weight = random_weight(model, graph.num_nodes)
        return Released(embed_rows(graph.adjacency, weight) / model.row_norm, 0.0).damped()
    step = embed_rows(graph.adjacency.T.tocsr(), residuals)
    return Released(embed_rows(graph.adjacency, step_weight(step, 1.0, 0.0)), 0.0, step).damped()


def _said_of_rows(model: DPDGC, graph: Graph, progress: Progress | None) -> Tensor:
    """Log-probabilities from networks that never saw the node's label, so that the head can trust them as they are.

    Without noise an embedding of adjacency rows can learn the training labels by heart. So the training nodes are
    cut into folds; what is said of a node comes from the network that was trained without its fold, and of
    others from the mean of all.
    """
    matrix = hop_matrix(graph, "sum", device=str(model._device))
    rows = training_rows(graph)
    order = torch.randperm(len(rows), generator=model._generator, device=model._generator.device).cpu().numpy()
    said = np.zeros((graph.num_nodes, graph.num_classes))
    folds = min(FOLDS, len(rows))
    rest = np.setdiff1d(np.arange(graph.num_nodes), rows)
    for fold in range(folds):
        held = rows[order[fold::folds]]
        kept = np.setdiff1d(rows, held) if folds > 1 else rows
        found = _train_on_rows(model, graph, matrix, kept, f"embedding {fold + 1}", progress)
        said[held] = found[held]
        said[rest] += found[rest] / folds
    return torch.from_numpy(said - said.mean(axis=1, keepdims=True)).float()


def _train_on_rows(
    model: DPDGC, graph: Graph, matrix: SparseMatrix, rows: np.ndarray, title: str, progress: Progress | None
) -> FloatArray:
    width = PLAIN_WIDTH if model.width is None else model.width
    network = RowEmbedding(graph.num_nodes, width, graph.num_classes, model.activation, 0.5, model._generator)
    labels = torch.tensor(graph.labels, device=model._device)
    options = TrainOptions(2 * model.epochs, 0.003, 0.0, model.batch_size)

    def forward(batch: Tensor) -> Tensor:
        logits: Tensor = network(select_rows(matrix, batch))
        return logits

    kept = torch.tensor(rows, device=model._device)
    train(network, forward, labels, kept, options, model._generator, title=title, progress=progress)
    with torch.no_grad():
        return torch.log_softmax(network(matrix), dim=1).cpu().double().numpy()
