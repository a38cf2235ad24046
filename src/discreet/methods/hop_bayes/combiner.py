"""The posterior: what the node model says of a node and what it received, in one; the last step of hop-bayes.

Where labels are public :class:`Combiner` learns from them; where they are private two weights are trained by noisy
steps (:class:`Weigher`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from discreet.arrays import Array, Arrays, FloatArray
from discreet.graph.parts import PublicPart
from discreet.methods.hop_bayes.evidence import Received
from discreet.methods.hop_bayes.hubs import HubReader, head_logits, hub_inputs
from discreet.methods.hop_bayes.reading import (
    MOST_LABELS,
    START,
    LinkModel,
    Reader,
    blocks,
    class_likelihoods,
    estimate_strength,
    fit_weights,
    some_rows,
    weighed,
)
from discreet.ops.rows import mapped_by_threads, portions
from discreet.ops.sparse import SparseMatrix
from discreet.training.descent import Progress, TrainOptions
from discreet.training.networks import Head, Linear, module_state, restore_module

# -------------------------------------------------------------------- public labels


class Combiner:
    """A few weights on what is known of a receiver, fitted to validation labels; through hubs a small network.

    Before anything is fitted the weights are Bayes' rule, as far as evidence is to be trusted.

    Guarantee: reads released values and public features and labels alone.
    """

    def __init__(self, links: LinkModel, noise_std: float, hub_reader: HubReader) -> None:
        """Begin with Bayes' rule on sums under this noise."""
        self._links, self._noise_std, self._hub_reader = links, noise_std, hub_reader
        self.weights = START
        self.reader = Reader.none(hub_reader.classes)
        self.head: Head | None = None

    def fit_weights(self, part: PublicPart, own: Array, received: Received, receivers: Received) -> None:
        """A reader at training ids; then the weights at validation ids, which the node model has not seen.

        ``own`` are the node model's log-probabilities, ``received`` the rows of all nodes, ``receivers`` those that
        are cached: weights are fitted on what predictions will read.
        """
        taught = some_rows(part.labelled(part.train_mask))
        self.reader = Reader.fit(received.sums[taught], part.labels[taught], part.num_classes, self._noise_std)
        chosen = np.zeros(part.num_nodes, dtype=np.bool_)
        chosen[part.labelled(part.val_mask)] = True
        if part.train_mask is not None:
            chosen &= ~part.train_mask
        judged = np.flatnonzero(chosen[receivers.ids])
        judged = judged[:: max(1, -(-len(judged) // MOST_LABELS))]
        ids = receivers.ids[judged]
        parts = self._blocks(own[ids], receivers.rows(judged), self._strength(receivers))
        self.weights = fit_weights(parts, part.labels[ids])

    def fit_head(
        self,
        part: PublicPart,
        network: nn.Module,
        received: Received,
        options: TrainOptions,
        generator: torch.Generator,
        progress: Progress | None,
    ) -> None:
        """The network that reads what hubs tell, fitted to training labels beside the node model's ``network``."""
        assert received.hubs is not None
        rows = np.empty((part.num_nodes, 4 * part.num_classes), dtype=np.float32)
        sums, hubs = received.sums, received.hubs

        def work(some: slice) -> None:
            rows[some] = hub_inputs(sums[some], hubs[some], self._noise_std)

        with mapped_by_threads(part.num_nodes) as each:
            list(each(work, portions(part.num_nodes)))
        self.head = self._hub_reader.train(network, rows, part, options, generator, progress)

    def logits(self, own: Array, received: Received) -> FloatArray:
        """From all that is known of each receiver; ``own`` are the node model's log-probabilities of the same nodes."""
        strength, found = self._strength(received), np.empty(received.sums.shape)

        def work(some: slice) -> None:
            found[some] = self._logits(own[some], received.rows(some), strength)

        with mapped_by_threads(len(own)) as each:
            list(each(work, portions(len(own))))
        return found

    def _logits(self, own: Array, received: Received, strength: float) -> FloatArray:
        if self.head is None or received.hubs is None:
            return weighed(self.weights, self._blocks(own, received, strength))
        noise_std = received.scale * self._noise_std
        return head_logits(self.head, np.exp(own), hub_inputs(received.sums, received.hubs, noise_std))

    def _strength(self, received: Received) -> float:
        return estimate_strength(received.sums, received.scale * self._noise_std, self._links)

    def _blocks(self, own: Array, received: Received, strength: float) -> FloatArray:
        noise_std = received.scale * self._noise_std
        read = self.reader.scores(received.sums, noise_std)
        return blocks(own, received.sums, noise_std, self._links, hubs=received.hubs, read=read, strength=strength)

    def state(self, device: torch.device, *, with_head: bool) -> Arrays:
        """Weights and reader; and the head where hubs may be asked for, zero if they were not."""
        arrays: Arrays = {"weights": self.weights, "reader": self.reader.head}
        if with_head:
            arrays |= module_state("head", self._hub_reader.zero_head(device) if self.head is None else self.head)
        return arrays

    def restore(self, state: Mapping[str, Array], device: torch.device, *, has_head: bool) -> None:
        """Inverse of :meth:`state`."""
        self.weights, self.reader = state["weights"], Reader(state["reader"])
        self.head = restore_module("head", self._hub_reader.zero_head(device), state) if has_head else None


# -------------------------------------------------------------------- private labels

FLATTENED = 1.5
"""Networks trained by noisy steps are too sure of themselves: by how much their logits are divided to begin with."""

MOST_LOG_ODDS = 20.0
"""No class is held to be less likely than the likeliest by more than a factor with this logarithm."""


class BoundedView(nn.Module):
    """The node model's log-probabilities less their largest, bounded, so that an extreme record stays a number."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor | SparseMatrix) -> Tensor:
        """One row per node."""
        logits = torch.nan_to_num(self.network(features))
        return (logits - logits.amax(dim=1, keepdim=True)).clamp_min(-MOST_LOG_ODDS)


class Weigher(nn.Module):
    """Two weights: logits = w₁·(what the node model says) + w₂·(what the evidence says), and nothing else."""

    def __init__(self, generator: torch.Generator) -> None:
        """Begin with Bayes' rule on a flattened node model."""
        super().__init__()
        self.weights = Linear(2, 1, generator)
        with torch.no_grad():
            self.weights.weight.copy_(torch.tensor([[1 / FLATTENED], [1.0]]))

    def forward(self, own: Tensor, evidence: Tensor) -> Tensor:
        """One number per class."""
        logits: Tensor = self.weights(torch.stack([own, evidence], dim=2)).squeeze(2)
        return logits


def bounded_likelihoods(received: Received, num_nodes: int, noise_std: float, links: LinkModel) -> FloatArray:
    """What the evidence says of every node, at most 0 and bounded below; zero where a node is no receiver."""
    rows = np.zeros((num_nodes, received.sums.shape[1]))
    found = class_likelihoods(received.sums, received.scale * noise_std, links)
    rows[received.ids] = np.maximum(found - found.max(axis=1, keepdims=True), -MOST_LOG_ODDS)
    return rows
