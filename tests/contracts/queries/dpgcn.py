"""Cases of the queries that dpgcn asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.privacy.levels import parse_level
from discreet.queries.edge_cells import EdgeCells, FlippedCells, LargestCells
from discreet.testing import QueryCase


def _nothing(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
    """Cells are made of edges alone."""
    return {}


def _cells(spec: str, mechanism: str) -> QueryCase:
    level = parse_level(spec)

    def make(facts: PublicFacts) -> EdgeCells:
        if mechanism == "edge-rand":
            return FlippedCells(level, facts.num_nodes, facts.directed, 1.0)
        return LargestCells(level, facts.num_nodes, facts.directed)

    return QueryCase(f"cells, {mechanism}", spec, make, _nothing)


CASES = [_cells(spec, mechanism) for spec in ("edge", "edge:directed") for mechanism in ("edge-rand", "lap-graph")]
