"""Cases of the query that balanced class weights ask where labels are private."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.privacy.levels import parse_level
from discreet.queries.class_counts import ClassCounts
from discreet.testing import QueryCase

LEVELS = ("node:owned,max_degree=2,change=null", "node:owned,max_degree=2,change=replace", "neighbor:2")


def _counts(spec: str) -> QueryCase:
    def make(facts: PublicFacts) -> ClassCounts:
        return ClassCounts(parse_level(spec), facts.num_classes)

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        return {}

    return QueryCase("class counts", spec, make, inputs)


CASES = [_counts(spec) for spec in LEVELS]
