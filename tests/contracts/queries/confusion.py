"""Cases of tables that count labels against predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.graph.graph import Graph, PublicFacts
from discreet.graph.parts import PublicPart
from discreet.privacy.levels import parse_level
from discreet.queries.confusion import ConfusionTable, PredictionCounts, ScoreTable
from discreet.testing import QueryCase
from tests.contracts.queries.hop_bayes import NODE_LEVELS
from tests.contracts.queries.hostile import hostile_rows

CLASSES, BINS = 3, 4


class OwnRecords:
    """A released linear model that reads each node's own features, whatever its weights are."""

    def __init__(self, weights: Array) -> None:
        self.weights = weights

    def predict_proba(self, graph: Graph, **options: Any) -> Array:
        with np.errstate(all="ignore"):
            scores: Array = np.asarray(graph.features, dtype=np.float64) @ self.weights
            return 1 / (1 + np.exp(-scores))


def _inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
    rows = hostile_rows(public.num_features, CLASSES, rng, hostility)
    return {"model": OwnRecords(np.asarray(rows, dtype=np.float64))}


def _confusion(spec: str) -> QueryCase:
    def make(facts: PublicFacts) -> PredictionCounts:
        return ConfusionTable(parse_level(spec), "weights+others-predictions", CLASSES, "all")

    return QueryCase("confusion table", spec, make, _inputs)


def _scores(spec: str) -> QueryCase:
    def make(facts: PublicFacts) -> PredictionCounts:
        return ScoreTable(parse_level(spec), "weights+others-predictions", CLASSES, "all", BINS)

    return QueryCase("scores by class", spec, make, _inputs)


CASES = [*map(_confusion, NODE_LEVELS), *map(_scores, NODE_LEVELS)]
