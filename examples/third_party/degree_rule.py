"""A rule on noisy degrees: a query with its bound, a declaration, and an estimator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from discreet.arrays import Array, Arrays, FloatArray, SingleArray
from discreet.errors import GraphError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import GraphKeys, PrivatePart, PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods.base import NodeClassifier
from discreet.methods.declaration import Declaration
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage
from discreet.privacy.query import Bound, Query

DEGREE_RULE = Declaration(
    name="degree-rule",
    target="degree_rule:DegreeRule",
    covers={"edge": "weights+predictions"},
    summary="the class whose training nodes have the nearest noisy degree",
)


@dataclass(frozen=True)
class Degrees(Query):
    """How many edges reach each node.

    Guarantee. *Neighbours*: one edge, directed or undirected. *Bound*: a directed edge u → v adds 1 to the degree of v
    and to no other: 1 in ℓ2. An undirected edge adds 1 at both ends: √2. Both are attained by every pair of neighbours.
    *Floating point*: degrees are whole numbers far below 2⁵³, so the sums are exact. *Edge cases*: a graph without
    edges gives zeros. There are no inputs.
    """

    num_nodes: int
    directed: bool

    @property
    def words(self) -> str:
        """What is asked."""
        return "every node's degree"

    @property
    def shape(self) -> tuple[int, ...]:
        """One number per node."""
        return (self.num_nodes,)

    def bound(self) -> Bound:
        """How far all degrees move together in ℓ2."""
        if self.directed:
            return Bound(1.0, "l2", "a directed edge has one receiver")
        return Bound(math.sqrt(2), "l2", "an undirected edge has two ends")

    def answer(self, private: PrivatePart, **inputs: Any) -> FloatArray:
        """The degrees without noise: the curator calls this, adds the noise, and hands on the sum."""
        return private.graph.in_degree().astype(np.float64)


@dataclass(eq=False, repr=False)
class DegreeRule(NodeClassifier):
    """The class whose training nodes have the nearest noisy degree on average.

    Parameters
    ----------
    spread
        How far a degree may lie from a class's average before the class is called improbable.

    Guarantee: edges are read by ``Degrees`` alone; averages and predictions are computed from released degrees and
    public labels. Weights and all predictions are covered.
    """

    declaration = DEGREE_RULE

    _: KW_ONLY
    spread: Annotated[float, Field(gt=0)] = 5.0

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        return [
            Stage.of(self._stage_name(number), Degrees(facts.num_nodes, facts.directed), graph=number)
            for number, facts in enumerate(public)
        ]

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Any) -> None:
        train = parts[0].labelled(parts[0].mask("train"))  # labels are public at edge level: reading them costs nothing
        if len(train) == 0:
            raise GraphError("no training node has a label")
        self.keys_ = GraphKeys.of(parts)
        self.degrees_ = [curator.ask(self._stage_name(number)) for number in range(len(parts))]
        labels, released = parts[0].labels[train], self.degrees_[0]
        everyone = released.mean()  # a class without a training node is taken for average
        self.means_ = np.array(
            [
                released[train[labels == label]].mean() if (labels == label).any() else everyone
                for label in range(self.public_.num_classes)
            ]
        )

    def _probabilities(self, part: PublicPart) -> SingleArray:
        number = self.keys_.find(part)
        degrees = part.in_degree() if number is None else self.degrees_[number]
        scores = -(((degrees[:, None] - self.means_) / self.spread) ** 2)
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (likely / likely.sum(axis=1, keepdims=True)).astype(np.float32)

    def _uncovered(self, part: PublicPart) -> str | None:
        if self.keys_.find(part) is not None:
            return None
        return "predicting on another graph reads its edges: pass it to fit as one of extra_graphs"

    def _state(self) -> Arrays:
        degrees = {f"degrees.{number}": found for number, found in enumerate(self.degrees_)}
        return {"means": self.means_, **degrees, **self.keys_.state()}

    def _restore(self, state: Mapping[str, Array]) -> None:
        graphs = 1 + len(self.extra_public_)
        self.keys_ = GraphKeys.restore(state, graphs)
        self.degrees_ = [state[f"degrees.{number}"] for number in range(graphs)]
        self.means_ = state["means"]

    @staticmethod
    def _stage_name(number: int) -> str:
        return "degrees" if number == 0 else f"extra graph {number} degrees"
