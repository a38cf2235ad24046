"""``gcn`` and ``sage``: convolutions trained on the whole graph, without privacy, to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from discreet.arrays import Array, Arrays, SingleArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods import baselines
from discreet.methods.parameters import Examples, Rounds
from discreet.methods.trained import TrainedClassifier
from discreet.ops.sparse import Aggregation, SparseMatrix, feature_tensor, hop_matrix
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage
from discreet.training.convolutions import Convolutions
from discreet.training.descent import Progress, train, training_rows
from discreet.training.networks import module_state, restore_module, widths_of


@dataclass(eq=False, repr=False)
class ConvolutionClassifier(TrainedClassifier):
    """A graph network without a guarantee; only level ``none``.

    Every step runs over the whole graph, so all training rows go into one batch by default.
    """

    keeps_own_row: ClassVar[bool]

    _: KW_ONLY
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    epochs: Rounds = 200
    batch_size: Examples | None = None

    def _matrix(self, part: PublicPart) -> SparseMatrix:
        raise NotImplementedError

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        return []

    def _build(self) -> Convolutions:
        widths = widths_of(self.public_.num_features, self.hidden, self.layers, self.public_.num_classes)
        return Convolutions(widths, self.activation, self.dropout, self.keeps_own_row, self._generator)

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        part = parts[0]
        self.network_ = self._watched["network"] = self._build()
        matrix, features = self._matrix(part), feature_tensor(part.features, self._device)
        rows = torch.tensor(training_rows(part), device=self._device)
        labels = torch.tensor(part.labels, device=self._device)

        def forward(batch: Tensor) -> Tensor:
            logits: Tensor = self.network_(features, matrix)
            return logits[batch]

        train(self.network_, forward, labels, rows, self._options(), self._generator, progress=progress)

    @torch.no_grad()
    def _probabilities(self, part: PublicPart) -> SingleArray:
        logits: Tensor = self.network_(feature_tensor(part.features, self._device), self._matrix(part))
        return torch.softmax(logits, dim=1).cpu().numpy()

    def _state(self) -> Arrays:
        return module_state("network", self.network_)

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.network_ = restore_module("network", self._build(), state)


@dataclass(eq=False, repr=False)
class GCN(ConvolutionClassifier):
    """X ↦ Â·X·W in every layer, Â the normalised adjacency with self-loops (by rows on directed graphs)."""

    declaration = baselines.GCN
    keeps_own_row: ClassVar[bool] = False

    def _matrix(self, part: PublicPart) -> SparseMatrix:
        aggregation: Aggregation = "mean" if part.directed else "symmetric"
        return hop_matrix(part, aggregation, self_loops=True, device=str(self._device))


@dataclass(eq=False, repr=False)
class SAGE(ConvolutionClassifier):
    """X ↦ X·W + (mean of the neighbours)·W′ in every layer."""

    declaration = baselines.SAGE
    keeps_own_row: ClassVar[bool] = True

    def _matrix(self, part: PublicPart) -> SparseMatrix:
        return hop_matrix(part, "mean", device=str(self._device))
