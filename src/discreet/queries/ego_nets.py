"""The ego-nets of a level's bounded graph, and what a released network says of them: for questions about these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from discreet.arrays import IntArray
from discreet.graph.parts import PrivatePart
from discreet.ops.egonets import EgoNets, EgoTensors, SenderTable, sender_table, with_nobody
from discreet.ops.slot_rows import RowTable, SlotRows
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.query import NO_BOUND
from discreet.queries.kept_edges import KEY, bounded_graph
from discreet.queries.reach import touched_examples


class ReadsEgoNets(Protocol):
    """A network that reads ego-nets one by one."""

    def on_egos(self, features: SlotRows, nets: EgoNets | EgoTensors) -> Tensor:
        """Logits of the centres; ``features`` holds the rows of all slots, example by example."""


@dataclass(frozen=True)
class BoundedEgoNets:
    """The ``hops``-hop ego-nets of the bounded graph of a level.

    ``fan_in`` bounds how many senders a node of an ego-net keeps: for memory, not for privacy. ``failure`` is δ′ on
    the thinned basis.
    """

    level: Level
    num_nodes: int
    hops: int
    fan_in: int
    failure: float | None = None

    @property
    def slots(self) -> int:
        """Slots per ego-net."""
        return sum(self.fan_in**hop for hop in range(self.hops + 1))

    def touched(self) -> tuple[int, str]:
        """How many ego-nets one unit can change, and why: ``reach.touched_examples``, with or without ``fan_in``.

        Where nothing is protected there is no unit; one stands for it, and no bound is made of it.
        """
        if isinstance(self.level, NoPrivacy):
            return 1, NO_BOUND
        return touched_examples(self.level, self.hops, num_nodes=self.num_nodes, failure=self.failure)

    def logits(self, private: PrivatePart, centres: IntArray, network: ReadsEgoNets) -> Tensor:
        """What the network says of these nodes."""
        nets = self.around(private, centres)
        return network.on_egos(SlotRows(self.records(private), nets.index), nets)

    def around(self, private: PrivatePart, centres: IntArray) -> EgoNets:
        """The ego-nets of these nodes."""
        return self._senders(private).ego_nets(centres, self.hops)

    def records(self, private: PrivatePart) -> RowTable:
        """All records, and a row of zeros for the slots that are empty."""
        name = "features and nobody"
        known: RowTable | None = private.recall(name)
        if known is not None:
            return known
        return private.keep(name, RowTable.of(with_nobody(private.graph.features), private.device))

    def _senders(self, private: PrivatePart) -> SenderTable:
        known: SenderTable | None = private.recall(self)
        if known is not None:
            return known
        return private.keep(self, sender_table(bounded_graph(private, self.level), self.fan_in, private.key(KEY)))
