"""Graphs without features for tests of what edges alone decide, and one hop written down once more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.graph.graph import Graph

KEY = bytes(range(16))


def make_graph(pairs: Sequence[tuple[int, int]] | np.ndarray, n: int, directed: bool = True) -> Graph:
    """A graph of these entries, or edges."""
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Graph.from_edges(ends[:, 0], ends[:, 1], np.zeros((n, 1)), directed=directed, num_classes=2)


def random_graph(rng: np.random.Generator, n: int, entries: int, directed: bool = True) -> Graph:
    """At most so many entries between random nodes."""
    ends = rng.integers(0, n, (entries, 2))
    return make_graph(ends[ends[:, 0] != ends[:, 1]], n, directed)


def dense_adjacency(graph: Graph) -> np.ndarray:
    """Rows are receivers."""
    return graph.adjacency.toarray().astype(float)


def dense_hop(adjacency: np.ndarray, aggregation: str) -> np.ndarray:
    """The definition of one hop: rows are receivers."""
    degree = adjacency.sum(axis=1)
    inverse = np.where(degree > 0, 1 / np.maximum(degree, 1), 0)
    if aggregation == "sum":
        return adjacency.copy()
    if aggregation == "mean":
        return inverse[:, None] * adjacency
    return np.sqrt(inverse)[:, None] * adjacency * np.sqrt(inverse)[None, :]
