"""``mlp``: a network on features alone. It reads no edge, so at edge level it costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field

from discreet.arrays import Array, Arrays, SingleArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods import baselines
from discreet.methods.own_hop import neighbour_mixture
from discreet.methods.trained import TrainedClassifier, WeighsClasses, with_weights
from discreet.ops.sparse import map_rows
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage
from discreet.training.descent import Progress, train_on_features
from discreet.training.networks import MLP, module_state, restore_module, widths_of


@dataclass(eq=False, repr=False)
class MLPClassifier(WeighsClasses, TrainedClassifier):
    """A multilayer perceptron on the features of each node.

    Parameters
    ----------
    inference
        ``features``: a prediction reads its node's features alone. ``own-hop``: it also averages what the network
        says of the node's own neighbours, training labels put in; such a prediction is for its node alone.
    own_weight
        The weight of a node's own row with ``own-hop``.

    Guarantee: at edge level features and labels are public and training reads no edge, so ε = 0 is spent. With
    ``features`` weights and all predictions on any graph are covered; with ``own-hop`` a prediction reads the
    edges at its node and no other, and is covered for that node.
    """

    declaration = baselines.MLP

    _: KW_ONLY
    inference: Literal["features", "own-hop"] = "features"
    own_weight: Annotated[float, Field(ge=0, le=1)] = 0.4

    @property
    def covers(self) -> str:
        """Everything where no edge is read, else each node's own prediction."""
        return "weights+predictions" if self.inference == "features" else "own-prediction"

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        return []

    def _build(self) -> MLP:
        widths = widths_of(self.public_.num_features, self.hidden, self.layers, self.public_.num_classes)
        return MLP(widths, self.activation, self.dropout, self._generator)

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self.network_ = self._watched["network"] = self._build()
        options = with_weights(self._options(), self._class_weights(parts[0], curator))
        train_on_features(self.network_, parts[0], options, self._generator, progress=progress)

    @torch.no_grad()
    def _probabilities(self, part: PublicPart) -> SingleArray:
        logits = map_rows(self.network_, part.features, self._device)
        found = torch.softmax(logits, dim=1).cpu().numpy()
        if self.inference == "features":
            return found
        return neighbour_mixture(found.astype(np.float64), part, self.own_weight).astype(np.float32)

    def _state(self) -> Arrays:
        return module_state("network", self.network_)

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.network_ = restore_module("network", self._build(), state)
