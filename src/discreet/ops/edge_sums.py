"""Sums over edges in double precision, on the processor and on all threads; each row is added up in one order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
import torch

from discreet.arrays import Array, FloatArray, IntArray
from discreet.graph.partitions import GraphInBlocks
from discreet.graph.parts import Topology
from discreet.ops.compiled import compiled
from discreet.ops.sparse import Aggregation, refuse_aggregation

_SMALL = 1 << 17
"""Numbers in ``rows`` up to which machine code of our own is not worth loading. Public: edges have no say in it."""
_PORTIONS = 8
"""Portions per thread, so that one with long rows does not hold up the others."""


def edge_sums(matrix: sp.csr_array, rows: Array, receivers: IntArray | None = None) -> FloatArray:
    """``matrix @ rows`` in double precision; of the rows ``receivers`` of the matrix alone, where these are given.

    Guarantee: row v adds entry × rows[u] over its entries (v, u) in their order, beginning with zero. So its bits
    depend on its own entries and on what is sent along them, and on no other row, number of threads, or device that
    the rest of a fit uses. Entries of one bring no rounding of their own. Rows in single precision stay so in memory,
    which is half as much to read, and become doubles before anything is done with them.
    """
    sent = np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)
    if sent.size <= _SMALL:
        part = matrix if receivers is None else matrix[receivers]
        return np.asarray(part @ sent.astype(np.float64, copy=False))
    chosen = np.arange(matrix.shape[0]) if receivers is None else receivers
    sums = np.empty((len(chosen), sent.shape[1]))
    _add_in_threads(matrix, sent, chosen, sums)
    return sums


def sums_over_edges(graph: Topology, *tables: Array, hears: Array | None = None) -> FloatArray:
    """Row v adds up rows of a table over v's edges, each as much as the edge weighs, with the guarantee above.

    Tables have one row per node. ``hears`` says for each node the number of the table that it hears; the first where it
    is None. The edges of a graph in partitions are summed over where they lie, to the same bits.
    """
    if isinstance(graph, GraphInBlocks):
        return graph.edge_sums(*tables, hears=hears)
    if hears is None:
        return edge_sums(graph.weighted_adjacency, tables[0])
    found = np.zeros((graph.num_nodes, tables[0].shape[1]))
    for number, table in enumerate(tables):
        receivers = np.flatnonzero(hears == number)
        found[receivers] = edge_sums(graph.weighted_adjacency, table, receivers)
    return found


def neighbour_sums(graph: Topology, rows: Array, aggregation: Aggregation) -> FloatArray:
    """One hop over ``rows`` as ``ops.sparse.hop_matrix`` defines it, in double precision, with that guarantee."""
    refuse_aggregation(graph, aggregation)
    if aggregation == "sum":
        return sums_over_edges(graph, rows)
    if aggregation == "mean":
        counted = sums_over_edges(
            graph, np.hstack([rows, np.ones((len(rows), 1), dtype=rows.dtype)])
        )  # the last column counts edges
        return np.asarray(counted[:, :-1] / np.maximum(counted[:, -1:], 1))
    degree = np.maximum(graph.in_degree(), 1)[:, None]
    return edge_sums(graph.adjacency, rows / np.sqrt(degree)) / np.sqrt(degree)


def _add_in_threads(matrix: sp.csr_array, sent: Array, chosen: IntArray, sums: FloatArray) -> None:
    kernel, threads = compiled(_add), torch.get_num_threads()

    def add(first: int, last: int) -> None:
        kernel(matrix.indptr, matrix.indices, matrix.data, sent, chosen[first:last], sums[first:last])

    if threads == 1:
        add(0, len(chosen))
        return
    ends = _portions(matrix.indptr, chosen, threads * _PORTIONS)
    with ThreadPoolExecutor(threads, thread_name_prefix="sums") as pool:
        list(pool.map(add, ends[:-1], ends[1:]))


def _portions(indptr: IntArray, chosen: IntArray, count: int) -> list[int]:
    """Where to cut the chosen rows, so that portions have about as many entries each."""
    work = np.cumsum(indptr[chosen + 1] - indptr[chosen] + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], count + 1)[1:-1])
    return [0, *cuts.tolist(), len(chosen)]


def _add(indptr: IntArray, indices: IntArray, data: Array, sent: Array, chosen: IntArray, sums: FloatArray) -> None:
    width = sent.shape[1]
    for place in range(len(chosen)):
        receiver = chosen[place]
        for column in range(width):
            sums[place, column] = 0.0
        for entry in range(indptr[receiver], indptr[receiver + 1]):
            sender, weight = indices[entry], np.float64(data[entry])
            for column in range(width):
                sums[place, column] += weight * np.float64(sent[sender, column])
