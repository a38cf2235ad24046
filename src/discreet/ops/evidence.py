"""What neighbours say: counts of links between classes, and what each node receives, with their sensitivities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.graph.graph import Graph
from discreet.privacy.levels import EdgeLevel

FloatArray = npt.NDArray[np.float64]
_ROUNDING = 1e-10
"""Sums over a million neighbours in double precision err by less than this part."""


def received(graph: Graph, told: npt.NDArray[Any]) -> FloatArray:
    """Row v is the sum of what v's neighbours tell: A·Q, in double precision: rounding stays far below bounds."""
    return np.asarray(graph.adjacency @ told.astype(np.float64))


def heard(graph: Graph, messages: FloatArray, receivers: npt.NDArray[np.bool_], bound: float) -> FloatArray:
    """What every node hears, added up: rows of ``messages``, cut at norm ``bound``.

    On undirected graphs who hears whom is arranged so that an edge costs no more than one message. Receivers hear
    everyone, one another at norm no more than bound/√2. The others hear one another at norm no more than bound/√2,
    and no receiver. On directed graphs everyone hears everyone in full.
    Guarantee: see :func:`heard_sensitivity`. Who receives must be public, messages public or released.
    """
    adjacency = graph.adjacency
    full = _cut(messages.astype(np.float64), bound)
    if graph.directed:
        return np.asarray(adjacency @ full)
    short, hears = _cut(messages.astype(np.float64), bound / math.sqrt(2)), receivers[:, None]
    rows = np.empty((graph.num_nodes, messages.shape[1]))
    inside, outside = np.flatnonzero(receivers), np.flatnonzero(~receivers)
    rows[inside] = adjacency[inside] @ np.where(hears, short, full)
    rows[outside] = adjacency[outside] @ np.where(hears, 0.0, short)
    return rows


def message_bound(classes: int) -> float:
    """B = √(1 − 1/c), the largest norm of a distribution over c classes less 1/c."""
    return math.sqrt(1 - 1 / classes)


def heard_sensitivity(level: EdgeLevel, bound: float) -> tuple[float, str]:
    """How far :func:`heard` moves in ℓ2 over all nodes when one edge changes, and why.

    Guarantee, for messages that do not depend on edges or are functions of released values, cut at norm B. A directed
    edge u → v changes one row by u's message: B. An undirected one changes row v by what u tells v, and row u by what
    v tells u. Both receivers, or neither: each is at most B/√2, and √(B²/2 + B²/2) = B. One of them: the receiver's
    row changes by at most B, the other's not at all. Attained by messages of norm B, in each of the three cases.
    """
    kind = "directed" if level.directed else "undirected"
    return bound, f"one {kind} edge changes what is heard by one message: one row in full, or two by 1/√2 of it each"


def _cut(rows: FloatArray, norm: float) -> FloatArray:
    """Rows no longer than ``norm``, by a margin above what rounding adds; a row that is not finite says nothing.

    A row that is not finite would show in exactly the sums that its edges carry it to.
    """
    finite = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    bound = norm * (1 - _ROUNDING)
    with np.errstate(over="ignore"):  # a row too long to measure is cut to nothing
        lengths = np.linalg.norm(finite, axis=1, keepdims=True)
    return np.asarray(finite * (bound / np.maximum(lengths, bound if bound > 0 else 1.0)))


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
