"""Cases of the queries that lpgnet asks; progap asks those of gap."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.privacy.levels import parse_level
from discreet.queries.class_degrees import ClassDegrees
from discreet.testing import QueryCase
from tests.contracts.queries.hostile import hostile_rows


def _degrees(spec: str, noise: str) -> QueryCase:
    level = parse_level(spec)

    def make(facts: PublicFacts) -> ClassDegrees:
        return ClassDegrees(level, facts.num_nodes, facts.num_classes, noise)  # type: ignore[arg-type]

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        return {"classes": hostile_rows(public.num_nodes, 1, rng, hostility)[:, 0]}

    return QueryCase(f"class degrees, {noise}", spec, make, inputs)


CASES = [_degrees(spec, noise) for spec in ("edge", "edge:directed") for noise in ("laplace", "gaussian")]
