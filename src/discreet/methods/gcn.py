"""``gcn``: graph convolutions without privacy (Kipf and Welling 2017), a reference to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.graph.graph import Graph
from discreet.methods.convolution import ConvolutionClassifier
from discreet.ops.propagation import Aggregation, hop_matrix
from discreet.ops.sparse import SparseMatrix


@dataclass(eq=False, repr=False)
class GCN(ConvolutionClassifier):
    """X ↦ Â·X·W in every layer, Â the normalised adjacency with self-loops (by rows on directed graphs)."""

    method: ClassVar[str] = "gcn"
    keeps_own_row: ClassVar[bool] = False

    def _matrix(self, graph: Graph) -> SparseMatrix:
        aggregation: Aggregation = "mean" if graph.directed else "symmetric"
        return hop_matrix(graph, aggregation, self_loops=True, device=str(self._device))
