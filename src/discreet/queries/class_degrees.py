"""How many of each node's neighbours were said to be of each class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from dp_accounting.dp_event import DpEvent

from discreet.arrays import Array, FloatArray
from discreet.errors import UnsupportedError
from discreet.graph.parts import PrivatePart
from discreet.ops.sparse import sums_over_edges
from discreet.privacy import events
from discreet.privacy.levels import EdgeLevel, Level, NoPrivacy
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query

CountNoise = Literal["laplace", "gaussian"]


@dataclass(frozen=True)
class ClassDegrees(Query):
    """One row per node: how many neighbours of each class it has, where ``classes`` names a class for every node.

    Input: ``classes``, public or released, one number per node; what is no class is moved to the nearest one here.

    Guarantee, for every ``classes``. *Neighbours*: one edge. *Bound*: a directed edge u → v adds 1 to one count of v:
    1, in ℓ1 and in ℓ2. An undirected edge also adds 1 to one count of u, in another row: 2 in ℓ1, √2 in ℓ2. Attained by
    every pair of neighbours. *Floating point*: counts are whole numbers far below 2⁵³, so sums are exact.
    """

    proof: ClassVar[str] = PROVED_HERE

    level: Level
    num_nodes: int
    num_classes: int
    noise: CountNoise = "laplace"
    stage: int = 1

    @property
    def words(self) -> str:
        """What is asked."""
        return f"how many neighbours of each class every node has, as stage {self.stage} sees classes"

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per node, one count per class."""
        return (self.num_nodes, self.num_classes)

    @property
    def answered_by(self) -> str:
        """Laplace or Gaussian noise."""
        return self.noise

    def bound(self) -> Bound:
        """How far all counts move together, in the metric of the noise."""
        metric = "l1" if self.noise == "laplace" else "l2"
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, metric, NO_BOUND)
        if not isinstance(self.level, EdgeLevel):
            raise UnsupportedError(f"counts of neighbours have no bound at level {self.level.spec}")
        if self.level.directed:
            return Bound(1.0, metric, "one directed edge changes one count by 1")
        both = 2.0 if metric == "l1" else math.sqrt(2)
        return Bound(both, metric, "one undirected edge changes two counts by 1 each")

    def event(self, share: float, runs: int) -> DpEvent:
        """Of the noise that was asked for."""
        if self.noise == "gaussian":
            return super().event(share, runs)
        return events.LaplaceDpEvent(math.sqrt(runs / share))

    @property
    def adds_over_edges(self) -> bool:
        """Nothing else is read."""
        return True

    def answer(self, private: PrivatePart, *, classes: Array, **inputs: Any) -> FloatArray:
        """The counts, as whole numbers."""
        with np.errstate(invalid="ignore"):
            numbers = np.nan_to_num(np.asarray(classes, dtype=np.float64), nan=0.0)
        named = np.clip(np.rint(numbers), 0, self.num_classes - 1).astype(np.int64)
        sent = np.zeros(self.shape)
        sent[np.arange(self.num_nodes), named] = 1
        return sums_over_edges(private.graph, sent)
