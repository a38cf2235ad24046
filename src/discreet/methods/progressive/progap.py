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
from discreet.methods.trained import class_shares
from discreet.ops.rows import finite_rows, normalize_rows
from discreet.ops.sparse import SparseMatrix
from discreet.privacy.levels import Level
from discreet.privacy.plan import Plan, Stage, split_note
from discreet.queries.gradients import OwnRecordSteps, StepRule, planned_parameters
from discreet.queries.kept_edges import KEY, kept_edges_stage
from discreet.queries.reach import thinning_failure
from discreet.queries.sums import NeighbourSums
from discreet.training.descent import Progress
from discreet.training.networks import MLP, Head, HeadBeside, OwnView
from discreet.training.private import Descent, train_privately

ENCODER = "encoder"


class _StageLogits(nn.Module):
    """What a stage makes of every node: its network on the node's own features beside what has arrived."""

    def __init__(self, view: OwnView, head: Head) -> None:
        super().__init__()
        self.view, self.head = view, head

    def forward(self, features: Tensor | SparseMatrix, arrived: Tensor) -> Tensor:
        """Logits, one row per node: each reads its own features and released rows."""
        logits: Tensor = self.head(torch.cat([self.view(features), arrived], dim=1))
        return logits


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

    # ---------------------------------------------------------------- plan

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        names = (ENCODER, "stages", "heads")
        return (split_note(dict(zip(names, self.split, strict=True))),) if self._records_are_private() else ()

    def _query(self, facts: PublicFacts, level: Level, stage: int, failure: float | None = None) -> NeighbourSums:
        # Hop 1 at every stage: rows follow from private features, not from released rows alone.
        return NeighbourSums(level, facts.num_nodes, facts.num_classes, "sum", 1, failure)

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if not self._records_are_private():
            return super()._stages(public, level)
        delta = self.checked_privacy().resolve_delta(max(facts.num_nodes for facts in public))
        failure = thinning_failure(level, delta, len(public))
        for_encoder, for_sums, for_heads = self.split
        encoder, heads = self._networks(public[0], torch.Generator())
        stages = [
            *self._count_stages(public[0], level),
            *kept_edges_stage(failure, len(public)),
            self._steps_stage(ENCODER, encoder, public[0], for_encoder, self.steps),
        ]
        each = for_sums / (self.stages * len(public))
        for stage, head in enumerate(heads, start=1):
            for number, facts in enumerate(public):
                query = self._query(facts, level, stage, failure)
                stages.append(Stage.of(stage_name(number, stage), query, share=each, graph=number))
            share = for_heads / self.stages
            stages.append(self._steps_stage(head_name(stage), head, public[0], share, self.head_steps))
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

    def _networks(self, facts: PublicFacts, generator: torch.Generator) -> tuple[MLP, list[Head]]:
        encoder, heads = super()._networks(facts, generator)
        if self._records_are_private():
            for network in (encoder, *(head.network for head in heads)):
                network.dropout.rate = 0.0
        return encoder, heads

    def _train_encoder(
        self, part: PublicPart, curator: Curator, weights: FloatArray | None, progress: Progress | None
    ) -> None:
        if not self._records_are_private():
            super()._train_encoder(part, curator, weights, progress)
            return
        curator.draw_key(KEY)
        shares = class_shares(weights)
        train_privately(self.encoder_, curator, ENCODER, Descent(self.step_size), progress=progress, **shares)

    def _train_head(
        self, stage: int, part: PublicPart, curator: Curator, weights: FloatArray | None, progress: Progress | None
    ) -> None:
        """Privately, an example is a node's own features and label beside its released rows."""
        if not self._records_are_private():
            super()._train_head(stage, part, curator, weights, progress)
            return
        head, descent = HeadBeside(self.heads_[stage - 1]), Descent(self.head_step_size)
        given = {"frozen": self._own_view(), "beside": torch.cat(self.caches_[0], dim=1), **class_shares(weights)}
        train_privately(head, curator, head_name(stage), descent, progress=progress, **given)

    def _ask(self, part: PublicPart, number: int, stage: int, curator: Curator) -> Array:
        if not self._records_are_private():
            return super()._ask(part, number, stage, curator)
        if stage == 1:
            return curator.ask(stage_name(number, stage), encoder=self.encoder_)
        network = _StageLogits(self._own_view(), self.heads_[stage - 2])
        arrived = torch.cat(self.caches_[number], dim=1)
        return curator.ask(stage_name(number, stage), encoder=network, beside=arrived)

    def _messages(self, part: PublicPart, logits: Tensor) -> Tensor:
        return finite_rows(normalize_rows(logits - logits.mean(dim=1, keepdim=True)))

    def _inputs(self, messages: Tensor) -> dict[str, Any]:
        return {"rows": messages}


def head_name(stage: int) -> str:
    """``head 1``: the network that reads what arrived at stage 1 and before."""
    return f"head {stage}"
