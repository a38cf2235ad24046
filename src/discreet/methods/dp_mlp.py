"""``dp-mlp``: a network on features alone, trained by noisy clipped gradients ("Features" of paper 000)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.dpsgd import Touch, change_of
from discreet.methods.base import Arrays
from discreet.methods.networks import MLP, module_state, restore_module, widths_of
from discreet.methods.private_training import (
    IntArray,
    PrivatelyTrained,
    example_losses,
    train_privately,
    training_ids,
)
from discreet.methods.training import Progress
from discreet.ops.sparse import feature_tensor, select_rows
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage

STAGE = "network"


@dataclass(eq=False, repr=False)
class DPMLPClassifier(PrivatelyTrained):
    """A multilayer perceptron on the features of each node, at level ``node`` or ``neighbor``.

    It reads no edge, so one node touches one example and no degree bound is needed: a bound that the level
    states is ignored, and the plan says so.

    Guarantee: an example is a node's own features and label; its clipped gradient is the one term that the node
    can change, and it is zero where the node is null. Weights are covered; a prediction reads its own node's
    features and no other's, so all predictions but the protected node's own are.
    """

    method: ClassVar[str] = "dp-mlp"
    levels: ClassVar[tuple[str, ...]] = ("node", "neighbor")

    @property
    def covers(self) -> str:
        """A prediction reads its own node's features."""
        return "weights+others-predictions"

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        return ("no edge is read, so the degree bound of the level plays no part",)

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        network = self._network(public[0], torch.Generator())
        query = "clipped gradients of the network on the features of training nodes"
        return [self._training_stage(STAGE, query, network, public[0], own_example(level))]

    def _network(self, public: PublicFacts, generator: torch.Generator) -> MLP:
        widths = widths_of(public.num_features, self.hidden, self.layers, public.num_classes)
        return MLP(widths, self.activation, 0.0, generator)

    def _learn(self, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
        self.network_ = self._watched["network"] = self._network(self.public_, self._generator)
        losses = FeatureLosses(self.network_, graphs[0], self._device)
        train_privately(self.network_, losses, curator, STAGE, self._options(), compute=self.compute, progress=progress)

    @torch.no_grad()
    def _probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        logits: Tensor = self.network_(feature_tensor(graph.features, self._device))
        return torch.softmax(logits, dim=1).cpu().numpy()

    def _state(self) -> Arrays:
        return module_state("network", self.network_)

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.network_ = restore_module("network", self._network(self.public_, self._generator), state)


def own_example(level: Level) -> Touch:
    """What a unit touches where an example is a node's own record."""
    return Touch(1, change_of(level), "a node stands in its own example alone, whose gradient is clipped")


class FeatureLosses:
    """One loss a training node, from its own features and label."""

    def __init__(self, network: torch.nn.Module, graph: Graph, device: torch.device) -> None:
        ids = torch.from_numpy(training_ids(graph))
        self._network = network
        self._features = select_rows(feature_tensor(graph.features, device), ids.to(device))
        self._labels = torch.tensor(graph.labels, device=device)[ids.to(device)]

    def __call__(self, positions: IntArray) -> Tensor:
        """The losses of the training nodes at these positions."""
        features, labels = self._features, self._labels
        if len(positions) < len(labels):
            chosen = torch.from_numpy(positions).to(labels.device)
            features, labels = select_rows(features, chosen), labels[chosen]
        return example_losses(self._network(features), labels)
