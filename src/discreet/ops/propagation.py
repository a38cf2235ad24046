"""One hop over the edges: sum, mean and symmetric aggregation, each with its edge-level sensitivity."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import scipy.sparse as sp

from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph
from discreet.ops.sparse import SparseMatrix
from discreet.privacy.levels import EdgeLevel

Aggregation = Literal["sum", "mean", "symmetric"]


def hop_matrix(
    graph: Graph, aggregation: Aggregation, *, self_loops: bool = False, device: str = "cpu"
) -> SparseMatrix:
    """The matrix of one hop: row v gathers what reaches node v.

    *sum*: A. *mean*: D⁻¹A with D the in-degrees; a node that nothing reaches gets zero.
    *symmetric*: D^(−½) A D^(−½), for undirected graphs. ``self_loops`` puts A + I for A.
    """
    matrix = graph.adjacency
    if self_loops:
        matrix = (matrix + sp.eye_array(graph.num_nodes, dtype=np.float32, format="csr")).tocsr()
    if aggregation == "sum":
        return SparseMatrix(matrix, device)
    degree = np.diff(matrix.indptr)
    power = -1.0 if aggregation == "mean" else -0.5
    weight = np.where(degree > 0, np.maximum(degree, 1) ** power, 0.0).astype(np.float32)
    data = np.repeat(weight, degree)
    if aggregation == "symmetric":
        if graph.directed:
            raise UnsupportedError("symmetric aggregation needs an undirected graph: use mean, or to_undirected()")
        data = data * weight[matrix.indices]
    return SparseMatrix(sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape), device)


def edge_sensitivity(aggregation: Aggregation, level: EdgeLevel) -> tuple[float, str]:
    """How far one hop over rows of norm at most 1 moves in ℓ2 (all rows together), and why.

    Guarantee. Neighbours differ in one edge; the rows H do not depend on edges, or are released already.

    *sum*. A directed edge u → v changes row v by h_u: 1. An undirected one changes rows u and v by
    h_v and h_u: √2. Attained by unit rows.

    *mean*. Adding u → v to a row of degree d moves it by (h_u − mean)/(d + 1), of norm at most
    2/(d + 1) ≤ 1 for d ≥ 1, and by h_u for d = 0: at most 1 a row, so 1 and √2. Attained at isolated nodes.

    *symmetric*, undirected, without self-loops. Let a, b be the degrees of u, v before {u, v} is added and
    f(a) = 1 − √(a/(a+1)). Row u moves by at most √a·f(a) + 1/√((a+1)(b+1)), row v likewise. The other
    neighbours w of u move by at most (1/√d_w)(1/√a − 1/√(a+1)), in squares f(a)² in all; a common
    neighbour of u and v has d_w ≥ 2, which pays for the sum of its two terms. The total of squares is 2 at
    a = b = 0 and at most 1.6 elsewhere: √2, attained at two isolated nodes.
    """
    if aggregation == "symmetric" and level.directed:
        raise UnsupportedError("symmetric aggregation needs an undirected graph: use sum or mean")
    if level.directed:
        return 1.0, f"one directed edge changes one {aggregation} by norm at most 1"
    if aggregation == "symmetric":
        return math.sqrt(2), "one undirected edge moves its ends and their neighbours by norm at most √2 together"
    return math.sqrt(2), f"one undirected edge changes two {aggregation}s, each by norm at most 1"
