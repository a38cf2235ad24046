"""How many training ids there are of each class, where labels are private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import FloatArray
from discreet.errors import UnsupportedError
from discreet.graph.parts import PrivatePart
from discreet.privacy.levels import Level, NeighborLevel, NodeLevel
from discreet.privacy.query import PROVED_HERE, Bound, Query
from discreet.queries.reach import is_null


@dataclass(frozen=True)
class ClassCounts(Query):
    """The number of training ids of each class. There are no inputs.

    Guarantee. *Neighbours*: one node's record and edges (levels node and k neighbours). A training id with a label is
    counted once, one without is not counted; edges and features are not read. Under *null* the unit's label is gone on
    one side: one count moves by 1. Under *replace*, and for k neighbours, one count falls and another rises by 1 at
    most: √2 in ℓ2. Attained by every unit that is a training id with a label. *Floating point*: whole numbers.
    """

    proof: ClassVar[str] = PROVED_HERE

    level: Level
    num_classes: int

    @property
    def words(self) -> str:
        """What is asked."""
        return "how many training ids of each class there are"

    @property
    def shape(self) -> tuple[int, ...]:
        """One count per class."""
        return (self.num_classes,)

    def bound(self) -> Bound:
        """1 under null, √2 otherwise, in ℓ2."""
        if not isinstance(self.level, NodeLevel | NeighborLevel):
            raise UnsupportedError(f"counts of labels have no bound at level {self.level.spec}")
        if is_null(self.level):
            return Bound(1.0, "l2", "one record counts once, or not at all if it is removed")
        return Bound(math.sqrt(2), "l2", "one record counts once, and for another class if it is replaced")

    def answer(self, private: PrivatePart, **inputs: Any) -> FloatArray:
        """The counts."""
        graph = private.graph
        labels = graph.labels[graph.mask("train")]
        return np.bincount(labels[labels >= 0], minlength=self.num_classes).astype(np.float64)
