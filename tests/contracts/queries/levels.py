"""Levels that several families of cases have in common."""

from __future__ import annotations

NODE_LEVELS = (
    "node:owned,max_degree=2,change=null",
    "node:owned,max_degree=2,change=replace",
    "node:promised,max_degree=3,change=null",
    "node:promised,max_degree=3,change=replace",
    "node:thinned,d_max=4,p=0.5,change=null",
    "node:thinned,d_max=4,p=0.5,change=replace",
)
"""Every basis of a node's degree, with both changes, at bounds that a handful of nodes can pass."""


def failure_of(spec: str) -> float | None:
    """The failure probability that thinning needs, and no other basis takes."""
    return 1e-6 if "thinned" in spec else None
