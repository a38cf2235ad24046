"""A graph whose edges lie in partitions, as methods see it, and sums over its edges, block by block.

Everything but the edges is at hand; edges can be summed over, by this process or by others (:class:`EdgeBlocks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.arrays import Array, FloatArray, IntArray
from discreet.graph.edge_weights import weighted_sums
from discreet.graph.graph import Graph
from discreet.graph.partition_files import read_edges
from discreet.graph.partition_manifest import Manifest, StoredBlock

_AT_ONCE = 1 << 16
"""Entries whose rows are held as doubles together: with 8 columns 4 MiB, which stay near the processor."""


@dataclass(frozen=True, eq=False, repr=False)
class GraphInBlocks(Graph):
    """A graph whose edges lie in partitions: they can be summed over (:meth:`edge_sums`), and nothing else.

    Guarantee: :meth:`edge_sums` gives the bits that it gives on the whole graph, whoever sums the blocks, in whatever
    order. Everything that would need an edge by itself is refused. ``indptr`` and ``indices`` are empty, and so is
    ``edge_weights`` where edges have weights.
    """

    in_blocks: ClassVar[bool] = True

    blocks: EdgeBlocks | None = None

    def edge_sums(self, *tables: Array, hears: Array | None = None) -> FloatArray:
        """Rows of a table added up over each node's senders."""
        assert self.blocks is not None
        return self.blocks.sums(tables, hears=hears, weighted=self.edge_weights is not None)

    @property
    def num_entries(self) -> int:
        """Not counted here."""
        self.check_in_memory()
        return 0

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """Not at hand."""
        self.check_in_memory()
        return super().adjacency

    def edges(self) -> tuple[IntArray, IntArray]:
        """Not at hand."""
        self.check_in_memory()
        return super().edges()

    @cached_property
    def weighted_adjacency(self) -> sp.csr_array:
        """Not at hand."""
        self.check_in_memory()
        return super().weighted_adjacency

    def with_edges(
        self, sources: npt.ArrayLike, targets: npt.ArrayLike, edge_weights: npt.ArrayLike | None = None
    ) -> Graph:
        """Not possible."""
        self.check_in_memory()
        return super().with_edges(sources, targets, edge_weights)

    def in_degree(self) -> IntArray:
        """Not at hand."""
        self.check_in_memory()
        return super().in_degree()

    def out_degree(self) -> IntArray:
        """Not at hand."""
        self.check_in_memory()
        return super().out_degree()

    def __repr__(self) -> str:
        """One line with what is public."""
        return f"GraphInBlocks({self.name!r}, {self.public})"


class EdgeBlocks(Protocol):
    """Whoever sums over edges that lie in blocks: this process, or workers."""

    def sums(self, tables: Sequence[Array], *, hears: Array | None, weighted: bool) -> FloatArray:
        """``ops.sparse.sums_over_edges`` for all nodes, with the weights of edges or without."""


@dataclass(frozen=True)
class BlocksOnDisk:
    """One block after the other, in this process: memory holds one block of edges at a time."""

    folder: Path
    manifest: Manifest

    def sums(self, tables: Sequence[Array], *, hears: Array | None, weighted: bool) -> FloatArray:
        """``ops.sparse.sums_over_edges`` for all nodes."""
        found = np.empty((self.manifest.num_nodes, tables[0].shape[1]))
        for block in self.manifest.blocks:
            heard = None if hears is None else hears[block.rows]
            found[block.rows] = sum_block(
                self.folder, block, self.manifest.num_nodes, tables, hears=heard, weighted=weighted
            )
        return found


def sum_block(
    folder: Path,
    block: StoredBlock,
    num_nodes: int,
    tables: Sequence[Array],
    *,
    hears: Array | None,
    weighted: bool,
) -> FloatArray:
    """``ops.sparse.sums_over_edges`` for the receivers of one block; ``hears`` is of these receivers.

    Guarantee: row v of the result is a function of v's edges, of the rows of their senders, and of the order in which
    edges are listed, bit for bit, whatever receivers are computed beside it: scipy adds entry × row in that order,
    beginning with zero, as ``ops.sparse`` does; with weights, see ``graph.edge_weights``.
    """
    indptr, indices, weights = read_edges(folder, block, num_nodes, weighted=weighted)
    values = np.ones(len(indices), dtype=np.float32) if weights is None else weights
    entries = sp.csr_array((values, indices, indptr), shape=(block.nodes, num_nodes))
    add = _sum_rows if weights is None else weighted_sums
    if hears is None:
        return add(entries, tables[0])
    found = np.zeros((block.nodes, tables[0].shape[1]))
    for number, table in enumerate(tables):
        receivers = np.flatnonzero(hears == number)
        found[receivers] = add(entries[receivers], table)
    return found


def _sum_rows(entries: sp.csr_array, table: Array) -> FloatArray:
    """``entries @ table`` in double precision. Only the rows that some receivers hear become doubles at a time: a
    table may be larger than a worker's memory.
    """
    if len(table) != entries.shape[1]:
        raise ValueError("a table has one row per node")
    found, rows = np.empty((entries.shape[0], table.shape[1])), np.asarray(table)  # take is slow on a mapped array
    ends = np.searchsorted(entries.indptr, np.arange(_AT_ONCE, entries.nnz, _AT_ONCE))
    for first, last in pairwise(np.unique([0, *ends, entries.shape[0]]).tolist()):
        some = slice(entries.indptr[first], entries.indptr[last])
        heard = np.take(rows, entries.indices[some], axis=0).astype(np.float64)  # four times as fast as rows[…]
        weights, starts = entries.data[some].astype(np.float64), entries.indptr[first : last + 1] - some.start
        part = sp.csr_array((weights, np.arange(len(heard)), starts), shape=(last - first, len(heard)))
        found[first:last] = part @ heard
    return found
