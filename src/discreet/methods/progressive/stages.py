"""The networks of all stages: what each makes of a node, what the node then tells, and how a stage is trained.

Stage 0 reads features; every later one reads features and, side by side, the rows that have arrived before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from discreet.graph.parts import PublicPart
from discreet.ops.sparse import SparseMatrix
from discreet.training.descent import Progress, TrainOptions, train_beside, train_on_features
from discreet.training.networks import MLP, Head, HeadBeside, OwnView


@dataclass(frozen=True)
class PublicTraining:
    """How a stage is trained where records are public: on which, and by which steps."""

    part: PublicPart
    options: TrainOptions
    generator: torch.Generator
    own_dropout: float
    progress: Progress | None


class StageNetworks(ABC):
    """The networks of all stages, in order. Each reads every node by itself."""

    @abstractmethod
    def modules(self) -> dict[str, nn.Module]:
        """All that is trained, by the names under which a release stores it."""

    @abstractmethod
    def network(self, stage: int) -> nn.Module:
        """Logits of a stage, from features (and arrived rows, after stage 0)."""

    @abstractmethod
    def telling(self, stage: int) -> nn.Module:
        """What a node tells its neighbours after a stage, from the same."""

    @abstractmethod
    def train(self, stage: int, beside: Tensor | None, given: PublicTraining) -> None:
        """Fit a stage to public labels; ``beside`` is what has arrived, None at stage 0."""

    def logits(self, features: Tensor | SparseMatrix, arrived: Sequence[Tensor]) -> Tensor:
        """Of the stage that follows after so many arrivals."""
        return _read(self.network(len(arrived)), features, arrived)

    def told(self, features: Tensor | SparseMatrix, arrived: Sequence[Tensor]) -> Tensor:
        """What nodes tell after that stage."""
        return _read(self.telling(len(arrived)), features, arrived)


class NoisyStageNetworks(StageNetworks):
    """Networks that noisy steps can train, where records are private."""

    @abstractmethod
    def begin(self, stage: int) -> None:
        """Make a stage ready to be trained."""

    @abstractmethod
    def noisy_steps(self, stage: int) -> tuple[nn.Module, nn.Module | None]:
        """What noisy steps of a stage train; and, if it does not read features as they are, what shows them to it."""


def _read(module: nn.Module, features: Tensor | SparseMatrix, arrived: Sequence[Tensor]) -> Tensor:
    found: Tensor = module(features) if not arrived else module(features, torch.cat(list(arrived), dim=1))
    return found


class _HeadOnView(nn.Module):
    """A head on what the first network says of a node, beside what has arrived."""

    def __init__(self, view: OwnView, head: Head) -> None:
        super().__init__()
        self.view, self.head = view, head

    def forward(self, features: Tensor | SparseMatrix, arrived: Tensor) -> Tensor:
        """Logits, one row per node: each reads its own features and released rows."""
        logits: Tensor = self.head(torch.cat([self.view(features), arrived], dim=1))
        return logits


class OpinionStages(NoisyStageNetworks):
    """One network on features; the head of every later stage reads its class probabilities beside what has arrived.

    Networks of earlier stages stay as they are. A node tells the logits of the last one.
    """

    def __init__(self, encoder: MLP, heads: Sequence[Head], *, evidence: bool) -> None:
        self._encoder, self._heads = encoder, list(heads)
        self._view = OwnView(encoder, nn.Identity(), logarithms=evidence)

    def modules(self) -> dict[str, nn.Module]:
        """``encoder``, ``head 1``, …"""
        return {"encoder": self._encoder, **{f"head {i}": head for i, head in enumerate(self._heads, start=1)}}

    def network(self, stage: int) -> nn.Module:
        """The encoder, or a head on its view."""
        return self._encoder if stage == 0 else _HeadOnView(self._view, self._heads[stage - 1])

    def telling(self, stage: int) -> nn.Module:
        """The same: logits."""
        return self.network(stage)

    def begin(self, stage: int) -> None:
        """Nothing to do: every network starts by itself."""

    def noisy_steps(self, stage: int) -> tuple[nn.Module, nn.Module | None]:
        """The encoder, or a head, which is shown what the encoder says."""
        return (self._encoder, None) if stage == 0 else (HeadBeside(self._heads[stage - 1]), self._view)

    def train(self, stage: int, beside: Tensor | None, given: PublicTraining) -> None:
        """The encoder on features, a head beside it."""
        part, options, generator, progress = given.part, given.options, given.generator, given.progress
        title = f"stage {stage}"
        if beside is None:
            train_on_features(self._encoder, part, options, generator, title=title, progress=progress)
            return
        train_beside(
            self._heads[stage - 1],
            self._encoder,
            self._view,
            beside,
            part,
            options,
            generator,
            own_dropout=given.own_dropout,
            title=title,
            progress=progress,
        )
