"""What ``dpdgc`` trains by noisy steps where records are private: a node's features beside its released row of Z."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from discreet.graph.graph import PublicFacts
from discreet.methods.dpdgc.networks import JointMap, JointNetwork
from discreet.methods.feature_model import FeatureModel
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage
from discreet.queries.gradients import OwnRecordSteps, StepRule, planned_parameters
from discreet.training.encoder_modules import Encoder
from discreet.training.networks import Activation

NETWORK = "network"
LAYERS = 2
"""Of a network, where it is one: a layer for each side, then the head."""


@dataclass(frozen=True)
class JointModel:
    """Two linear maps, or a network with a layer for each side, as ``model`` says: by public facts.

    ``rows`` is how many directions of Z it reads, ``rows_hidden`` the width of the layer that reads them; ``encoder``
    makes the user's own, None where there is none.

    Guarantee: one node stands in its own example alone, since the rows of Z are released before (``OwnRecordSteps``).
    """

    level: Level
    facts: PublicFacts
    model: FeatureModel
    rows: int
    rows_hidden: int
    activation: Activation
    encoder: Callable[[torch.Generator], Encoder | None]

    def network(self, generator: torch.Generator) -> JointMap | JointNetwork:
        """Freshly drawn."""
        facts = self.facts
        if self.model.is_linear:
            return JointMap(self.model.widths[0], self.rows, facts.num_classes, generator)
        hidden, own = (self.model.hidden, self.rows_hidden), self.encoder(generator)
        return JointNetwork(facts.num_features, self.rows, hidden, facts.num_classes, self.activation, generator, own)

    def stage(self, share: float, steps: int, clip_norm: float) -> Stage:
        """Its noisy steps."""
        query = OwnRecordSteps(
            self.level,
            "clipped gradients of the network on features and released rows",
            planned_parameters(self.network(torch.Generator()), self.facts.num_train),
            self.facts.num_train,
            StepRule(clip_norm),
            row_norm=self.model.row_norm,
            length_norm=self.model.length_norm,
        )
        return Stage.of(NETWORK, query, share=share, runs=steps)
