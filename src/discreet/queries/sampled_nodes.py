"""Which nodes take part in a fit: a secret sample of the training ids, drawn by a key that the method never sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from dp_accounting.dp_event import DpEvent

from discreet.arrays import Array, BoolArray, IntArray
from discreet.errors import PlanViolationError
from discreet.graph.clean import UNLABELLED, Features
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.ops.keyed_hash import hash_pairs
from discreet.privacy import events
from discreet.privacy.query import PROVED_HERE, Bound, Query
from discreet.queries.gradients import training_ids

SAMPLE = "nodes sampled"
"""The purpose of the key whose coins decide who takes part; a stage of the plan where a guarantee rests on it."""


class Participants(NamedTuple):
    """The id range of a fit, in ascending order, and which of its ids the sample holds; both only inside queries.

    *Positions* count within the range. An id that lost its coin stays in it as a null node.
    """

    ids: IntArray
    alive: BoolArray

    def edges(self, graph: Graph) -> sp.csr_array:
        """The edges among ids that are alive, each standing both ways, by position."""
        part = sp.csr_array(graph.adjacency[self.ids][:, self.ids])
        mask = sp.diags_array(self.alive.astype(np.float32))
        kept = sp.csr_array(mask @ part @ mask)
        return kept.maximum(kept.T).tocsr()

    def features(self, graph: Graph) -> Features:
        """One row per position, zero where the coin failed."""
        rows = graph.features[self.ids]
        if self.alive.all():
            return rows
        if isinstance(rows, np.ndarray):
            return np.where(self.alive[:, None], rows, np.float32(0))
        return sp.csr_array(sp.diags_array(self.alive.astype(np.float32)) @ rows)

    def labels(self, graph: Graph) -> IntArray:
        """One label per position, none where the coin failed."""
        return np.where(self.alive, graph.labels[self.ids], UNLABELLED)


@dataclass(frozen=True)
class NodeSample:
    """How the sample is drawn: made at plan from public facts, taken inside queries.

    ``rate`` is the probability with which each training id takes part. With ``size`` exactly that many do (DPAR):
    then the id range itself is secret.

    Guarantee (without ``size``): coins depend on the key and the id alone. Ids and shapes are the same whatever the
    coins say, so a node whose coin fails differs in nothing from a null node: see
    :mod:`discreet.privacy.events.node_sampling`.
    """

    rate: float = 1.0
    size: int | None = None

    @property
    def needs_key(self) -> bool:
        """Whether anything is drawn."""
        return self.rate < 1 or self.size is not None

    def range_size(self, num_train: int) -> int:
        """How many positions there are."""
        return num_train if self.size is None else self.size

    def take(self, private: PrivatePart) -> Participants:
        """The sample of this fit, the same for all of its queries."""
        name = ("participants", self)
        known: Participants | None = private.recall(name)
        return private.keep(name, self._draw(private)) if known is None else known

    def _draw(self, private: PrivatePart) -> Participants:
        ids = training_ids(private)
        if not self.needs_key:
            return Participants(ids, np.ones(len(ids), dtype=np.bool_))
        coins = hash_pairs(private.key(SAMPLE), ids, np.zeros_like(ids))
        if self.size is None:
            alive = coins < np.uint64(int(self.rate * 2**64)) if self.rate < 1 else np.ones(len(ids), dtype=np.bool_)
            return Participants(ids, alive)
        chosen = np.sort(ids[np.argsort(coins)[: self.size]])
        return Participants(chosen, np.ones(len(chosen), dtype=np.bool_))


@dataclass(frozen=True)
class SampledNodes(Query):
    """The event that stands for secret sampling of nodes: nothing is handed over.

    Guarantee: a node that is not sampled is null to all that follows, which is what
    :mod:`discreet.privacy.events.node_sampling` asks for; the key stays with the curator. A sample of fixed size (as
    published) claims no amplification here: its event says nothing.
    """

    sample: NodeSample
    mechanism: ClassVar[str] = "node-sampling"
    proof: ClassVar[str] = PROVED_HERE

    @property
    def words(self) -> str:
        """What the key decides."""
        return "which nodes take part"

    @property
    def shape(self) -> tuple[int, ...]:
        """Nothing is handed over."""
        return ()

    def bound(self) -> Bound:
        """One unit's coin."""
        return Bound(1.0, "rows", "a node that is not sampled is null to all that follows")

    def event(self, share: float, runs: int) -> DpEvent:
        """Amplification of all that follows."""
        return events.SampledNodesDpEvent(self.sample.rate) if self.sample.size is None else events.NoOpDpEvent()

    def noise_std(self, event: DpEvent, sensitivity: float) -> float:
        """No noise is added."""
        return 0.0

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        return {"noise_std": 0.0, "probability": self.sample.rate}

    def answer(self, private: PrivatePart, **inputs: Any) -> Any:
        """The sample stays with the curator."""
        raise PlanViolationError("which nodes take part is not handed out: use curator.draw_key")


def checked_positions(positions: Array, count: int, size: int) -> IntArray:
    """``count`` different positions of a range of ``size``; anything else is refused, whoever takes part.

    Guarantee: no position stands twice, so a node is the source of at most one row.
    """
    given = np.asarray(positions)
    if given.shape != (count,) or given.dtype.kind not in "iu":
        raise PlanViolationError(f"sources must be {count} whole numbers, one per row")
    if len(np.unique(given)) < count or given.min() < 0 or given.max() >= size:
        raise PlanViolationError(f"sources must be different positions among {size} nodes")
    return given.astype(np.int64)
