"""Denoising by linear operators: what passes over public edges averages the noise of reports away.

At level ``local`` the topology is public and reports are private already, so everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from discreet.graph.parts import Topology
from discreet.ops.sparse import Aggregation, SparseMatrix, feature_tensor, hop_matrix

DENSE_ENTRIES = 1 << 25
"""Up to this many entries (128 MB) denoised rows are computed once; above, operators are applied to what W makes of
the sparse reports, so that memory grows with nodes × hidden width and never with nodes × features."""


_PROBES = 64  # random projections that a norm is estimated by: to a tenth
_TINY = 1e-12  # a row of zeros stays


class Denoised:
    """Operators on reports, every row scaled, known by products with dense matrices.

    ``denoised @ W`` is diag(weight)·S_k(…S_1(X·W)): the order in which sparse reports stay sparse.
    """

    def __init__(
        self, rows: Tensor | SparseMatrix, operators: Sequence[SparseMatrix], weight: Tensor | None = None
    ) -> None:
        self.rows = rows
        self.operators = tuple(operators)
        self.weight = weight
        self.shape: tuple[int, int] = (rows.shape[0], rows.shape[1])

    def __matmul__(self, matrix: Tensor) -> Tensor:
        """The denoised rows times a matrix."""
        out: Tensor = self.rows @ matrix
        for operator in self.operators:
            out = operator @ out
        return out if self.weight is None else out * self.weight


class Remembering:
    """Rows that remember their last product with each of a network's matrices, until that matrix changes.

    Training and scoring at the same weights then share the widest product, which is most of the work. Matrices that are
    ``together`` multiply the rows side by side, so that wide rows are read once for all of them.
    """

    def __init__(self, rows: Tensor | Denoised, together: Sequence[Tensor] = ()) -> None:
        self._rows = rows
        self._together = tuple(together)
        self._last: dict[int, tuple[int, Tensor]] = {}
        self._waiting: dict[int, tuple[int, Tensor]] = {}
        self.shape = rows.shape

    def __matmul__(self, matrix: Tensor) -> Tensor:
        """The product; without gradients where it was computed before at these very weights."""
        version, known = self._last.get(id(matrix), (-1, None))
        if known is not None and version == matrix._version and not torch.is_grad_enabled():
            return known
        version, made = self._waiting.pop(id(matrix), (-1, None))
        if made is not None and version == matrix._version and torch.is_grad_enabled():
            return made
        self._multiply(self._together if any(one is matrix for one in self._together) else (matrix,))
        return self._waiting.pop(id(matrix), self._last[id(matrix)])[1]

    def _multiply(self, matrices: Sequence[Tensor]) -> None:
        """Note the products; those that a backward pass can go through wait to be asked for, each once."""
        product = self._rows @ (matrices[0] if len(matrices) == 1 else torch.cat(list(matrices), dim=1))
        for matrix, part in zip(matrices, torch.split(product, [one.shape[1] for one in matrices], dim=1), strict=True):
            self._last[id(matrix)] = (matrix._version, part.detach())
            if part.requires_grad:
                self._waiting[id(matrix)] = (matrix._version, part)


def denoise(
    rows: Any, operators: Sequence[SparseMatrix], *, lazy: bool = False, device: str | torch.device = "cpu"
) -> Tensor | Denoised:
    """Rows under the operators, in turn, then scaled to unit norm, which takes their noise level out of them.

    Dense where that is small and ``lazy`` does not forbid it; else a :class:`Denoised`, which multiplies a matrix
    alike, its norms estimated by random projections.
    """
    x = feature_tensor(rows, device)
    if lazy or x.shape[0] * x.shape[1] > DENSE_ENTRIES:
        plain = Denoised(x, operators)
        return Denoised(x, operators, 1 / (_row_norms(plain) + _TINY))
    dense = x if isinstance(x, Tensor) else torch.tensor(rows.toarray(), device=device)
    for operator in operators:
        dense = operator @ dense
    scaled: Tensor = dense / (dense.norm(dim=1, keepdim=True) + _TINY)
    return scaled


def _row_norms(rows: Denoised) -> Tensor:
    """‖h‖ of every row by E(hᵀg)² = ‖h‖² over random signs g. The signs are fixed: this is a scale, to a tenth."""
    # no privacy noise: rows are reports that were made private before they came here, or public
    signs = np.random.default_rng(0).integers(0, 2, size=(rows.shape[1], _PROBES)) * 2.0 - 1.0
    image = rows @ torch.tensor(signs, dtype=torch.float32, device=rows.rows.device)
    return image.square().mean(dim=1, keepdim=True).sqrt()


def kprop_operators(
    graph: Topology, steps: int, aggregation: Aggregation, *, self_loops: bool = False, device: str = "cpu"
) -> list[SparseMatrix]:
    """KProp: the same hop ``steps`` times, without a nonlinearity; by rows where the graph is directed."""
    if steps == 0:
        return []
    kind: Aggregation = "mean" if graph.directed and aggregation == "symmetric" else aggregation
    return [hop_matrix(graph, kind, self_loops=self_loops, device=device)] * steps
