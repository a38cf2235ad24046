"""The posterior: what the node model says of a node and what it received, in one; the last step of hop-bayes.

:class:`Combiner` learns from public labels. Where they are private two weights are trained by noisy steps
(``training.networks.Weigher``).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

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
    estimate_strength,
    fit_weights,
    some_rows,
    weighed,
)
from discreet.methods.stored_arrays import stored_rows
from discreet.ops.rows import mapped_by_threads, portions
from discreet.training.descent import Progress, TrainOptions
from discreet.training.networks import Head, module_state, restore_module


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
        self.weights = stored_rows(state, "weights", len(START))
        self.reader = Reader(stored_rows(state, "reader", *self.reader.head.shape))
        self.head = restore_module("head", self._hub_reader.zero_head(device), state) if has_head else None
