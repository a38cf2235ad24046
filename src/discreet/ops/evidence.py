"""What neighbours say: counts of links between classes, and what each node receives, with their sensitivities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.graph.graph import Graph
from discreet.privacy.levels import EdgeLevel

FloatArray = npt.NDArray[np.float64]


def received(graph: Graph, told: npt.NDArray[Any]) -> FloatArray:
    """Row v is the sum of what v's neighbours tell: A·Q.

    Guarantee: see :func:`received_sensitivity`. In double precision, so that rounding stays far below the bound.
    """
    return np.asarray(graph.adjacency @ told.astype(np.float64))


def received_sensitivity(level: EdgeLevel) -> tuple[float, str]:
    """How far :func:`received` moves in ℓ2 when one edge changes, for rows of norm at most 1, and why.

    Guarantee: a directed edge u → v changes row v by Q_u: 1. An undirected one changes two rows: √2.
    Attained by one-hot rows.
    """
    if level.directed:
        return 1.0, "one directed edge changes one row by a class distribution, of norm at most 1"
    return math.sqrt(2), "one undirected edge changes two rows, each by a class distribution, of norm at most 1"


def link_counts(graph: Graph, told: npt.NDArray[Any]) -> FloatArray:
    """The (receiver class × sender class) matrix of links: QᵀAQ, halved on undirected graphs.

    Guarantee: see :func:`link_sensitivity`.
    """
    rows = told.astype(np.float64)
    counts = rows.T @ received(graph, rows)
    return np.asarray(counts if graph.directed else counts / 2)


def link_sensitivity(level: EdgeLevel) -> tuple[float, str]:
    """How far :func:`link_counts` moves in Frobenius norm when one edge changes, and why.

    Guarantee, for rows of norm at most 1, whatever the number of nodes and the degrees. Directed: the matrix
    moves by Q_v Q_uᵀ, of norm ‖Q_u‖‖Q_v‖ ≤ 1. Undirected: by ½(Q_uQ_vᵀ + Q_vQ_uᵀ), whose squared norm is
    ½(‖Q_u‖²‖Q_v‖² + (Q_u·Q_v)²) ≤ 1. Attained by two one-hot rows of one class.
    """
    kind = "directed" if level.directed else "undirected"
    return 1.0, f"one {kind} edge moves the table by an outer product of class distributions, of norm at most 1"
