"""What ``gcn`` and ``sage`` share: a stack of convolutions trained on the whole graph, without privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.methods.base import Arrays
from discreet.methods.networks import ACTIVATIONS, Dropout, Linear, module_state, restore_module, widths_of
from discreet.methods.trained import TrainedClassifier
from discreet.methods.training import Progress, train, training_rows
from discreet.ops.sparse import SparseMatrix, feature_tensor
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage


class Convolutions(nn.Module):
    """Linear maps whose output travels one hop, with a second map for the node's own row where asked."""

    def __init__(
        self, widths: Sequence[int], activation: str, dropout: float, own_row: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.neighbors = nn.ModuleList(Linear(a, b, generator) for a, b in pairwise(widths))
        self.own = nn.ModuleList(Linear(a, b, generator) for a, b in pairwise(widths)) if own_row else None
        self.dropout = Dropout(dropout, generator)
        self._activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor | SparseMatrix, matrix: SparseMatrix) -> Tensor:
        """Logits of every node. Multiplying by W first keeps sparse features sparse and hops narrow."""
        last = len(self.neighbors) - 1
        for depth, layer in enumerate(self.neighbors):
            out = matrix @ layer(x)
            if self.own is not None:
                out = out + self.own[depth](x)
            x = out if depth == last else self.dropout(self._activation(out))
        return out


@dataclass(eq=False, repr=False)
class ConvolutionClassifier(TrainedClassifier):
    """A graph network without a guarantee; only level ``none``.

    Every step runs over the whole graph, so all training rows go into one batch by default.
    """

    levels: ClassVar[tuple[str, ...]] = ("none",)
    keeps_own_row: ClassVar[bool]

    _: KW_ONLY
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    epochs: Annotated[int, Field(ge=0)] = 200
    batch_size: Annotated[int, Field(ge=1)] | None = None

    @property
    def covers(self) -> str:
        """Nothing is private, so this names what would be."""
        return "weights"

    def _matrix(self, graph: Graph) -> SparseMatrix:
        raise NotImplementedError

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        return []

    def _build(self) -> Convolutions:
        widths = widths_of(self.public_.num_features, self.hidden, self.layers, self.public_.num_classes)
        return Convolutions(widths, self.activation, self.dropout, self.keeps_own_row, self._generator)

    def _learn(self, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
        graph = graphs[0]
        self.network_ = self._watched["network"] = self._build()
        matrix, features = self._matrix(graph), feature_tensor(graph.features, self._device)
        rows = torch.tensor(training_rows(graph), device=self._device)
        labels = torch.tensor(graph.labels, device=self._device)

        def forward(batch: Tensor) -> Tensor:
            logits: Tensor = self.network_(features, matrix)
            return logits[batch]

        train(self.network_, forward, labels, rows, self._options(), self._generator, progress=progress)

    @torch.no_grad()
    def _probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        logits: Tensor = self.network_(feature_tensor(graph.features, self._device), self._matrix(graph))
        return torch.softmax(logits, dim=1).cpu().numpy()

    def _state(self) -> Arrays:
        return module_state("network", self.network_)

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.network_ = restore_module("network", self._build(), state)
