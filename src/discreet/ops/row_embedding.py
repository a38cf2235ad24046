"""Adjacency rows times a matrix of node rows, A·W, and a public W whose rows a hash picks."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch

from discreet.arrays import FloatArray
from discreet.graph.edge_weights import weighted_sums
from discreet.ops.keyed_hash import hash_pairs
from discreet.ops.rows import clip_rows

Weight: TypeAlias = "FloatArray | sp.csr_array"

_MARGIN = 1 - 1e-6  # what rounding may add to a norm


def hashed_rows(num_nodes: int, width: int, key: bytes, *, row_norm: float = 1.0, nonzeros: int = 4) -> sp.csr_array:
    """A public W: each node's row holds ``nonzeros`` signs (fewer if ``width`` is less) at places that a hash picks.

    Guarantee: a function of the key, the node's id and the two sizes, and of no data; every row has norm at most
    ``row_norm`` (and all of it but a rounding margin). The width is cut into as many blocks as there are signs,
    one in each, so that places never meet. Memory grows with nodes × nonzeros; with four, unit rows that share
    one place have an inner product of a quarter.
    """
    slots = min(nonzeros, width)
    edges = np.linspace(0, width, slots + 1).astype(np.int64)
    node = np.repeat(np.arange(num_nodes, dtype=np.int64), slots)
    slot = np.tile(np.arange(slots, dtype=np.int64), num_nodes)
    hashed = hash_pairs(key, node, slot)
    sign = 1.0 - 2.0 * (hashed & np.uint64(1)).astype(np.float64)
    size = (edges[1:] - edges[:-1])[slot]
    place = edges[slot] + ((hashed >> np.uint64(1)) % size.astype(np.uint64)).astype(np.int64)
    starts = np.arange(num_nodes + 1, dtype=np.int64) * slots
    data = sign * (row_norm * _MARGIN / math.sqrt(slots))
    return sp.csr_array((data, place, starts), shape=(num_nodes, width))


def embed_rows(
    adjacency: sp.csr_array, weight: Weight, clip: float | None = None, *, weighted: bool = False
) -> FloatArray:
    """A·W in double precision, rows cut at norm ``clip`` where one is given; costs (entries) × (width of W's rows).

    ``weighted`` says that entries of A are weights of edges: sums are then those of ``weighted_sums``, as exact.
    """
    dense = weighted_sums(adjacency, _dense(weight)) if weighted else _dense(adjacency.astype(np.float64) @ weight)
    return dense if clip is None else clip_rows(torch.from_numpy(dense), clip).numpy()


def _dense(matrix: Weight) -> FloatArray:
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())
