"""How many validation nodes a released model predicts right: the score that a search selects by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from discreet.arrays import FloatArray, SingleArray
from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.privacy.levels import Level
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query


class Predicts(Protocol):
    """A released model."""

    def predict_proba(self, graph: Graph, **options: Any) -> SingleArray:
        """Class probabilities, one row per node."""


@dataclass(frozen=True)
class ValidationHits(Query):
    """The number of validation ids whose label a released model predicts. Input: ``model``, which covers ``covers``.

    Guarantee. Let a trial's release be given. Between neighbours the number moves by at most

    - 0 at edge level where all predictions are covered: predictions are a function of the release, labels are public;
    - 2 at edge level where each node's own prediction is covered: a prediction reads its own node's edges, and an edge
      has two ends;
    - 1 at node and k-neighbour level where all predictions but the unit's own are covered: the unit's own term (its
      prediction, its label, whether it has one) is the only one that may change, and it is 0 or 1.

    Everything else is refused: where only the weights are covered, one unit may move the predictions of all its
    neighbours, and at level local labels never leave their owner.
    """

    proof: ClassVar[str] = PROVED_HERE

    level: Level
    covers: str

    @property
    def words(self) -> str:
        """What is asked."""
        return "how many validation nodes are predicted right"

    @property
    def shape(self) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def bound(self) -> Bound:
        """How many terms one unit can change."""
        kind = self.level.kind
        if kind == "none":
            return Bound(0.0, "l2", NO_BOUND)
        if kind == "edge" and self.covers == "weights+predictions":
            return Bound(0.0, "l2", "a function of the release and of public labels")
        if kind == "edge" and self.covers == "own-prediction":
            return Bound(2.0, "l2", "an edge is read by the predictions of its two ends")
        if kind in ("node", "neighbor") and self.covers in ("weights+predictions", "weights+others-predictions"):
            return Bound(1.0, "l2", "only the unit's own prediction and label can change")
        raise UnsupportedError(
            f"a score at level {kind} where {self.covers} is covered has no bound that could be charged: "
            "search with --not-accounted, or choose a method that covers its predictions"
        )

    def answer(self, private: PrivatePart, *, model: Predicts, **inputs: Any) -> FloatArray:
        """The count, as a vector of one entry."""
        graph = private.graph
        predicted = model.predict_proba(graph, audience="owner", uncovered=True).argmax(axis=1)
        right = (predicted == graph.labels) & (graph.labels >= 0) & graph.mask("val")
        return np.array([float(right.sum())])


def even_odds_noise(nodes: int) -> float:
    """√nodes/2, the standard deviation of a count at even odds: about doubles the variance that it has anyway."""
    return math.sqrt(nodes) / 2
