"""Tables that count labels against what a released model predicts: the figures of a model, where labels are private."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from discreet.arrays import Array, FloatArray, IntArray
from discreet.errors import PlanViolationError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.privacy.levels import Level, NodeLevel
from discreet.privacy.query import PROVED_HERE, Bound, Query

OWN_RECORD = ("weights+predictions", "weights+others-predictions")
"""Coverage under which a prediction reads its own node's record and released values, and nothing else."""


class Predicts(Protocol):
    """A released model."""

    def predict_proba(self, graph: Graph, **options: Any) -> Array:
        """Class probabilities of every node."""


@dataclass(frozen=True)
class PredictionCounts(Query):
    """Counts over the labelled nodes of a public set of ids. Input: ``model``, a released model.

    Guarantee (levels node and k neighbours; a prediction reads its own record and released values alone, which is
    what ``covers`` says). Let the model be given. A node with a label adds t ones, one in each of t tables,
    and a node without a label adds nothing; which cells is a function of its record and the model. So between
    neighbours the contribution of the unit alone changes. Under *null* it goes from t ones to nothing, because a
    removed record has no label: t in ℓ1, √t in ℓ2. Under *replace*, and for k neighbours, in each table one count falls
    by 1 and another rises by 1 at most: 2t in ℓ1, √(2t) in ℓ2. Edges that come or go change no contribution. This
    holds for every model: a probability that is no number counts as 0.

    Everything else is refused: where one record may reach the predictions of its neighbours there is no such bound, and
    at level local labels never leave their owner.
    """

    level: Level
    covers: str
    num_classes: int
    ids: str

    def bound(self) -> Bound:
        """√t under null, √(2t) under replace and for k neighbours, in ℓ2."""
        if self.level.kind not in ("node", "neighbor") or self.covers not in OWN_RECORD:
            raise UnsupportedError(
                f"figures at level {self.level.kind} (covered: {self.covers}) have no bound that could be charged: "
                "a prediction must read its own record and released values alone"
            )
        null = isinstance(self.level, NodeLevel) and self.level.change == "null"
        moved = self._tables() * (1 if null else 2)
        return Bound(math.sqrt(moved), "l2", f"one record counts {self._how_often()}, {_CHANGES[null]}")

    def answer(self, private: PrivatePart, *, model: Predicts, **inputs: Any) -> FloatArray:
        """The counts."""
        graph = private.graph
        found = np.asarray(model.predict_proba(graph, audience="owner"), dtype=np.float64)
        if found.shape != (graph.num_nodes, self.num_classes):
            raise PlanViolationError("the model gives no probability for every node and class")
        chosen = np.flatnonzero(chosen_ids(graph, self.ids) & (graph.labels >= 0))
        probabilities = np.nan_to_num(found[chosen], nan=0.0, posinf=1.0, neginf=0.0)
        counts = np.zeros(self.shape)
        np.add.at(counts, self._cells(graph.labels[chosen], probabilities), 1.0)
        return counts

    def _tables(self) -> int:
        """In how many tables one node is counted."""
        return 1

    def _how_often(self) -> str:
        return "once" if self._tables() == 1 else f"once in each of {self._tables()} tables"

    @abstractmethod
    def _cells(self, labels: IntArray, probabilities: FloatArray) -> tuple[Array, ...]:
        """Where each node is counted."""


_CHANGES = {True: "or not at all if it is removed", False: "and moves to another cell if it is replaced"}


@dataclass(frozen=True)
class ConfusionTable(PredictionCounts):
    """How many nodes of each class (rows) are given each class (columns). Bound: :class:`PredictionCounts`, t = 1."""

    proof: ClassVar[str] = PROVED_HERE

    @property
    def words(self) -> str:
        """What is asked."""
        return f"how many {self.ids} nodes of each class are given each class"

    @property
    def shape(self) -> tuple[int, ...]:
        """Class by class."""
        return (self.num_classes, self.num_classes)

    def _cells(self, labels: IntArray, probabilities: FloatArray) -> tuple[Array, ...]:
        return labels, probabilities.argmax(axis=1)


@dataclass(frozen=True)
class ScoreTable(PredictionCounts):
    """How many nodes of each class have a probability in each bin, for each class that is scored.

    Of two classes the second is scored (the first has the rest), of more each. Bound: :class:`PredictionCounts`,
    t the number of classes that are scored.
    """

    proof: ClassVar[str] = PROVED_HERE

    bins: int

    @property
    def scored(self) -> Sequence[int]:
        """The classes whose probability is binned."""
        return (1,) if self.num_classes == 2 else range(self.num_classes)

    @property
    def words(self) -> str:
        """What is asked."""
        return f"how many {self.ids} nodes of each class have a probability in each of {self.bins} bins"

    @property
    def shape(self) -> tuple[int, ...]:
        """Scored class by class by bin."""
        return (len(self.scored), self.num_classes, self.bins)

    def _tables(self) -> int:
        return len(self.scored)

    def _cells(self, labels: IntArray, probabilities: FloatArray) -> tuple[Array, ...]:
        scores = np.clip(probabilities[:, list(self.scored)], 0.0, 1.0)
        bins = np.minimum((scores * self.bins).astype(np.int64), self.bins - 1)
        tables = np.broadcast_to(np.arange(len(self.scored)), bins.shape)
        return tables.ravel(), np.repeat(labels, len(self.scored)), bins.ravel()


def chosen_ids(graph: Graph, ids: str) -> Array:
    """The nodes of a mask (``train``, ``val``, ``test``), or ``all``."""
    everyone = isinstance(ids, str) and ids == "all"
    return np.ones(graph.num_nodes, dtype=bool) if everyone else graph.mask(ids)
