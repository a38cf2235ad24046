"""``dpdgc`` where nothing is protected: W is trained as any network is, and rows are read as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from discreet.arrays import FloatArray, IntArray
from discreet.graph.parts import PublicPart
from discreet.methods.dpdgc.embedding import Released, random_weight, step_weight
from discreet.methods.dpdgc.networks import RowNetwork, TwoWeights
from discreet.ops.row_embedding import embed_rows
from discreet.ops.sparse import SparseMatrix, hop_matrix, select_rows
from discreet.training.descent import Adam, Progress, TrainOptions, cosine, train, training_rows
from discreet.training.networks import Activation

FOLDS = 3
"""Parts of the training nodes, each judged by networks that did not see it."""

TOGETHER = 2
"""Networks whose opinions of all other nodes are averaged."""

ROWS_RATE, ROWS_DROPOUT = 0.003, 0.5
"""W has a row per node, so a slow rate and much dropout; twice the epochs of a network on features."""

MOST_BATCHES = 8
"""Batches per epoch at most: every step moves all of W."""

WEIGHT_STEPS, WEIGHT_RATE = 100, 0.05
"""Two numbers in a convex problem: enough to arrive."""


def plain_random_rows(part: PublicPart, width: int, generator: torch.Generator) -> Released:
    """A·W as it is, for a W that is drawn."""
    return Released(embed_rows(part.weighted_adjacency, random_weight(part.num_nodes, width, generator, row_norm=1.0)))


def plain_step_rows(part: PublicPart, residuals: FloatArray) -> Released:
    """The step and A·W as they are, for the W that one step makes."""
    step = embed_rows(part.weighted_adjacency.T.tocsr(), residuals)
    return Released(embed_rows(part.weighted_adjacency, step_weight(step, 0.0, row_norm=1.0)), step=step)


# -------------------------------------------------------------------- rows and features, each with a weight


@dataclass(frozen=True)
class View:
    """One way to look at nodes: what is read of each, a fresh network to read it, and how that is trained.

    ``options`` takes the number of nodes that the network is trained on.
    """

    title: str
    inputs: Tensor | SparseMatrix
    network: Callable[[], nn.Module]
    options: Callable[[int], TrainOptions]

    def log_probabilities(
        self, part: PublicPart, rows: IntArray, generator: torch.Generator, progress: Progress | None
    ) -> FloatArray:
        """Of all nodes, by a network that was trained on the labels of these."""
        network = self.network()

        def forward(batch: Tensor) -> Tensor:
            logits: Tensor = network(select_rows(self.inputs, batch))
            return logits

        labels, kept = (torch.tensor(values, device=generator.device) for values in (part.labels, rows))
        train(network, forward, labels, kept, self.options(len(rows)), generator, title=self.title, progress=progress)
        with torch.no_grad():
            return torch.log_softmax(network(self.inputs), dim=1).cpu().double().numpy()


def view_of_rows(
    part: PublicPart, width: int, activation: Activation, base: TrainOptions, generator: torch.Generator
) -> View:
    """Adjacency rows, read by a network that begins with W; ``base`` says how features are trained on."""

    def network() -> RowNetwork:
        return RowNetwork(part.num_nodes, width, part.num_classes, activation, ROWS_DROPOUT, generator)

    def options(count: int) -> TrainOptions:
        batch = None if base.batch_size is None else max(base.batch_size, -(-count // MOST_BATCHES))
        return TrainOptions(2 * base.epochs, ROWS_RATE, 0.0, batch, base.class_weights)

    return View("rows", hop_matrix(part, "sum", device=str(generator.device)), network, options)


def weigh_views(
    part: PublicPart,
    rows: View,
    features: View,
    generator: torch.Generator,
    progress: Progress | None,
    class_weights: Sequence[float] | None = None,
) -> tuple[Tensor, TwoWeights]:
    """Log-probabilities of every node from its adjacency row, and how to weigh them against its features.

    Without noise an embedding of rows learns the training labels by heart, and so does a network on features. So both
    are trained again on folds: what is said of a training node comes from networks that never saw its label, and the
    two weights are fitted to that. Other nodes are judged by networks that saw all training labels.
    """
    known = training_rows(part)
    by_rows = np.zeros((part.num_nodes, part.num_classes))
    by_features = np.zeros_like(by_rows)
    folds = _folds(known, generator)
    for held in folds:
        kept = np.setdiff1d(known, held) if len(folds) > 1 else known
        by_rows[held] = rows.log_probabilities(part, kept, generator, progress)[held]
        by_features[held] = features.log_probabilities(part, kept, generator, progress)[held]
    rest = np.setdiff1d(np.arange(part.num_nodes), known)
    for _ in range(TOGETHER):
        by_rows[rest] += rows.log_probabilities(part, known, generator, progress)[rest] / TOGETHER
    cache = torch.from_numpy(by_rows).float().to(generator.device)
    own = torch.from_numpy(np.exp(by_features)).float().to(generator.device)
    head = TwoWeights(part.num_classes).to(generator.device)
    _fit_weights(head, torch.cat([own, cache], dim=1), part, known, class_weights)
    return cache, head


def _folds(known: IntArray, generator: torch.Generator) -> list[IntArray]:
    order = torch.randperm(len(known), generator=generator, device=generator.device).cpu().numpy()
    return [known[order[fold::FOLDS]] for fold in range(min(FOLDS, len(known)))]


def _fit_weights(
    head: TwoWeights, both: Tensor, part: PublicPart, rows: IntArray, class_weights: Sequence[float] | None
) -> None:
    """Two numbers by cross-entropy on the training nodes."""
    kept = torch.tensor(rows, device=both.device)
    labels = torch.tensor(part.labels, device=both.device)[kept]
    weights = None if class_weights is None else torch.tensor(class_weights, dtype=both.dtype, device=both.device)
    parameters = list(head.parameters())
    optimizer = Adam(parameters)
    for step in range(WEIGHT_STEPS):
        loss = nn.functional.cross_entropy(head(both[kept]), labels, weights)
        optimizer.step(torch.autograd.grad(loss, parameters), WEIGHT_RATE * cosine(step, WEIGHT_STEPS))
    head.eval()
