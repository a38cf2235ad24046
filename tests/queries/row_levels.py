"""Levels and graphs for what reads adjacency rows."""

from __future__ import annotations

import numpy as np

from discreet.graph.graph import Graph
from discreet.privacy.levels import Level, NeighborLevel, NodeLevel

LEVELS: list[Level] = [
    NodeLevel(3),
    NodeLevel(3, change="replace"),
    NodeLevel(12, "promised"),
    NodeLevel(12, "promised", "replace"),
    NeighborLevel(2),
    NeighborLevel(2, 3),
    NeighborLevel(2, 12, "promised"),
    NeighborLevel(3, edges="promised"),
]


def make(pairs: list[tuple[int, int]], n: int, directed: bool = True) -> Graph:
    """A graph of these entries, or edges."""
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Graph.from_edges(source, target, np.zeros((n, 1)), directed=directed, num_classes=2)
