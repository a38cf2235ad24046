"""The three ways in which ``dpdgc`` comes by W, and the noisy rows A·W that follow.

*random*: W is drawn, public, and costs nothing. *trained*: DP-Emb of the DPDGC paper, noisy clipped gradients of
σ(AW + b)R. *step*: the first step of that training alone, from W = 0. There the residual of a node does not depend
on its row yet, so the gradient Aᵀ·(residuals) is a plain sum over edges, which needs no clipping of rows and moves
far less than a group of clipped examples: √2 for an undirected edge instead of 4 clip norms.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from discreet.arrays import Arrays, FloatArray, SingleArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods.dpdgc.networks import RowEmbedding
from discreet.ops.row_embedding import Weight, hashed_rows
from discreet.ops.rows import clip_rows, damp_rows, normalize_rows
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage
from discreet.queries.adjacency_row_steps import AdjacencyRowSteps
from discreet.queries.adjacency_rows import AdjacencyRows
from discreet.queries.gradients import StepRule, planned_parameters
from discreet.queries.residual_sums import ResidualSums
from discreet.training.descent import Progress
from discreet.training.networks import Activation
from discreet.training.private import Descent, train_privately

Kind = Literal["step", "trained", "random"]
EMBEDDING, STEP, ROWS = "embedding", "embedding step", "rows"
FULL_AT = 3.0
"""A row of the step counts in full from this many standard deviations of its noise (and as many neighbours) on."""

_TINY = 1e-12  # a variance that counts as none


@dataclass(frozen=True)
class Released:
    """What is known of the graph afterwards: the noisy rows of A·W, over c, and those of the step, with their noise."""

    rows: FloatArray
    rows_noise: float = 0.0
    step: FloatArray | None = None
    step_noise: float = 0.0

    def damped(self) -> Tensor:
        """What a head reads: rows over their noise, hubs damped."""
        parts = [] if self.step is None else [damp_rows(torch.from_numpy(self.step / (1 + self.step_noise)))]
        parts.append(damp_rows(torch.from_numpy(self.rows / (1 + self.rows_noise))))
        return torch.cat(parts, dim=1).float()

    def principal(self, components: int) -> Tensor:
        """What a network trained by noisy steps reads: the strongest directions of the rows, each over its own spread.

        Noisy gradients have few inputs to spare, and the directions are free: they are read off what was released.
        A direction counts as far as its squares stand out of those that noise alone would bring.
        """
        centred = self.rows - self.rows.mean(axis=0)
        squares, directions = np.linalg.eigh(centred.T @ centred)
        chosen = np.argsort(squares)[::-1][:components]
        n, width = self.rows.shape
        by_noise = (self.rows_noise * (math.sqrt(n) + math.sqrt(width))) ** 2
        top = np.maximum(squares[chosen], _TINY)
        trust = np.sqrt(1 - by_noise / np.maximum(top, by_noise)) if by_noise else 1.0
        spread = np.sqrt(top / n)
        return torch.from_numpy(centred @ directions[:, chosen] * (trust / spread)).float()


@dataclass(frozen=True)
class EmbeddingSettings:
    """What W and its rows are made of: public facts and constants.

    ``failure`` is δ′ on the thinned basis; ``rule``, ``steps``, ``step_size`` and ``activation`` are for training W.
    """

    level: Level
    facts: PublicFacts
    width: int
    row_norm: float
    failure: float | None
    rule: StepRule
    steps: int
    step_size: float
    activation: Activation


@dataclass(frozen=True)
class Sources:
    """What W may be made of: noisy answers, draws that are public, and (for *step*) residuals of public labels."""

    curator: Curator
    generator: torch.Generator
    residuals: FloatArray | None = None
    progress: Progress | None = None


class Embedding(ABC):
    """W, from public or released values, and A·W, released once with noise.

    Guarantee: all that :meth:`release` gives is an answer of the curator, or computed from such. ``AdjacencyRows`` cuts
    the rows of W itself, so its bound does not rest on how W was made.
    """

    def __init__(self, settings: EmbeddingSettings) -> None:
        """Nothing is drawn yet."""
        self.settings = settings

    def stages(self, for_weight: float, for_rows: float) -> list[Stage]:
        """W (where it costs) and the noisy rows, with these shares of the squared privacy loss."""
        given = self.settings
        query = AdjacencyRows(given.level, given.facts.num_nodes, given.width, given.row_norm, given.failure)
        return [*self._weight_stages(for_weight), Stage.of(ROWS, query, share=for_rows)]

    def release(self, sources: Sources) -> Released:
        """W, then A·W, through the curator."""
        plan, c = sources.curator.plan, self.settings.row_norm
        weight, step = self._weight(sources)
        noisy: FloatArray = sources.curator.ask(ROWS, weight=weight)
        step_noise = 0.0 if step is None else plan.stage(STEP).noise_std
        return Released(noisy / c, plan.stage(ROWS).noise_std / c, step, step_noise)

    @abstractmethod
    def _weight_stages(self, share: float) -> list[Stage]:
        """What has to be asked for W."""

    @abstractmethod
    def _weight(self, sources: Sources) -> tuple[Weight, FloatArray | None]:
        """W, and the noisy step that it was made of, if it was."""


class RandomEmbedding(Embedding):
    """W from ``random_state`` and node ids."""

    def _weight_stages(self, share: float) -> list[Stage]:
        return []

    def _weight(self, sources: Sources) -> tuple[Weight, None]:
        given = self.settings
        return random_weight(given.facts.num_nodes, given.width, sources.generator, row_norm=given.row_norm), None


class StepEmbedding(Embedding):
    """W after one noisy step, where labels are public."""

    def _weight_stages(self, share: float) -> list[Stage]:
        facts = self.settings.facts
        query = ResidualSums(self.settings.level, facts.num_nodes, facts.num_classes)
        return [Stage.of(STEP, query, share=share)]

    def _weight(self, sources: Sources) -> tuple[Weight, FloatArray]:
        step: FloatArray = sources.curator.ask(STEP, residuals=sources.residuals)
        noise = sources.curator.plan.stage(STEP).noise_std
        return step_weight(step, noise, row_norm=self.settings.row_norm), step


class TrainedEmbedding(Embedding):
    """DP-Emb: noisy steps, after each of which the rows of W itself are scaled to c."""

    def _weight_stages(self, share: float) -> list[Stage]:
        given = self.settings
        query = AdjacencyRowSteps(
            given.level,
            "clipped gradients of the embedding on the adjacency rows of training nodes",
            planned_parameters(self._network(torch.Generator()), given.facts.num_train),
            given.facts.num_train,
            given.rule,
            given.failure,
        )
        return [Stage.of(EMBEDDING, query, share=share, runs=given.steps)]

    def _weight(self, sources: Sources) -> tuple[Weight, None]:
        network, given = self._network(sources.generator), self.settings

        def constrain() -> None:
            network.constrain(given.row_norm)

        constrain()
        sources.curator.watch_also(EMBEDDING, lambda: _parameters(network))
        descent = Descent(given.step_size, averaged=0.0)  # an average of rows of norm c would be shorter than c
        train_privately(network, sources.curator, EMBEDDING, descent, progress=sources.progress, after_step=constrain)
        return network.rows.weight.detach().cpu().double().numpy(), None

    def _network(self, generator: torch.Generator) -> RowEmbedding:
        facts = self.settings.facts
        return RowEmbedding(
            facts.num_nodes, self.settings.width, facts.num_classes, self.settings.activation, generator
        )


KINDS: dict[Kind, type[Embedding]] = {"step": StepEmbedding, "trained": TrainedEmbedding, "random": RandomEmbedding}


def random_weight(num_nodes: int, width: int, generator: torch.Generator, *, row_norm: float) -> Weight:
    """A public W: hashed signs under a key that the generator draws."""
    drawn = torch.randint(0, 256, (16,), generator=generator, device=generator.device)
    return hashed_rows(num_nodes, width, bytes(drawn.cpu().numpy().astype(np.uint8)), row_norm=row_norm)


def step_weight(step: FloatArray, noise: float, *, row_norm: float) -> FloatArray:
    """W after one step: rows that stand out of their noise in full, others shorter."""
    full = FULL_AT * (1 + noise)
    return clip_rows(torch.from_numpy(step) * (row_norm / full), row_norm).numpy()


def label_residuals(part: PublicPart, beliefs: SingleArray) -> FloatArray:
    """How a node's label (or, where it has none to train on, what is believed of it) departs from the average node's.

    Rows of norm at most 1. Labels and beliefs are public at edge level.
    """
    known = part.labelled(part.mask("train"))
    rows = beliefs.astype(np.float64)
    rows[known] = np.eye(rows.shape[1])[part.labels[known]]
    return normalize_rows(torch.from_numpy(rows - rows.mean(axis=0))).numpy()


def _parameters(network: RowEmbedding) -> Arrays:
    """A copy, for audits."""
    return {key: value.detach().cpu().numpy().copy() for key, value in network.state_dict().items()}
