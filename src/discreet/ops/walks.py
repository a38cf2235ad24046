"""Random walks on a public graph, and embeddings of nodes from who meets whom on them.

Many walkers step together, as arrays: nothing has to be compiled, and a step costs a few operations per walker.
Chance is seeded by the method's public ``random_state``; edges are public where this is used (level ``local``).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from discreet.arrays import FloatArray, IntArray, SingleArray
from discreet.graph.parts import Topology

_WALKERS = 1 << 15  # walkers that step together: pairs of a batch then take about 100 MB


class Walker:
    """First-order (``p = q = 1``, DeepWalk) and second-order (node2vec) walks.

    From b, having come from a, the next node c has weight 1/p if c = a, 1 if c and a are joined, and 1/q otherwise.
    A walker at a node without neighbours stays there.
    """

    def __init__(self, graph: Topology, *, p: float = 1.0, q: float = 1.0) -> None:
        self._indptr, self._indices, self._n = graph.indptr, graph.indices, graph.num_nodes
        self._degree = np.diff(graph.indptr)
        self._weights = np.array([1 / p, 1.0, 1 / q])  # back, near, away
        rows = np.repeat(np.arange(self._n), self._degree)
        self._keys = rows * self._n + self._indices  # rising: rows and the columns in them are sorted

    def walk(self, starts: IntArray, length: int, rng: np.random.Generator) -> IntArray:
        """One walk of ``length`` nodes from each start."""
        path = np.empty((len(starts), length), dtype=np.int64)
        path[:, 0] = starts
        for step in range(1, length):
            before = path[:, step - 2] if step > 1 else None
            path[:, step] = self._next(path[:, step - 1], before, rng)
        return path

    def _next(self, here: IntArray, before: IntArray | None, rng: np.random.Generator) -> IntArray:
        found = self._propose(here, rng)
        if before is None or (self._weights == 1).all():
            return found
        pending = np.flatnonzero(self._degree[here] > 0)
        while len(pending):  # rejection: a proposal is kept with its weight over the largest
            chance = self._weight(before[pending], found[pending]) / self._weights.max()
            pending = pending[rng.random(len(pending)) >= chance]
            found[pending] = self._propose(here[pending], rng)
        return found

    def _propose(self, here: IntArray, rng: np.random.Generator) -> IntArray:
        """A neighbour, all equally likely."""
        degree = self._degree[here]
        if len(self._indices) == 0:
            return here.copy()
        place = self._indptr[here] + (rng.random(len(here)) * degree).astype(np.int64)
        return np.where(degree > 0, self._indices[np.minimum(place, len(self._indices) - 1)], here)

    def _weight(self, before: IntArray, candidate: IntArray) -> FloatArray:
        wanted = before * self._n + candidate
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        near = self._keys[at] == wanted
        back, joined, away = self._weights
        return np.asarray(np.where(candidate == before, back, np.where(near, joined, away)))


def meetings(walker: Walker, num_nodes: int, *, walks: int, length: int, window: int, seed: int) -> sp.csr_array:
    """How often two nodes stand within ``window`` steps on a walk, over ``walks`` walks from every node; symmetric."""
    rng = np.random.default_rng(seed)
    starts = np.tile(np.arange(num_nodes), walks)
    total = sp.csr_array((num_nodes, num_nodes), dtype=np.float32)
    for first in range(0, len(starts), _WALKERS):
        path = walker.walk(starts[first : first + _WALKERS], length, rng).astype(np.int32)
        for offset in range(1, min(window, length - 1) + 1):
            pair = path[:, :-offset].ravel(), path[:, offset:].ravel()
            ones = np.ones(len(pair[0]), dtype=np.float32)
            total = total + sp.coo_array((ones, pair), shape=total.shape).tocsr()
    both = sp.csr_array(total + total.T)
    both.setdiag(0)
    both.eliminate_zeros()
    return both


def embed(counts: sp.csr_array, dimensions: int, seed: int) -> SingleArray:
    """Nodes as points: the positive pointwise mutual information of meetings, factorised.

    This is the matrix that word2vec with negative sampling factorises implicitly (Levy and Goldberg 2014; for walks,
    Qiu et al. 2018). Here it is done by a truncated singular value decomposition, which has no learning rate, gives
    the same answer twice, and needs no further package.
    """
    from sklearn.utils.extmath import randomized_svd

    degree = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    pairs = counts.tocoo()
    row, column = pairs.coords
    more = np.log(pairs.data * (max(degree.sum(), 1.0) / degree[row]) / degree[column]).astype(np.float32)
    kept = more > 0
    information = sp.csr_array((more[kept], (row[kept], column[kept])), shape=counts.shape)
    width = min(dimensions, counts.shape[0] - 1)
    left, values, _ = randomized_svd(information, width, n_iter=4, random_state=seed)
    return np.asarray(left * np.sqrt(values), dtype=np.float32)
