"""What a node's own features say of its class: the first step of hop-bayes.

Where features and labels are public it is :class:`NodeModel`; where they are private it is a network that is trained by
noisy steps, whose view is bounded (``training.networks.BoundedView``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from torch import nn

from discreet.arrays import Array, Arrays, FloatArray, IntArray, SingleArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.methods.own_hop import with_labels
from discreet.methods.public_encoder import encoder_width, leading_directions, ridge_head, spectral_rows
from discreet.methods.stored_arrays import stored_rows
from discreet.ops.rows import portions
from discreet.ops.sparse import map_rows
from discreet.training.descent import Progress, TrainOptions, train_on_features
from discreet.training.networks import module_state, restore_module

FEW = 0.2
"""Labels are few where no more than this share of the nodes is for training."""
_TEMPERATURES = np.geomspace(0.02, 8.0, 61)
"""Tried for logits that are too timid or too sure; neighbours differ by a tenth."""
_JUDGES = 50_000
"""Labels that one number is fitted to at most: more would only take time."""


class NodeModel:
    """P(y | x) by a network, sharpened or flattened by one temperature that fits the validation labels.

    Where labels are few a :class:`FeatureMap` speaks instead if it fits validation labels better.

    Guarantee: reads features, labels and the split, never an edge. For levels where these are public.
    """

    def __init__(self, network: nn.Module) -> None:
        """A network before training."""
        self.network = network
        self.map: FeatureMap | None = None
        self.temperature = 1.0

    def fit(
        self, part: PublicPart, options: TrainOptions, generator: torch.Generator, progress: Progress | None
    ) -> SingleArray:
        """Train the network on labelled training nodes, then choose who speaks, and how surely.

        Returns :meth:`log_probabilities` of the same graph, which are at hand.
        """
        train_on_features(self.network, part, options, generator, progress=progress)
        return _log_probabilities(self._choose(part, generator), self.temperature)

    def _choose(self, part: PublicPart, generator: torch.Generator) -> Array:
        """The network's temperature; where labels are few, or a map and its own, if that fits validation labels better.

        Without validation labels of two classes the network is taken at its word (it has seen the training labels), a
        map preferred. Returns :meth:`logits` of who was chosen.
        """
        logits, judged = self.network_logits(part), has_validation(part)
        self.temperature, least = best_temperature(logits, part) if judged else (1.0, np.inf)
        if not labels_are_few(part):
            return logits
        seed = int(torch.randint(2**31 - 1, (1,), generator=generator, device=generator.device))
        chosen: Array = logits
        for found in FeatureMap.fit(part, softmax(logits.astype(np.float64) / self.temperature, axis=1), seed):
            scores = found.scores(part)
            temperature, loss = best_temperature(scores, part)
            if loss < least:
                self.map, self.temperature, least, chosen = found, temperature, loss, scores
        return chosen

    def network_logits(self, part: PublicPart) -> SingleArray:
        """What the network alone says of every node."""
        device = next(self.network.parameters()).device
        return map_rows(self.network, part.features, device).cpu().numpy()

    def logits(self, part: PublicPart) -> Array:
        """What whoever speaks says of every node, before the temperature."""
        return self.network_logits(part) if self.map is None else self.map.scores(part)

    def log_probabilities(self, part: PublicPart) -> SingleArray:
        """One row per node."""
        return _log_probabilities(self.logits(part), self.temperature)

    def state(self) -> Arrays:
        """Weights and map; the temperature is stored by the estimator."""
        of_map = {} if self.map is None else {"map.basis": self.map.basis, "map.head": self.map.head}
        return {**of_map, **module_state("network", self.network)}

    def restore(self, state: Mapping[str, Array], temperature: float, public: PublicFacts) -> None:
        """Inverse of :meth:`state`."""
        restore_module("network", self.network, state)
        self.map = FeatureMap.restored(state, public) if "map.basis" in state else None
        self.temperature = temperature


@dataclass(frozen=True)
class FeatureMap:
    """A second opinion where labels are few: scores of every class, linear in a node's (unit) features along ``basis``.

    A network that saw twenty labels per class knows little of other nodes; but which features go together can be seen
    on all of them. The map learns what the network thinks of every node (training labels put in) from a few singular
    directions, and a second one learns the opinion of the first.
    """

    basis: FloatArray
    head: FloatArray

    @classmethod
    def restored(cls, state: Mapping[str, Array], public: PublicFacts) -> FeatureMap:
        """From the arrays of a release."""
        width = encoder_width("spectral", None, public)
        basis = stored_rows(state, "map.basis", public.num_features, width)
        return cls(basis, stored_rows(state, "map.head", width, public.num_classes))

    def scores(self, part: PublicPart) -> FloatArray:
        """One row per node."""
        return np.asarray(spectral_rows(part.features, self.basis) @ self.head)

    @classmethod
    def fit(cls, part: PublicPart, opinions: FloatArray, seed: int) -> list[FeatureMap]:
        """Two maps: of what the network thinks, and of what the first map thinks; training labels put in both times."""
        basis = leading_directions(part.features, encoder_width("spectral", None, part.facts), seed)
        rows, maps = spectral_rows(part.features, basis), []
        for _ in range(2):
            found = cls(basis, ridge_head(rows, with_labels(opinions, part) - 1 / part.num_classes))
            scores = rows @ found.head
            opinions = softmax(scores / best_temperature(scores, part)[0], axis=1)
            maps.append(found)
        return maps


def _log_probabilities(logits: Array, temperature: float) -> SingleArray:
    """Computed in double precision, a portion at a time, and held in single: there is a row for every node."""
    found = np.empty(logits.shape, dtype=np.float32)
    for some in portions(len(logits)):
        found[some] = log_softmax(logits[some].astype(np.float64) / temperature, axis=1)
    return found


def best_temperature(logits: Array, part: PublicPart) -> tuple[float, float]:
    """What to divide logits by so that they fit the labels of :func:`_judged_ids` nodes best, and the loss then."""
    rows = _judged_ids(part)
    if len(rows) == 0:
        return 1.0, np.inf
    rows = rows[:: -(-len(rows) // _JUDGES)]
    chosen, labels = logits[rows].astype(np.float64), part.labels[rows]
    losses = [-log_softmax(chosen / t, axis=1)[np.arange(len(rows)), labels].mean() for t in _TEMPERATURES]
    best = int(np.argmin(losses))
    return float(_TEMPERATURES[best]), float(losses[best])


def labels_are_few(part: PublicPart) -> bool:
    """Whether training labels are few; from public ids."""
    return part.facts.num_train <= FEW * part.num_nodes


def has_validation(part: PublicPart) -> bool:
    """Whether labels of validation nodes can judge.

    Those of one class alone are fitted best by naming it with certainty, which takes all ranking from a rare class.
    """
    return len(np.unique(part.labels[part.labelled(part.val_mask)])) > 1


def _judged_ids(part: PublicPart) -> IntArray:
    """The labelled validation nodes; where these cannot judge, the labelled training nodes."""
    return part.labelled(part.val_mask if has_validation(part) else part.train_mask)
