"""The whole graph, one cell for every pair that could be an edge: what EdgeRand and LapGraph make noisy."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from dp_accounting.dp_event import DpEvent

from discreet.graph.parts import PrivatePart
from discreet.ops.cells import Cells
from discreet.privacy import events
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query

FLIPPED, LARGEST = "edge-rand", "lap-graph"


@dataclass(frozen=True)
class EdgeCells(Query):
    """A row with 1 for every pair of nodes that is an edge and 0 for every other pair (``ops.cells``).

    Guarantee. *Neighbours*: one edge. *Bound*: a directed edge is one ordered pair, an undirected edge one unordered
    pair, and either is one cell of the row: 1 in ℓ1, attained by every pair of neighbours. (Both triangles of an
    undirected graph would be 2.) *Floating point*: zeros and ones. There are no inputs.
    """

    level: Level
    num_nodes: int
    directed: bool

    @property
    def words(self) -> str:
        """What is asked."""
        return "which pairs of nodes are edges"

    @property
    def cells(self) -> Cells:
        """How pairs are numbered."""
        return Cells(self.num_nodes, self.directed)

    @property
    def shape(self) -> tuple[int, ...]:
        """One cell for every pair; what is stored are the edges."""
        return (1, self.cells.count)

    def bound(self) -> Bound:
        """One cell."""
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, "l1", NO_BOUND)
        pair = "ordered pair" if self.directed else "cell of one triangle"
        return Bound(1.0, "l1", f"one edge is one {pair} of nodes")

    @abstractmethod
    def event(self, share: float, runs: int) -> DpEvent:
        """By how the cells are made noisy."""

    def answer(self, private: PrivatePart, **inputs: Any) -> sp.csr_array:
        """The cells of all edges."""
        sources, targets = private.graph.edges()
        found = np.unique(self.cells.numbers(sources, targets))  # an undirected graph stores both ways
        indices = found.astype(np.int32 if self.cells.count < 2**31 else np.int64)
        return sp.csr_array((np.ones(len(found)), indices, np.array([0, len(found)])), shape=self.shape)


@dataclass(frozen=True)
class FlippedCells(EdgeCells):
    """Cells that are answered by EdgeRand: each flipped with probability 1/(1 + e^ε).

    A pure ε of its own, which no common factor scales: the method gives every graph its part of the budget.
    """

    epsilon: float = math.inf
    mechanism: ClassVar[str] = FLIPPED
    proof: ClassVar[str] = PROVED_HERE

    @property
    def flip_rate(self) -> float:
        """How likely a cell is to be flipped."""
        return 1 / (1 + math.exp(self.epsilon)) if self.epsilon < 700 else 0.0  # e⁷¹⁰ overflows

    def event(self, share: float, runs: int) -> DpEvent:
        """Randomised response on one cell: nothing is worse at this ε, so a black box loses nothing."""
        return events.ApproximateDpEvent(self.epsilon, 0.0)

    def noise_std(self, event: DpEvent, sensitivity: float) -> float:
        """Of the unbiased estimate of a cell: √(p(1 − p))/(1 − 2p)."""
        rate = self.flip_rate
        return math.sqrt(rate * (1 - rate)) / math.tanh(self.epsilon / 2)

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        return {"epsilon": self.epsilon, "noise_std": self.noise_std(events.NoOpDpEvent(), 1.0)}


@dataclass(frozen=True)
class LargestCells(EdgeCells):
    """Cells that are answered by LapGraph: a noisy number of the largest noisy cells.

    ``count_share`` is the part of the privacy loss that goes into the number of edges, which one edge moves by 1; the
    rest goes into the cells, which move by 1 in ℓ1. Both are Laplace mechanisms, and calibrated together.
    """

    count_share: float = 0.01
    mechanism: ClassVar[str] = LARGEST
    proof: ClassVar[str] = PROVED_HERE

    def event(self, share: float, runs: int) -> DpEvent:
        """The noise on cells, which the plan shows, then the noise on their number."""
        root = math.sqrt(runs / share)
        return events.compose(
            [
                events.LaplaceDpEvent(root / (1 - self.count_share)),
                events.LaplaceDpEvent(root / self.count_share),
            ]
        )

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        return {"count_share": self.count_share}
