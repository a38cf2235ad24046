"""``gcn``, ``sage`` and ``gat``: networks trained on the whole graph, without privacy, to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.arrays import Array, Arrays, SingleArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods import baselines
from discreet.methods.metrics import METRICS, MetricName
from discreet.methods.parameters import Examples, Rounds, Width
from discreet.methods.trained import TrainedClassifier, WeighsClasses, with_weights
from discreet.ops.rows import rows_of_norm
from discreet.ops.sparse import Aggregation, SparseMatrix, feature_tensor, hop_matrix
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage
from discreet.training.attention import Attention, Edges
from discreet.training.best_epoch import BestEpoch
from discreet.training.convolutions import Convolutions
from discreet.training.descent import Progress, train, training_rows
from discreet.training.networks import module_state, restore_module, widths_of

Structure = SparseMatrix | Edges
VALIDATED_EVERY = 5
"""Epochs between two looks at the validation nodes: each costs a third of an epoch."""
MANY_LABELS, DROPOUT_ON_FEW, DROPOUT_ON_MANY = 4000, 0.7, 0.5
"""How many training nodes are many for ``sage``, and what share it drops on fewer and on as many."""
ENOUGH_FOR_RESIDUAL = 1000
"""Training nodes from which ``gat`` maps a node's own row apart: it gains from 1,600 on, and loses with 140."""


@dataclass(eq=False, repr=False)
class ConvolutionClassifier(WeighsClasses, TrainedClassifier):
    """A graph network without a guarantee; only level ``none``.

    Every step runs over the whole graph, so all training rows go into one batch by default. The weights of the epoch
    that does best on the validation nodes are kept: labels are public wherever such a network is used, and what it
    reads of the edges is public or released.

    Parameters
    ----------
    best_by
        The metric by which the best epoch is chosen.
    """

    keeps_own_row: ClassVar[bool]

    _: KW_ONLY
    hidden: Width = 128
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    epochs: Rounds = 200
    batch_size: Examples | None = None
    best_by: MetricName = "accuracy"

    def _matrix(self, part: PublicPart) -> Structure:
        """What the network reads of the edges."""
        raise NotImplementedError

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        return []

    def _build(self, *, norms: bool = True) -> nn.Module:
        widths = widths_of(self.public_.num_features, self.hidden, self.layers, self.public_.num_classes)
        return Convolutions(widths, self.activation, self._dropout, self.keeps_own_row, self._generator, norms=norms)

    @property
    def _dropout(self) -> float:
        return self.dropout

    def _features(self, part: PublicPart) -> Tensor | SparseMatrix:
        """Rows of unit norm, so that one learning rate does for counts, shares and measurements."""
        return feature_tensor(rows_of_norm(part.features, 1.0) if self.scaled_ else part.features, self._device)

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        part, self.scaled_ = parts[0], True
        self.network_ = self._watched["network"] = self._build()
        matrix, features = self._matrix(part), self._features(part)
        rows = torch.tensor(training_rows(part), device=self._device)
        labels = torch.tensor(part.labels, device=self._device)

        def forward(batch: Tensor) -> Tensor:
            logits: Tensor = self.network_(features, matrix)
            return logits[batch]

        measure = None if self.best_by == "accuracy" else METRICS[self.best_by]
        chosen = self._validation_rows(part)
        best = BestEpoch(self.network_, forward, labels, chosen, every=VALIDATED_EVERY, measure=measure)
        options = with_weights(self._options(), self._class_weights(part, curator))
        train(self.network_, forward, labels, rows, options, self._generator, progress=progress, on_epoch=best.look)
        best.restore()

    def _validation_rows(self, part: PublicPart) -> Tensor:
        chosen = part.labelled(part.mask("val")) if part.val_mask is not None else np.empty(0, dtype=np.int64)
        return torch.tensor(chosen, device=self._device)

    @torch.no_grad()
    def _probabilities(self, part: PublicPart) -> SingleArray:
        logits: Tensor = self.network_(self._features(part), self._matrix(part))
        return torch.softmax(logits, dim=1).cpu().numpy()

    def _state(self) -> Arrays:
        return module_state("network", self.network_)

    def _restore(self, state: Mapping[str, Array]) -> None:
        # releases of version 0.1 have neither norms nor scaled features
        self.scaled_ = any("norms" in name for name in state)
        self.network_ = restore_module("network", self._build_like(state), state)

    def _build_like(self, state: Mapping[str, Array]) -> nn.Module:
        """A network for these weights."""
        return self._build(norms=self.scaled_)


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
    """X ↦ X·W + (mean of the neighbours)·W′ in every layer.

    Parameters
    ----------
    dropout
        Share of features and hidden units dropped while training. None: 0.7 with fewer than 4,000 training nodes, 0.5
        with more.
    """

    declaration = baselines.SAGE
    keeps_own_row: ClassVar[bool] = True

    _: KW_ONLY
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None  # type: ignore[assignment]

    @property
    def _dropout(self) -> float:
        if self.dropout is not None:
            return self.dropout
        return DROPOUT_ON_MANY if self.public_.num_train >= MANY_LABELS else DROPOUT_ON_FEW

    def _matrix(self, part: PublicPart) -> SparseMatrix:
        return hop_matrix(part, "mean", device=str(self._device))


@dataclass(eq=False, repr=False)
class GAT(ConvolutionClassifier):
    """Neighbours weighed by attention, several heads side by side in hidden layers.

    Parameters
    ----------
    heads
        How many attend in each hidden layer, each with outputs of its own.
    residual
        Whether a second map of a node's own row is added in every layer. None: with 1,000 training nodes or more; on
        fewer it has too many weights to learn.
    """

    declaration = baselines.GAT

    _: KW_ONLY
    heads: Annotated[int, Field(ge=1, le=64)] = 8
    hidden: Width = 64
    residual: bool | None = None

    @property
    def keeps_own_row(self) -> bool:  # type: ignore[override]
        """Whether a node's own row has weights of its own."""
        if self.residual is not None:
            return self.residual
        return self.public_.num_train >= ENOUGH_FOR_RESIDUAL

    def _build(self, *, norms: bool = True, residual: bool | None = None) -> nn.Module:
        widths = widths_of(self.public_.num_features, self.hidden, self.layers, self.public_.num_classes)
        residual = self.keeps_own_row if residual is None else residual
        return Attention(
            widths, self.activation, self.dropout, self.heads, self._generator, norms=norms, residual=residual
        )

    def _build_like(self, state: Mapping[str, Array]) -> nn.Module:
        return self._build(norms=self.scaled_, residual=any(".own." in name for name in state))

    def _matrix(self, part: PublicPart) -> Structure:
        return Edges.of(part, self._device)
