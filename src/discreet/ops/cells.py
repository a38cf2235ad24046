"""The cells of an adjacency matrix as whole numbers: one for every pair that could be an edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from discreet.arrays import IntArray


@dataclass(frozen=True)
class Cells:
    """The pairs of ``num_nodes`` nodes that could be edges, numbered from 0: ordered ones where edges are directed.

    Number i + n·j is the pair of i and (i + j + 1) mod n. *This counts every pair once.* Ordered, j runs from 0 to
    n − 2, and j + 1 is how far the receiver lies behind the sender, around the circle. Unordered, one of the two ways
    around is the shorter: j + 1 < n/2 for every i; where both are n/2, the pair belongs to the smaller end, and these
    i < n/2 come last. So the numbers below n(n − 1)/2 are one triangle, with no root to round.
    """

    num_nodes: int
    directed: bool

    @property
    def count(self) -> int:
        """How many pairs there are."""
        ordered = self.num_nodes * (self.num_nodes - 1)
        return ordered if self.directed else ordered // 2

    def numbers(self, sources: IntArray, targets: IntArray) -> IntArray:
        """The numbers of these pairs."""
        sources, targets = np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64)
        apart = (targets - sources) % self.num_nodes
        if not self.directed:
            turned = (2 * apart > self.num_nodes) | ((2 * apart == self.num_nodes) & (sources > targets))
            sources, apart = np.where(turned, targets, sources), np.where(turned, self.num_nodes - apart, apart)
        return np.asarray(sources + self.num_nodes * (apart - 1))

    def ends(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """The pairs of these numbers, as sources and targets."""
        apart, sources = np.divmod(numbers, self.num_nodes)
        return sources, (sources + apart + 1) % self.num_nodes

    def adjacency(self, numbers: IntArray) -> sp.csr_array:
        """The matrix with ``A[v, u] = 1`` for every pair u → v of these numbers; both ways where unordered."""
        sources, targets = (ends.astype(np.int32) for ends in self.ends(numbers))
        ones = np.ones(len(numbers), dtype=np.float32)
        one_way = sp.csr_array((ones, (targets, sources)), shape=(self.num_nodes, self.num_nodes))
        both = one_way if self.directed else one_way + one_way.T.tocsr()
        both.sort_indices()
        return both
