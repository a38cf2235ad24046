"""What LPGNet and ProGAP share: stages, each a network that reads what the neighbours said at the stage before.

Stage 0 is a network on features. After it, and after every stage but the last, each node tells its neighbours
what the stage made of it; what arrives passes through the curator and is cached. The next stage's network reads what is
known of a node itself beside all that has arrived so far. Prediction reads features and caches, no edge.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from discreet.arrays import Array, Arrays, FloatArray, SingleArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import GraphKeys, PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods.caches import caches_state, restore_caches
from discreet.methods.extension import unpaid_edges
from discreet.methods.progressive.stages import OpinionStages, PublicTraining, StageNetworks
from discreet.methods.trained import StartsHead, WeighsClasses, with_weights
from discreet.ops.sparse import feature_tensor, hop_matrix
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Stage
from discreet.privacy.query import Query
from discreet.queries.kept_edges import KEY, refuse_thinned
from discreet.training.descent import Progress
from discreet.training.networks import MLP, Head, modules_state, restore_modules, scaled_rows, widths_of


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
    architecture
        ``opinions``: the network of every later stage reads the class probabilities of the first one beside what has
        arrived. ``paper``: the networks of the paper whose name the method bears.
    """

    _: KW_ONLY
    stages: Annotated[int, Field(ge=1, le=16)] = 2
    head_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    own_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    architecture: Literal["opinions", "paper"] = "opinions"

    # ---------------------------------------------------------------- what a subclass writes

    @abstractmethod
    def _query(self, facts: PublicFacts, level: Level, stage: int) -> Query:
        """What is asked of the neighbours at this stage."""

    @abstractmethod
    def _messages(self, part: PublicPart, arrived: Sequence[Tensor]) -> Tensor:
        """What every node tells its neighbours after the stage that follows so many arrivals, one row per node."""

    @abstractmethod
    def _inputs(self, messages: Tensor) -> dict[str, Any]:
        """The same as the query takes it."""

    @abstractmethod
    def _paper_networks(self, facts: PublicFacts, generator: torch.Generator) -> StageNetworks:
        """Those of the paper, freshly drawn."""

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        return [
            Stage.of(stage_name(number, stage), self._query(facts, level, stage), graph=number)
            for stage in range(1, self.stages + 1)
            for number, facts in enumerate(public)
        ]

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self.networks_ = self._networks(self.public_, self._generator)
        self._watched = self.networks_.modules()
        self.keys_ = GraphKeys.of(parts)
        self.caches_: list[list[Tensor]] = [[] for _ in parts]
        weights = self._class_weights(parts[0], curator)
        self._train(0, parts[0], curator, weights, progress)
        for stage in range(1, self.stages + 1):
            for number, part in enumerate(parts):
                self._receive(part, number, stage, curator)
            self._train(stage, parts[0], curator, weights, progress)

    def _networks(self, facts: PublicFacts, generator: torch.Generator) -> StageNetworks:
        """Freshly drawn."""
        if self.architecture == "paper":
            return self._paper_networks(facts, generator)
        return self._opinion_networks(facts, generator)

    def _opinion_networks(
        self, facts: PublicFacts, generator: torch.Generator, *, dropout: bool = True
    ) -> OpinionStages:
        classes, kind = facts.num_classes, self.activation
        reads = widths_of(facts.num_features, self.hidden, self.layers, classes)
        encoder = MLP(reads, kind, self.dropout if dropout else 0.0, generator)
        beside = [
            widths_of((1 + stage) * classes, self.hidden, self.layers, classes) for stage in range(1, self.stages + 1)
        ]
        heads = [Head(widths, kind, self.head_dropout if dropout else 0.0, generator) for widths in beside]
        evidence = self._starts_from_evidence(facts)
        if evidence:
            for head in heads:
                head.start_from_evidence(classes)
        return OpinionStages(encoder, heads, evidence=evidence)

    def _starts_from_evidence(self, facts: PublicFacts) -> bool:
        """The paper's networks do not."""
        return self.architecture == "opinions" and super()._starts_from_evidence(facts)

    def _train(
        self, stage: int, part: PublicPart, curator: Curator, weights: FloatArray | None, progress: Progress | None
    ) -> None:
        """Fit a stage's network to public labels."""
        options = with_weights(self._options(), weights)
        given = PublicTraining(part, options, self._generator, self.own_dropout, progress)
        self.networks_.train(stage, self._beside(0), given)

    def _beside(self, number: int) -> Tensor | None:
        """All that has arrived in a graph so far, side by side."""
        return torch.cat(self.caches_[number], dim=1) if self.caches_[number] else None

    def _receive(self, part: PublicPart, number: int, stage: int, curator: Curator) -> None:
        """Ask for what arrives at a stage, and cache it as networks read it."""
        arrived = torch.from_numpy(self._ask(part, number, stage, curator)).float().to(self._device)
        noise_std = curator.plan.stage(stage_name(number, stage)).noise_std
        evidence = self._starts_from_evidence(self.public_)
        self.caches_[number].append(scaled_rows(arrived, noise_std, evidence=evidence))

    def _ask(self, part: PublicPart, number: int, stage: int, curator: Curator) -> Array:
        messages = self._messages(part, self.caches_[number])
        found: Array = curator.ask(stage_name(number, stage), **self._inputs(messages))
        return found

    @torch.no_grad()
    def _logits(self, part: PublicPart, arrived: Sequence[Tensor]) -> Tensor:
        """What the stage that follows after so many arrivals makes of every node."""
        return self.networks_.logits(feature_tensor(part.features, self._device), arrived)

    @torch.no_grad()
    def _told(self, part: PublicPart, arrived: Sequence[Tensor]) -> Tensor:
        """What every node then has to tell."""
        return self.networks_.told(feature_tensor(part.features, self._device), arrived)

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
            sums = matrix @ self._messages(part, arrived)
            arrived.append(scaled_rows(sums, 0.0, evidence=evidence))
        return arrived

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        return {**modules_state(self.networks_.modules()), **caches_state(self.caches_), **self.keys_.state()}

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.networks_ = self._networks(self.public_, self._generator)
        restore_modules(self.networks_.modules(), state)
        graphs = self._count_graphs()
        self.keys_ = GraphKeys.restore(state, graphs)
        stages = range(1, self.stages + 1)
        shapes = [[self.plan_.stage(stage_name(number, stage)).shape for stage in stages] for number in range(graphs)]
        self.caches_ = restore_caches(state, shapes)


def stage_name(number: int, stage: int) -> str:
    """``stage 1`` on the graph itself, ``extra graph 1 stage 1`` on a further one."""
    return f"stage {stage}" if number == 0 else f"extra graph {number} stage {stage}"
