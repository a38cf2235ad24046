"""Cases of the queries that lpgnn and simgat ask."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.local.stages import feature_stage, label_stage
from discreet.privacy.query import Query
from discreet.testing import QueryCase


def _nothing(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
    """Reports are made of records alone."""
    return {}


def _features(spec: str, mechanism: str) -> QueryCase:
    def make(facts: PublicFacts) -> Query:
        shape = facts.num_nodes, facts.num_features
        return feature_stage(
            "features", mechanism, shape, epsilon=1.0, feature_range=(-1.0, 1.0), outside="clip", delta=1e-5
        ).query

    return QueryCase(f"reports of features, {mechanism}", spec, make, _nothing)


def _labels(spec: str, missing: int) -> QueryCase:
    def make(facts: PublicFacts) -> Query:
        return label_stage("labels", facts.num_nodes, facts.num_classes, 1.0, missing).query

    return QueryCase(f"reports of labels, {missing} where not asked", spec, make, _nothing)


CASES = [
    *(
        _features(spec, mechanism)
        for spec in ("local", "local:features")
        for mechanism in ("multi-bit", "one-bit", "laplace", "gaussian")
    ),
    *(_labels(spec, missing) for spec in ("local", "local:labels") for missing in (-1, 0)),
]
