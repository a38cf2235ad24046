"""What nodes receive, as it was released: caches, who they are for, and the noise on them.

At edge level evidence is asked for in two halves of the budget. The first tells receivers what their neighbours are.
What the second asks for depends on what the first released, see ``hubs``. Both are the same query on messages of the
same norm, so they cost the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.arrays import Array, Arrays, BoolArray, FloatArray, IntArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import GraphKeys, PublicPart
from discreet.methods.hop_bayes.hubs import hub_messages
from discreet.methods.hop_bayes.stages import evidence_name, second_name
from discreet.methods.stored_arrays import stored_ids, stored_if, stored_rows
from discreet.queries.evidence import message_bound


class Ask(Protocol):
    """Whoever answers a query for received messages: a curator, or plain sums where nothing is protected."""

    def __call__(self, name: str, /, *, messages: Array, receivers: BoolArray) -> FloatArray:
        """One row per node."""


@dataclass(frozen=True)
class Received:
    """What the nodes ``ids`` of one graph received: sums of messages, and of what hubs tell, if that was asked.

    ``scale`` is the noise on them over the noise on the graph that was fitted: a graph that was added later has a
    budget of its own.
    """

    ids: IntArray
    sums: FloatArray
    hubs: FloatArray | None = None
    scale: float = 1.0

    def at(self, ids: IntArray) -> Received:
        """The rows of these, of all nodes."""
        return Received(ids, self.sums[ids], None if self.hubs is None else self.hubs[ids], self.scale)

    def rows(self, places: IntArray | slice) -> Received:
        """Some of these rows, by where they stand here."""
        hubs = None if self.hubs is None else self.hubs[places]
        return Received(self.ids[places], self.sums[places], hubs, self.scale)


class Evidence:
    """What was released for the receivers of every graph of a fit.

    ``first_std`` is the noise of one query; ``halves`` says whether there are two, ``through_hubs`` what the second
    asks for: what hubs tell, or the same again.
    """

    def __init__(
        self, keys: GraphKeys, first_std: float = 0.0, *, halves: bool = False, through_hubs: bool = False
    ) -> None:
        """Nothing is released yet."""
        self.keys = keys
        self.first_std = first_std
        self.halves = halves
        self.through_hubs = through_hubs
        self.graphs: list[Received] = []

    @classmethod
    def none(cls) -> Evidence:
        """Where nothing is released: nodes read their own neighbours, or no edge is read."""
        return cls(GraphKeys([]))

    @property
    def noise_std(self) -> float:
        """The noise on sums: of the average of both halves where they ask for the same."""
        return self.first_std * 0.5**0.5 if self.halves and not self.through_hubs else self.first_std

    # ---------------------------------------------------------------- fit

    def ask(
        self,
        ask: Ask,
        messages: Array,
        receivers: BoolArray,
        *,
        number: int = 0,
        decide: Callable[[FloatArray], bool] | None = None,
        scale: float = 1.0,
    ) -> Received:
        """Both halves of graph ``number``, rows of all its nodes. ``decide`` says from the first half's answer whether
        the second is to ask hubs, for this graph and all that follow.
        """
        everyone = np.arange(len(messages))
        first = ask(evidence_name(number), messages=messages, receivers=receivers)
        if not self.halves:
            return Received(everyone, first, scale=scale)
        if decide is not None:
            self.through_hubs = decide(first)
        if self.through_hubs:
            messages = hub_messages(first, scale * self.first_std, message_bound(messages.shape[1]))
        second = ask(second_name(number), messages=messages, receivers=receivers)
        if self.through_hubs:
            return Received(everyone, first, second, scale)
        average = first + second
        average *= 0.5
        return Received(everyone, average, scale=scale)

    def keep(self, received: Received) -> None:
        """Cache what the receivers of the next graph received."""
        self.graphs.append(received)

    def with_graph(self, part: PublicPart, received: Received) -> Evidence:
        """This evidence and that of one more graph."""
        made = Evidence(self.keys.with_graph(part), self.first_std, halves=self.halves, through_hubs=self.through_hubs)
        made.graphs = [*self.graphs, received]
        return made

    # ---------------------------------------------------------------- predict

    def find(self, part: PublicPart) -> Received | None:
        """What was released for this graph, or None."""
        number = self.keys.find(part)
        return None if number is None else self.graphs[number]

    def pays_for(self, part: PublicPart) -> bool:
        """Whether predictions on this graph rest on what was released for it; or on no evidence at all."""
        return not self.graphs or self.find(part) is not None

    # ---------------------------------------------------------------- release

    def state(self) -> Arrays:
        """Caches, receivers and keys. Which arrays there are, and their shapes, does not depend on noise."""
        arrays = self.keys.state()
        if any(received.scale != 1 for received in self.graphs):
            arrays["evidence.scales"] = np.array([received.scale for received in self.graphs])
        for number, received in enumerate(self.graphs):
            arrays |= {f"cache.{number}": received.sums, f"receivers.{number}": received.ids}
            if self.halves:
                arrays[f"hubs.{number}"] = np.zeros_like(received.sums) if received.hubs is None else received.hubs
        return arrays

    def restored(self, state: Mapping[str, Array], graphs: Sequence[PublicFacts]) -> Evidence:
        """Inverse of :meth:`state`, for the graphs that were asked: what a release holds of any other is refused."""
        self.keys = GraphKeys.restore(state, len(graphs))
        scaled = "evidence.scales" in state
        scales = stored_rows(state, "evidence.scales", len(graphs)) if scaled else np.ones(len(graphs))
        for number, facts in enumerate(graphs):
            ids = stored_ids(state, f"receivers.{number}", facts.num_nodes)
            shape = len(ids), facts.num_classes
            hubs = stored_if(state, f"hubs.{number}", self.halves, *shape)
            sums = stored_rows(state, f"cache.{number}", *shape)
            self.keep(Received(ids, sums, hubs if self.through_hubs else None, float(scales[number])))
        return self
