"""What LPGNet and ProGAP share: stages, each a network that reads what the neighbours said at the stage before.

Stage 0 is a network on features. After it, and after every stage but the last, each node tells its neighbours
what the stage made of it; what arrives passes through the curator and is cached. The next stage's network reads a
node's own class probabilities beside all that has arrived so far. Prediction reads features and caches, no edge.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.arrays import Array, Arrays, FloatArray, SingleArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import GraphKeys, PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods.caches import caches_state, restore_caches
from discreet.methods.extension import unpaid_edges
from discreet.methods.trained import StartsHead, WeighsClasses, with_weights
from discreet.ops.sparse import feature_tensor, hop_matrix
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Stage
from discreet.privacy.query import Query
from discreet.queries.kept_edges import KEY, refuse_thinned
from discreet.training.descent import Progress, train_beside, train_on_features
from discreet.training.networks import MLP, Head, OwnView, modules_state, restore_modules, scaled_rows, widths_of


@dataclass(eq=False, repr=False)
class ProgressiveClassifier(WeighsClasses, StartsHead):
    """A classifier in stages: a subclass says what nodes tell (:meth:`_messages`) and how it is asked (:meth:`_query`).

    Parameters
    ----------
    stages
        How often nodes tell their neighbours something: the number of stages after the first network.
    head_dropout
        Dropout in the networks after the first, whose inputs are few and noisy; ``dropout`` is the first one's.
    own_dropout
        How often these networks are trained without a node's own class probabilities, which look better on training
        nodes than on any other.
    """

    _: KW_ONLY
    stages: Annotated[int, Field(ge=1, le=16)] = 2
    head_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    own_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5

    # ---------------------------------------------------------------- what a subclass writes

    @abstractmethod
    def _query(self, facts: PublicFacts, level: Level, stage: int) -> Query:
        """What is asked of the neighbours at this stage."""

    @abstractmethod
    def _messages(self, part: PublicPart, logits: Tensor) -> Tensor:
        """What every node tells its neighbours, one row per node, one column per class."""

    @abstractmethod
    def _inputs(self, messages: Tensor) -> dict[str, Any]:
        """The same as the query takes it."""

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        return [
            Stage.of(stage_name(number, stage), self._query(facts, level, stage), graph=number)
            for stage in range(1, self.stages + 1)
            for number, facts in enumerate(public)
        ]

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self._make_networks(self._generator)
        self._watched = self._modules()
        self.keys_ = GraphKeys.of(parts)
        self.caches_: list[list[Tensor]] = [[] for _ in parts]
        weights = self._class_weights(parts[0], curator)
        self._train_encoder(parts[0], curator, weights, progress)
        for stage in range(1, self.stages + 1):
            for number, part in enumerate(parts):
                self._receive(part, number, stage, curator)
            self._train_head(stage, parts[0], curator, weights, progress)

    def _receive(self, part: PublicPart, number: int, stage: int, curator: Curator) -> None:
        """Ask for what arrives at a stage, and cache it as networks read it."""
        arrived = torch.from_numpy(self._ask(part, number, stage, curator)).float().to(self._device)
        noise_std = curator.plan.stage(stage_name(number, stage)).noise_std
        evidence = self._starts_from_evidence(self.public_)
        self.caches_[number].append(scaled_rows(arrived, noise_std, evidence=evidence))

    def _make_networks(self, generator: torch.Generator) -> None:
        self.encoder_, self.heads_ = self._networks(self.public_, generator)

    def _networks(self, facts: PublicFacts, generator: torch.Generator) -> tuple[MLP, list[Head]]:
        classes = facts.num_classes
        encoder = MLP(
            widths_of(facts.num_features, self.hidden, self.layers, classes), self.activation, self.dropout, generator
        )
        heads = [
            Head(
                widths_of((1 + stage) * classes, self.hidden, self.layers, classes),
                self.activation,
                self.head_dropout,
                generator,
            )
            for stage in range(1, self.stages + 1)
        ]
        if self._starts_from_evidence(facts):
            for head in heads:
                head.start_from_evidence(classes)
        return encoder, heads

    def _train_encoder(
        self, part: PublicPart, curator: Curator, weights: FloatArray | None, progress: Progress | None
    ) -> None:
        options = with_weights(self._options(), weights)
        train_on_features(self.encoder_, part, options, self._generator, title="stage 0", progress=progress)

    def _train_head(
        self, stage: int, part: PublicPart, curator: Curator, weights: FloatArray | None, progress: Progress | None
    ) -> None:
        train_beside(
            self.heads_[stage - 1],
            self.encoder_,
            self._own_view(),
            torch.cat(self.caches_[0], dim=1),
            part,
            with_weights(self._options(), weights),
            self._generator,
            own_dropout=self.own_dropout,
            title=f"stage {stage}",
            progress=progress,
        )

    def _own_view(self) -> OwnView:
        return OwnView(self.encoder_, nn.Identity(), logarithms=self._starts_from_evidence(self.public_))

    def _ask(self, part: PublicPart, number: int, stage: int, curator: Curator) -> Array:
        messages = self._messages(part, self._logits(part, self.caches_[number]))
        found: Array = curator.ask(stage_name(number, stage), **self._inputs(messages))
        return found

    @torch.no_grad()
    def _logits(self, part: PublicPart, arrived: Sequence[Tensor]) -> Tensor:
        """What the stage that follows after so many arrivals makes of every node."""
        features = feature_tensor(part.features, self._device)
        if not arrived:
            return self.encoder_(features)
        own = self._own_view()(features)
        return self.heads_[len(arrived) - 1](torch.cat([own, *arrived], dim=1))

    # ---------------------------------------------------------------- one more graph

    def _extension_stages(self, public: PublicFacts, number: int, level: Level) -> list[Stage]:
        """All stages of the new graph, under the released networks."""
        refuse_thinned(level)
        stages = range(1, self.stages + 1)
        return [Stage.of(stage_name(number, stage), self._query(public, level, stage)) for stage in stages]

    def _aggregate(self, part: PublicPart, number: int, curator: Curator) -> None:
        if self._records_are_private():
            curator.draw_key(KEY)
        self.caches_ = [*self.caches_, []]
        for stage in range(1, self.stages + 1):
            self._receive(part, number, stage, curator)
        self.keys_ = self.keys_.with_graph(part)

    # ---------------------------------------------------------------- predict

    def _uncovered(self, part: PublicPart) -> str | None:
        if isinstance(self.checked_privacy().level, NoPrivacy) or self.keys_.find(part) is not None:
            return None
        return unpaid_edges("what its nodes tell")

    def _probabilities(self, part: PublicPart) -> SingleArray:
        number = self.keys_.find(part)
        arrived = self._plain_arrivals(part) if number is None else self.caches_[number]
        return torch.softmax(self._logits(part, arrived), dim=1).cpu().numpy()

    def _plain_arrivals(self, part: PublicPart) -> list[Tensor]:
        """What arrives without noise, for graphs that nothing protects."""
        matrix = hop_matrix(part, "sum", device=str(self._device))
        arrived: list[Tensor] = []
        evidence = self._starts_from_evidence(self.public_)
        for _ in range(self.stages):
            sums = matrix @ self._messages(part, self._logits(part, arrived))
            arrived.append(scaled_rows(sums, 0.0, evidence=evidence))
        return arrived

    # ---------------------------------------------------------------- release

    def _modules(self) -> dict[str, nn.Module]:
        return {"encoder": self.encoder_, **{f"head {i}": head for i, head in enumerate(self.heads_, start=1)}}

    def _state(self) -> Arrays:
        return {**modules_state(self._modules()), **caches_state(self.caches_), **self.keys_.state()}

    def _restore(self, state: Mapping[str, Array]) -> None:
        self._make_networks(self._generator)
        restore_modules(self._modules(), state)
        graphs = self._count_graphs()
        self.keys_ = GraphKeys.restore(state, graphs)
        stages = range(1, self.stages + 1)
        shapes = [[self.plan_.stage(stage_name(number, stage)).shape for stage in stages] for number in range(graphs)]
        self.caches_ = restore_caches(state, shapes)


def stage_name(number: int, stage: int) -> str:
    """``stage 1`` on the graph itself, ``extra graph 1 stage 1`` on a further one."""
    return f"stage {stage}" if number == 0 else f"extra graph {number} stage {stage}"
