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
    """Row v is the sum of what v's neighbours tell: A·Q, in double precision: rounding stays far below bounds."""
    return np.asarray(graph.adjacency @ told.astype(np.float64))


def told_to(graph: Graph, told: FloatArray, receivers: npt.NDArray[np.bool_]) -> FloatArray:
    """What each receiver is told, added up: rows of ``told`` (distributions over c classes) less 1/c.

    On undirected graphs a node that is itself a receiver tells no more than norm B/√2, B = √(1 − 1/c).
    Guarantee: see :func:`told_sensitivity`. Who receives must be public.
    """
    classes = told.shape[1]
    rows = told - 1 / classes
    if not graph.directed:
        bound = np.where(receivers, math.sqrt((1 - 1 / classes) / 2), 1.0)[:, None]
        rows = rows * np.minimum(1, bound / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), bound))
    return np.asarray(graph.adjacency[np.flatnonzero(receivers)].astype(np.float64) @ rows)


def told_sensitivity(level: EdgeLevel, classes: int) -> tuple[float, str]:
    """How far :func:`told_to` moves in ℓ2 over all receivers when one edge changes, and why.

    Guarantee, with q = Q − 1/c of norm at most B = √(1 − 1/c). A directed edge u → v changes one row by q_u: B. An
    undirected one changes row v by q_u if v is a receiver, and row u by q_v if u is. If both are, each tells at
    most B/√2, and √(B²/2 + B²/2) = B; if one is, the other tells at most B. Attained by the label of a node that
    is no receiver, and by two receivers that are sure.
    """
    kind = "directed" if level.directed else "undirected"
    why = f"one {kind} edge changes what is told by √(1 − 1/c): one row, or two by 1/√2 of that each"
    return math.sqrt(1 - 1 / classes), why


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
