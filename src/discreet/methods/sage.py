"""``sage``: GraphSAGE with mean aggregation, without privacy (Hamilton et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.graph.graph import Graph
from discreet.methods.convolution import ConvolutionClassifier
from discreet.ops.propagation import hop_matrix
from discreet.ops.sparse import SparseMatrix


@dataclass(eq=False, repr=False)
class SAGE(ConvolutionClassifier):
    """X ↦ X·W + (mean of the neighbours)·W′ in every layer."""

    method: ClassVar[str] = "sage"
    keeps_own_row: ClassVar[bool] = True

    def _matrix(self, graph: Graph) -> SparseMatrix:
        return hop_matrix(graph, "mean", device=str(self._device))
