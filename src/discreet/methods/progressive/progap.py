"""``progap``: progressive training with noisy aggregation (Sajadmanesh and Gatica-Perez 2024).

Each stage aggregates once, with noise, what the stage before has learnt of every node, and caches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from discreet.arrays import Array, FloatArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods import progressive
from discreet.methods.outlook import OPINION, Outlook, outlook_of, separation
from discreet.methods.parameters import Norm, Rate, Share, Steps
from discreet.methods.progressive.estimator import ProgressiveClassifier, stage_name
from discreet.methods.progressive.published import Base, JumpingStage, JumpingStages
from discreet.methods.progressive.stages import NoisyStageNetworks
from discreet.methods.trained import class_shares
from discreet.ops.rows import finite_rows, normalize_rows
from discreet.privacy.levels import Level
from discreet.privacy.plan import Plan, Stage, split_note
from discreet.queries.gradients import OwnRecordSteps, StepRule, planned_parameters
from discreet.queries.kept_edges import KEY, kept_edges_stage
from discreet.queries.reach import thinning_failure
from discreet.queries.sums import NeighbourSums
from discreet.training.descent import Progress
from discreet.training.networks import Linear
from discreet.training.private import Descent, train_privately

ENCODER = "encoder"


@dataclass(eq=False, repr=False)
class ProGAP(ProgressiveClassifier):
    """Progressive noisy aggregation at level ``none``, ``edge``, ``neighbor`` or ``node``.

    Parameters
    ----------
    steps, step_size, head_steps, head_step_size, clip_norm
        At levels ``neighbor`` and ``node``, where every stage's network is trained by noisy steps over all training
        nodes: how many for the first and for each later one, their learning rates, and the norm to which gradients
        are clipped. (``dropout``, ``epochs``, ``batch_size``, ``learning_rate``, ``weight_decay`` are for the others.)
    split
        At those levels, how the squared privacy loss is divided among the first network, all aggregations, and all
        later networks.
    frozen
        With ``architecture="paper"`` (a network for what arrives at each stage, a head on the hidden rows of all of
        them side by side, and nodes that tell these rows): whether networks of earlier stages stay as they are.

    Guarantee. At ``none`` and ``edge``: networks are trained on public records and released rows; each stage reads
    edges once, with the bound of ``queries.sums`` (√2 for an undirected edge, where published code has 1). Weights,
    caches and predictions are covered. At ``neighbor`` and ``node``: networks are trained by noisy steps in which a
    node stands in its own example alone; what a node tells at *any* stage depends on its private features, so every
    stage, not the first alone, pays for private rows. Weights and caches are covered, and all predictions but the
    unit's own.
    """

    declaration = progressive.PROGAP

    _: KW_ONLY
    steps: Steps = 100
    step_size: Rate = 0.02
    head_steps: Steps = 20
    head_step_size: Rate = 0.02
    clip_norm: Norm = 0.1
    split: tuple[Share, Share, Share] = (0.6, 0.38, 0.02)
    frozen: bool = False

    # ---------------------------------------------------------------- plan

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        names = (ENCODER, "stages", "heads")
        return (split_note(dict(zip(names, self.split, strict=True))),) if self._records_are_private() else ()

    def _query(self, facts: PublicFacts, level: Level, stage: int, failure: float | None = None) -> NeighbourSums:
        # Hop 1 at every stage: rows follow from private features, not from released rows alone.
        return NeighbourSums(level, facts.num_nodes, self._told_width(facts, stage - 1), "sum", 1, failure)

    def _told_width(self, facts: PublicFacts, stage: int) -> int:
        """How many numbers a node tells after a stage."""
        return facts.num_classes if self.architecture == "opinions" else self.hidden * (stage + 1)

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if not self._records_are_private():
            return super()._stages(public, level)
        delta = self.checked_privacy().resolve_delta(max(facts.num_nodes for facts in public))
        failure = thinning_failure(level, delta, len(public))
        for_encoder, for_sums, for_heads = self.split
        trained = [self._networks(public[0], torch.Generator()).noisy_steps(i)[0] for i in range(self.stages + 1)]
        stages = [
            *self._count_stages(public[0], level),
            *kept_edges_stage(failure, len(public)),
            self._steps_stage(ENCODER, trained[0], public[0], for_encoder, self.steps),
        ]
        each = for_sums / (self.stages * len(public))
        for stage, network in enumerate(trained[1:], start=1):
            for number, facts in enumerate(public):
                query = self._query(facts, level, stage, failure)
                stages.append(Stage.of(stage_name(number, stage), query, share=each, graph=number))
            share = for_heads / self.stages
            stages.append(self._steps_stage(head_name(stage), network, public[0], share, self.head_steps))
        return stages

    def _steps_stage(self, name: str, network: nn.Module, facts: PublicFacts, share: float, steps: int) -> Stage:
        level, rule = self.checked_privacy().level, StepRule(self.clip_norm)
        size = planned_parameters(network, facts.num_train)
        query = OwnRecordSteps(level, f"clipped gradients of the {name}", size, facts.num_train, rule)
        return Stage.of(name, query, share=share, runs=steps)

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """Nodes tell what the first network thinks of them."""
        return outlook_of(plan, OPINION * separation(degree, plan.stage(stage_name(0, 1)).noise_std))

    # ---------------------------------------------------------------- fit

    def _networks(self, facts: PublicFacts, generator: torch.Generator) -> NoisyStageNetworks:
        if self.architecture == "paper":
            return self._paper_networks(facts, generator)
        return self._opinion_networks(facts, generator, dropout=not self._records_are_private())

    def _paper_networks(self, facts: PublicFacts, generator: torch.Generator) -> JumpingStages:
        dropout = 0.0 if self._records_are_private() else self.dropout
        arrive = [self._told_width(facts, stage) for stage in range(self.stages)]

        def made(stage: int) -> JumpingStage:
            read = [facts.num_features, *arrive[:stage]]
            bases = [Base(width, self.hidden, self.layers, self.activation, dropout, generator) for width in read]
            head = Linear(self._told_width(facts, stage), facts.num_classes, generator)
            return JumpingStage(bases, head, arrive[:stage])

        return JumpingStages([made(stage) for stage in range(self.stages + 1)], frozen=self.frozen)

    def _train(
        self, stage: int, part: PublicPart, curator: Curator, weights: FloatArray | None, progress: Progress | None
    ) -> None:
        """Privately, an example is a node's own features and label beside its released rows."""
        if not self._records_are_private():
            super()._train(stage, part, curator, weights, progress)
            return
        networks = self.networks_
        assert isinstance(networks, NoisyStageNetworks)
        networks.begin(stage)
        network, frozen = networks.noisy_steps(stage)
        shown = {"frozen": frozen, "beside": self._beside(0)}
        given = {**{name: value for name, value in shown.items() if value is not None}, **class_shares(weights)}
        if stage == 0:
            curator.draw_key(KEY)
            name, descent = ENCODER, Descent(self.step_size)
        else:
            name, descent = head_name(stage), Descent(self.head_step_size)
        train_privately(network, curator, name, descent, progress=progress, **given)

    def _ask(self, part: PublicPart, number: int, stage: int, curator: Curator) -> Array:
        if not self._records_are_private():
            return super()._ask(part, number, stage, curator)
        beside = self._beside(number)
        given = {} if beside is None else {"beside": beside}
        return curator.ask(stage_name(number, stage), encoder=self.networks_.telling(stage - 1), **given)

    def _messages(self, part: PublicPart, arrived: Sequence[Tensor]) -> Tensor:
        told = self._told(part, arrived)
        return finite_rows(normalize_rows(told - told.mean(dim=1, keepdim=True)))

    def _inputs(self, messages: Tensor) -> dict[str, Any]:
        return {"rows": messages}


def head_name(stage: int) -> str:
    """``head 1``: the network that reads what arrived at stage 1 and before."""
    return f"head {stage}"
