"""Hubs: what the second half of the evidence's budget asks for, decided from what the first half released.

Where classes explain who links to whom, nothing is better than to hear the same again, under other noise. Where the
neighbours of a node agree with each other more than its own class explains, a node is a *hub* that stands for
something, and to hear which hubs one is linked to says more: nodes that share a hub share a class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from discreet.arrays import Array, BoolArray, FloatArray, IntArray, SingleArray
from discreet.graph.parts import PublicPart
from discreet.methods.hop_bayes.reading import LinkModel, centred, reader_inputs
from discreet.ops.rows import portions
from discreet.ops.sparse import SparseMatrix
from discreet.training.descent import Progress, TrainOptions, train_beside
from discreet.training.networks import Activation, Head, widths_of

UNEXPLAINED = 0.15
"""Hubs are asked for where more than this part of the agreement between neighbours is not explained by classes."""
_CLEAR_DEVIATIONS = 3.0
"""... and where what is not explained stands out of its noise by so many standard deviations."""
_FULL_AT = 1.0
"""A hub speaks in full from this many standard deviations of its noise (and as many neighbours) on."""
_TINY = 1e-12
"""Keeps the direction of a row of zeros finite."""


# -------------------------------------------------------------------- whether, and what hubs tell


def asks_for_hubs(
    part: PublicPart,
    first: FloatArray,
    messages: Array,
    receivers: BoolArray,
    noise_std: float,
    links: LinkModel,
) -> bool:
    """Whether neighbours agree more than classes explain: from the released first half, the released table, and public
    labels and messages.
    """
    ids = part.labelled(part.train_mask)
    energies = np.einsum("nc,nc->n", messages, messages)
    if not part.directed:  # see queries.evidence.arranged_sums: training ids hear one another at 1/√2, and no receiver
        energies = np.where(receivers == receivers[ids].any(), energies / 2, 0.0)
    return unexplained(first[ids], part.labels[ids], noise_std, links, float(energies.mean())) > UNEXPLAINED


def unexplained(rows: FloatArray, labels: IntArray, noise_std: float, links: LinkModel, message_energy: float) -> float:
    """The part of the agreement between a node's neighbours that its class does not explain; 0 where noise may be all.

    ``rows`` are noisy sums of messages at nodes whose ``labels`` are public, ``message_energy`` the mean square norm
    of a message. A sum's energy is that of each pair of messages, of each message with itself, and of noise. The last
    two are known on average and taken off, evenly in every direction. What is left along the direction that links
    give a node's class is explained, what is left across is not. Released and public values alone.
    """
    count, across = len(rows), rows.shape[1] - 2
    if count == 0 or across < 1:
        return 0.0
    expected = links.given - 1 / rows.shape[1]
    directions = expected / np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), _TINY)
    energy = along = 0.0
    for some in portions(count):
        part = centred(rows[some])
        energy += float((part**2).sum())
        along += float((np.einsum("nc,nc->n", part, directions[labels[some]]) ** 2).sum())
    by_chance = count * (noise_std**2 + links.mean_degree * message_energy / (across + 1))
    rest = energy - along - across * by_chance
    if rest <= _CLEAR_DEVIATIONS * noise_std**2 * math.sqrt(2 * count * across):
        return 0.0
    return rest / (rest + max(along - by_chance, 0.0))


def hub_messages(rows: FloatArray, noise_std: float, bound: float) -> SingleArray:
    """What each node tells of its neighbours: the direction of its row, shorter where that does not stand out.

    Rows of norm ``bound`` at most (the query makes sure of it), from released values alone.
    """
    messages = np.empty(rows.shape, dtype=np.float32)
    for some in portions(len(rows)):
        part = centred(rows[some])
        norms = np.linalg.norm(part, axis=1, keepdims=True)
        messages[some] = part * (bound / np.maximum(norms, _FULL_AT * (1 + noise_std)))
    return messages


# -------------------------------------------------------------------- a network that reads what hubs tell

_DROPOUT = 0.5
_OWN_DROPOUT = 0.5
"""Of the network, and of what the node model says of a node itself: half, as by default in gap."""
_BLOCKS = 5
"""Own probabilities; sums and what hubs tell, each damped and as directions."""


@dataclass(frozen=True)
class HubReader:
    """How a small network reads what nodes heard of neighbours and of hubs, beside what their features say.

    Where hubs stand for classes, which hub stands for which is more than a few weights can say. Training ids hear one
    another in both halves of the evidence, under the noise that receivers hear under, and their labels are public.
    """

    classes: int
    hidden: int
    layers: int
    activation: Activation

    def new_head(self, generator: torch.Generator) -> Head:
        """The network before training."""
        widths = widths_of(_BLOCKS * self.classes, self.hidden, self.layers, self.classes)
        return Head(widths, self.activation, _DROPOUT, generator)

    def zero_head(self, device: torch.device) -> Head:
        """A head that says nothing: in the place of one that was not needed, or to be filled."""
        head = self.new_head(torch.Generator(device))
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.zero_()
        return head

    def train(
        self,
        network: nn.Module,
        rows: SingleArray,
        part: PublicPart,
        options: TrainOptions,
        generator: torch.Generator,
        progress: Progress | None,
    ) -> Head:
        """Fit the labels of training ids from :func:`hub_inputs` of all nodes: released values and public labels alone.

        ``network`` is the node model's, whose own view is left out half of the time.
        """
        head = self.new_head(generator)

        def view(features: Tensor | SparseMatrix) -> Tensor:
            return torch.softmax(network(features), dim=1)

        beside = torch.from_numpy(rows).to(generator.device)
        train_beside(
            head, network, view, beside, part, options, generator,
            own_dropout=_OWN_DROPOUT, title="hubs", progress=progress,
        )  # fmt: skip
        return head


def hub_inputs(sums: FloatArray, hubs: FloatArray, noise_std: float) -> FloatArray:
    """What a head reads beside a node's own probabilities."""
    return np.hstack([reader_inputs(sums, noise_std), reader_inputs(hubs, noise_std)])


@torch.no_grad()
def head_logits(head: Head, own: FloatArray, rows: FloatArray) -> FloatArray:
    """What the head makes of a node's own probabilities and its :func:`hub_inputs`."""
    device = next(head.parameters()).device
    read = head(torch.from_numpy(np.hstack([own, rows])).float().to(device))
    return np.asarray(read.cpu().numpy().astype(np.float64))
