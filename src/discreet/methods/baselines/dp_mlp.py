"""``dp-mlp``: a network on features alone, trained by noisy clipped gradients ("Features" of the DPAR paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import nn

from discreet.arrays import Array, Arrays, SingleArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods import baselines
from discreet.methods.feature_model import FeatureModel
from discreet.methods.parameters import Rate
from discreet.methods.trained import PrivatelyTrained, TakesEncoder, WeighsClasses, class_shares
from discreet.ops.sparse import map_rows
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage
from discreet.queries.gradients import OwnRecordSteps, planned_parameters
from discreet.training.descent import Progress
from discreet.training.networks import MLP, module_state, restore_module
from discreet.training.private import train_privately

STAGE = "network"


@dataclass(eq=False, repr=False)
class DPMLPClassifier(TakesEncoder, WeighsClasses, PrivatelyTrained):
    """A multilayer perceptron on the features of each node, at level ``node`` or ``neighbor``.

    It reads no edge, so one node touches one example and no degree bound is needed: a bound that the level
    states is ignored, and the plan says so.

    Parameters
    ----------
    linear
        Whether the network is one linear map, on features scaled row by row to norm 4.5. None: by public facts, where
        noise on the parameters of hidden layers would outweigh what labels teach them (``methods.feature_model``).
    row_lengths
        Whether a linear map is also told how long each row was.
    learning_rate
        None: 0.05 for a linear map, 0.01 for a network.

    Guarantee: an example is a node's own features and label; its clipped gradient is the one term that the node
    can change, and it is zero where the node is null. Weights are covered; a prediction reads its own node's
    features and no other's, so all predictions but the protected node's own are.
    """

    declaration = baselines.DP_MLP

    _: KW_ONLY
    linear: bool | None = None
    row_lengths: bool = True
    learning_rate: Rate | None = None

    def _model(self, facts: PublicFacts) -> FeatureModel:
        privacy, own = self.checked_privacy(), self.encoder is not None
        return FeatureModel(privacy, facts, self.hidden, self.layers, self.linear, own, self.row_lengths)

    def _learning_rate(self) -> float:
        return self._model(self.public_).learning_rate(self.learning_rate)

    def _pinned(self) -> Mapping[str, Any]:
        if self.encoder is not None or self.linear is not None:
            return {}
        return {"linear": hasattr(self, "plan_") and self._model(self.public_).is_linear}

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        kind = f"the model is {self._model(public).describe()}"
        return (
            f"{kind}, by public facts (budget, training ids, features)" if self.linear is None else kind,
            "no edge is read, so the degree bound of the level plays no part",
        )

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        facts = public[0]
        question = "clipped gradients of the network on the features of training nodes"
        parameters = planned_parameters(self._network(facts, torch.Generator()), facts.num_train)
        model = self._model(facts)
        query = OwnRecordSteps(
            level,
            question,
            parameters,
            facts.num_train,
            self._rule(),
            row_norm=model.row_norm,
            length_norm=model.length_norm,
        )
        return [*self._count_stages(facts, level), self._training_stage(STAGE, query, facts.num_nodes)]

    def _network(self, public: PublicFacts, generator: torch.Generator) -> nn.Module:
        own = self._own_encoder(public, public.num_classes, generator, dropout=False)
        if own is not None:
            return own
        return MLP(self._model(public).widths, self.activation, 0.0, generator)

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self.network_ = self._watched["network"] = self._network(self.public_, self._generator)
        shares = class_shares(self._class_weights(parts[0], curator))
        train_privately(self.network_, curator, STAGE, self._descent(), progress=progress, **shares)

    @torch.no_grad()
    def _probabilities(self, part: PublicPart) -> SingleArray:
        features = self._model(self.public_).rows(part.features)
        logits = map_rows(self.network_, features, self._device)
        return torch.softmax(logits, dim=1).cpu().numpy()

    def _state(self) -> Arrays:
        return module_state("network", self.network_)

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.network_ = restore_module("network", self._network(self.public_, self._generator), state)
