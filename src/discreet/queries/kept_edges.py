"""Which edges a fit uses at node and k-neighbour level: the level's degree bound under a secret key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from dp_accounting.dp_event import DpEvent

from discreet.arrays import BoolArray
from discreet.errors import PlanViolationError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.ops.degrees import BoundedLevel, bound_degrees
from discreet.privacy import events
from discreet.privacy.levels import Level, NeighborLevel, NodeLevel
from discreet.privacy.plan import Stage
from discreet.privacy.query import PROVED_HERE, Bound, Query
from discreet.queries.reach import surviving_degree

KEY = "edges kept"
"""The purpose of the key that decides which edges are used; a stage of the plan on the thinned basis."""


@dataclass(frozen=True)
class KeptEdges(Query):
    """The event that more entries survive thinning than the bound of later stages says.

    Guarantee: with probability at most ``failure`` over the key a unit keeps more entries than
    ``reach.surviving_degree`` says, for all graphs of the fit together; nothing else is released, the key stays secret.
    """

    failure: float
    mechanism: ClassVar[str] = "thinning"
    proof: ClassVar[str] = PROVED_HERE

    @property
    def words(self) -> str:
        """What the key decides."""
        return "which entries survive thinning"

    @property
    def shape(self) -> tuple[int, ...]:
        """Nothing is handed over."""
        return ()

    def bound(self) -> Bound:
        """One unit's entries."""
        return Bound(1.0, "rows", "with this probability one node keeps more entries than the bound of later stages")

    def event(self, share: float, runs: int) -> DpEvent:
        """An event of probability δ′ in which other bounds do not hold."""
        return events.ApproximateDpEvent(0.0, self.failure)

    def noise_std(self, event: DpEvent, sensitivity: float) -> float:
        """No noise is added."""
        return 0.0

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        return {"noise_std": 0.0}

    def answer(self, private: PrivatePart, **inputs: Any) -> Any:
        """The key stays with the curator."""
        raise PlanViolationError("which edges are kept is not handed out: use curator.draw_key")


def kept_edges_stage(failure: float | None, graphs: int = 1) -> list[Stage]:
    """The stage that pays for thinning of every graph, where ``reach.thinning_failure`` says so; none elsewhere."""
    return [] if failure is None else [Stage.of(KEY, KeptEdges(failure * graphs))]


def refuse_thinned(level: Level) -> None:
    """An extension on the thinned basis would need a second key of its own in the plan of the release."""
    if getattr(level, "edges", None) == "thinned":
        raise UnsupportedError("a release at edges=thinned cannot be extended: train with both graphs instead")


def bounded_graph(private: PrivatePart, level: Level) -> Graph:
    """The graph under the level's degree bound, computed once per fit; the graph itself at other levels."""
    if not isinstance(level, NodeLevel | NeighborLevel):
        return private.graph
    name = ("bounded", level)
    known: Graph | None = private.recall(name)
    if known is not None:
        return known
    return private.keep(name, bound_degrees(private.graph, level, private.key(KEY)))


# -------------------------------------------------------------------- between public ids


def entries_between(
    private: PrivatePart, level: BoundedLevel, senders: BoolArray | None, receivers: BoolArray
) -> Graph:
    """The entries from public ``senders`` (None: anyone) to public ``receivers``, under the level's degree bound.

    Guarantee: on *owned* each node keeps its ``max_degree`` entries of smallest hash among those in use, which
    is a function of its own entries and public ids. On *promised* and *thinned* the whole graph is bounded first.
    """
    if level.edges == "owned":
        return bound_degrees(_between(private.graph, senders, receivers), level, private.key(KEY))
    return _between(bounded_graph(private, level).as_directed(), senders, receivers)


def _between(graph: Graph, senders: BoolArray | None, receivers: BoolArray) -> Graph:
    keep = np.repeat(receivers, graph.in_degree())
    if senders is not None:
        keep &= senders[graph.indices]
    return graph.with_entries(keep)


def entries_of_a_unit(level: BoundedLevel, failure: float | None) -> int:
    """D on *promised*; on *thinned* what survives at most of a unit's lists, from it and to it, but for ``failure``."""
    if isinstance(level, NodeLevel) and level.edges == "thinned":
        assert level.d_max is not None
        assert level.p is not None
        assert failure is not None
        return surviving_degree(level.d_max, level.p, failure, lists=2 if level.change == "null" else 4)
    if level.max_degree is None:
        raise UnsupportedError("on the promised basis this query needs a degree bound: give max_degree")
    return level.max_degree
