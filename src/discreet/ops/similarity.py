"""Similar nodes of a public graph (the SimGAT paper, algorithms 2 to 4), as sparse rows: nothing n × n is ever held.

Each function gives a CSR matrix of ones: row v holds the nodes that are similar to v.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from discreet.arrays import FloatArray, IntArray, SingleArray
from discreet.graph.parts import Topology

_BLOCK_ENTRIES = 1 << 22  # entries of a block of distances: 16 MB
_SAMPLE = 500  # rows that a threshold is set by
_COLUMNS = 128  # columns of walk counts that are computed together


# -------------------------------------------------------------------- by distance between points


def spread_of(points: SingleArray) -> float:
    """‖D‖_F of the matrix of all distances, in closed form: Σ‖e_i − e_j‖² = 2n Σ‖e_i‖² − 2‖Σ e_i‖²."""
    exact = points.astype(np.float64)
    squares = 2 * len(exact) * (exact**2).sum() - 2 * (exact.sum(axis=0) ** 2).sum()
    return float(np.sqrt(max(squares, 0.0)))


def nearest_within(points: SingleArray, distance: float, most: int) -> sp.csr_array:
    """Nodes closer than ``distance``, a node itself included, and of these the ``most`` nearest."""
    rows, columns = [], []
    for first, squares in _square_distances(points):
        squares[np.arange(len(squares)), first + np.arange(len(squares))] = 0.0  # rounding must not lose a node itself
        near = squares < max(distance, 1e-12) ** 2
        crowded = np.flatnonzero(near.sum(axis=1) > most)
        for row in crowded:
            far = np.argpartition(squares[row], most - 1)[most:]
            near[row, far] = False
        at, column = np.nonzero(near)
        rows.append(at + first)
        columns.append(column)
    return _ones(np.concatenate(rows), np.concatenate(columns), len(points))


def distance_for(points: SingleArray, similar: float, seed: int) -> float:
    """The distance within which a node has ``similar`` others on average, from a sample of nodes by a public seed."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(points), size=min(_SAMPLE, len(points)), replace=False))
    found = np.concatenate([np.delete(row, 0) for row in np.sort(_squares_from(points, points[chosen]), axis=1)])
    share = min(similar / max(len(points) - 1, 1), 1.0)
    return float(np.sqrt(np.quantile(np.maximum(found, 0), share)))


def _square_distances(points: SingleArray) -> Iterator[tuple[int, SingleArray]]:
    step = max(1, _BLOCK_ENTRIES // len(points))
    for first in range(0, len(points), step):
        yield first, _squares_from(points, points[first : first + step])


def _squares_from(points: SingleArray, block: SingleArray) -> SingleArray:
    squares = (block**2).sum(axis=1)[:, None] + (points**2).sum(axis=1) - 2 * block @ points.T
    return np.asarray(squares, dtype=np.float32)


# -------------------------------------------------------------------- by the number of walks


class WalkCounts:
    """P_ij = T_ij / Σ_c T_ic for T = Σ_{k ≤ steps} A^k: the share of j among ends of walks from i.

    Columns are computed in blocks, and a column is left as soon as it cannot pass the threshold. Let r_k = A^k·1. The
    largest share max_i (A^k)_ij / r_k(i) never rises with k, because a walk of k steps is an average, with weights
    A_il·r_{k−1}(l), over walks of k − 1 steps. So what a column can still gain is bounded by what it has now.
    """

    def __init__(self, graph: Topology, steps: int) -> None:
        self._matrix = graph.adjacency.astype(np.float64)
        self._steps = steps
        self._ends = [np.ones(graph.num_nodes)]
        for _ in range(steps):
            self._ends.append(self._matrix @ self._ends[-1])
        self._total = np.sum(self._ends[1:], axis=0)

    def above(self, threshold: float) -> sp.csr_array:
        """Pairs with P_ij above the threshold or an edge: at most 1/threshold in a row beside its edges."""
        n = self._matrix.shape[0]
        rows, columns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for first in range(0, n, _COLUMNS):
            chosen = np.arange(first, min(first + _COLUMNS, n))
            left, share = self._columns(chosen, threshold)
            at, column = np.nonzero(share > threshold)
            rows.append(at)
            columns.append(left[column])
        similar = _ones(np.concatenate(rows), np.concatenate(columns), n)
        row, column = (similar + self._matrix).nonzero()
        return _ones(row, column, n)

    def threshold_for(self, similar: float, seed: int) -> float:
        """The threshold that ``similar`` nodes pass on average, from a sample of nodes by a public seed."""
        n = self._matrix.shape[0]
        chosen = np.sort(np.random.default_rng(seed).choice(n, size=min(_SAMPLE, n), replace=False))
        shares = np.concatenate(
            [self._rows(part).ravel() for part in np.array_split(chosen, max(1, len(chosen) // 50))]
        )
        return float(np.quantile(shares, 1 - min(similar / n, 1.0)))

    def _rows(self, chosen: IntArray) -> FloatArray:
        """P of the chosen rows, dense."""
        state = np.zeros((self._matrix.shape[0], len(chosen)))
        state[chosen, np.arange(len(chosen))] = 1.0
        backwards, total = self._matrix.T.tocsr(), np.zeros_like(state)
        for _ in range(self._steps):
            state = backwards @ state
            total += state
        return _ratio(total, self._total[chosen][None, :]).T

    def _columns(self, chosen: IntArray, threshold: float) -> tuple[IntArray, FloatArray]:
        """Those of the chosen columns that may pass the threshold somewhere, and P in them."""
        n = self._matrix.shape[0]
        state = np.zeros((n, len(chosen)))
        state[chosen, np.arange(len(chosen))] = 1.0
        share = np.zeros_like(state)
        ahead = _ratio(self._total, self._total)
        for step in range(1, self._steps + 1):
            state = self._matrix @ state
            share += _ratio(state, self._total[:, None])
            ahead = ahead - _ratio(self._ends[step], self._total)
            if step in (1, 2, 3, 4, 6, 8, 12, 16, 24):
                largest = _ratio(state, self._ends[step][:, None]).max(axis=0)
                keep = (share + np.maximum(ahead, 0)[:, None] * largest).max(axis=0) > threshold * (1 - 1e-9)
                chosen, state, share = chosen[keep], state[:, keep], share[:, keep]
                if len(chosen) == 0:
                    break
        return chosen, share


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Part over whole, 0 where there is nothing."""
    return np.asarray(np.divide(part, whole, out=np.zeros_like(part + whole), where=whole > 0))


def _ones(rows: IntArray, columns: IntArray, n: int) -> sp.csr_array:
    matrix = sp.csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(n, n))
    matrix.data[:] = 1.0
    return matrix
