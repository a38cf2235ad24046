"""Levels for what reads adjacency rows."""

from __future__ import annotations

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
