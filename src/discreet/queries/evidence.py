"""What each node receives from its neighbours: public messages at edge level, labels and guesses at node level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from discreet.arrays import Array, BoolArray, FloatArray, IntArray
from discreet.graph.parts import PrivatePart, Topology
from discreet.ops.degrees import BoundedLevel
from discreet.ops.rows import cut_on_lattice, cut_rows, on_lattice, rows_of_norm
from discreet.ops.sparse import map_rows, sums_over_edges
from discreet.privacy.levels import EdgeLevel, NeighborLevel, NoPrivacy
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query
from discreet.queries.kept_edges import entries_between, entries_of_a_unit
from discreet.queries.links import one_hot_labels
from discreet.queries.reach import is_null


def message_bound(classes: int) -> float:
    """B = √(1 − 1/c), the largest norm of a distribution over c classes less 1/c."""
    return math.sqrt(1 - 1 / classes)


# -------------------------------------------------------------------- messages are public or released


@dataclass(frozen=True)
class ReceivedMessages(Query):
    """The sum of the messages that reach each node, arranged by :func:`arranged_sums` so that an edge costs one.

    Inputs: ``messages``, public or released, one row per node, which are cut at norm B = √(1 − 1/c) here (one that is
    not finite becomes zero); and ``receivers``, a public mask of node ids.

    Guarantee, for every ``messages`` and every ``receivers``. *Neighbours* differ in one edge. A directed edge u → v
    changes one row by u's message: B. An undirected one changes row v by what u tells v, and row u by what v tells u.
    Both receivers, or neither: each is at most B/√2, and √(B²/2 + B²/2) = B. One of them: the receiver's row changes by
    at most B, the other's not at all. Attained by messages of norm B, in each of the three cases.
    *Weights of edges*, in [0, 1], scale what is told: it lies between 0 and the message, number by number, so an edge
    whose weight moves from w to w′ (0: no edge) changes the same rows by no more than that.
    *Edge case*: with one class B is 0, and nothing is told.
    """

    proof: ClassVar[str] = PROVED_HERE

    level: EdgeLevel | NoPrivacy
    question: str
    num_nodes: int
    num_classes: int

    @property
    def words(self) -> str:
        """What is asked."""
        return self.question

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per node."""
        return (self.num_nodes, self.num_classes)

    def bound(self) -> Bound:
        """How far all rows move together in ℓ2."""
        clip = message_bound(self.num_classes)
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, "l2", NO_BOUND, clip)
        kind = "directed" if self.level.directed else "undirected"
        why = f"one {kind} edge changes what is heard by one message: one row in full, or two by 1/√2 of it each"
        return Bound(clip, "l2", why, clip)

    @property
    def adds_over_edges(self) -> bool:
        """Nothing else is read."""
        return True

    def answer(self, private: PrivatePart, *, messages: Array, receivers: BoolArray, **inputs: Any) -> FloatArray:
        """Sums in double precision, which are exact: messages lie on a public lattice."""
        return arranged_sums(private.graph, messages, receivers, message_bound(self.num_classes))


def arranged_sums(graph: Topology, messages: Array, receivers: BoolArray, bound: float) -> FloatArray:
    """What every node hears, added up: rows of ``messages``, cut at norm ``bound``.

    On undirected graphs who hears whom is arranged so that an edge costs no more than one message. Receivers hear
    everyone, one another at norm no more than bound/√2. The others hear one another at norm no more than bound/√2,
    and no receiver. On directed graphs everyone hears everyone in full.
    """
    full = cut_on_lattice(messages, bound)
    if graph.directed:
        return sums_over_edges(graph, full)
    short = cut_on_lattice(messages, bound / math.sqrt(2))
    chosen = np.asarray(receivers, dtype=np.bool_)
    to_receivers, to_others = full, short
    to_receivers[chosen] = short[chosen]
    to_others[chosen] = 0.0
    return sums_over_edges(graph, to_others, to_receivers, hears=chosen.astype(np.int8))


# -------------------------------------------------------------------- labels and features are private


@dataclass(frozen=True)
class ReceivedLabels(Query):
    """What each receiver is told, added up: a class from every sender, one-hot, less 1/c.

    A node tells its label if it is a training id with one, otherwise the best guess of a released model from the
    node's own features (``row_norm`` and ``length_norm`` scale each feature row first: ``ops.rows.rows_of_norm``). On
    *owned* a sender of d entries to receivers divides by √d, a number that is its own. On *promised* and *thinned* a
    node that leaves changes the degrees of others, so nothing is divided, and each sum is clipped to the norm C of
    :meth:`bound`.

    Inputs: ``node_model``, a released network that reads every row by itself (a score that is no number counts as 0);
    ``receivers``, a public mask of node ids.

    Guarantee, for every ``node_model`` and ``receivers``. *Neighbours*: one node's record and entries, see the level.
    What is told is a distribution Q over c classes, q = Q − 1/c: ‖q‖² ≤ B² = 1 − 1/c, two of them have q·q′ ≥ −1/c, so
    ‖q − q′‖² ≤ 2. What others tell does not change with the unit.

    *owned*. What a unit tells d receivers is a block of norm ‖q‖·√(d/d) ≤ B, and nothing else moves: entries
    into a node belong to their senders. Null: B, attained by any label. Replace and k neighbours: blocks over d
    and d′ receivers, s of them shared, are apart by at most 2B² + (2/c)·s/√(dd′) ≤ 2 in squares: √2, attained by
    another label told to the same receivers. No degree bound enters.

    *promised*, *thinned*: a + b receivers before, a + c after, at most D each (D: what survives). Null: √D·B.
    Otherwise √(2a + (b + c)B²) ≤ √(2D). The unit's own row loses its senders too: it is clipped to norm C, so it
    moves by C under null (to zero) and by 2C otherwise; clipping is a projection and brings no two rows further apart.
    With k neighbours it gains or loses k senders, whose rows are what they were: at most kB, if that is less.

    *Weights of edges*, in [0, 1], scale what is told. *owned*: the blocks are w_v·q/√d of norm at most ‖q‖, and what
    two of them share adds −2 Σ w_v w′_v q·q′/√(dd′) ≤ (2/c)·s/√(dd′), as before. *promised*, *thinned*: a receiver on
    both sides moves by ‖wq − w′q′‖² ≤ w²B² + w′²B² + 2ww′/c ≤ 2, one on a single side by at most B. Own row: clipped
    as before; each of k senders changes by |w − w′|·B ≤ B.

    On *thinned*, D entries of a list survive with a probability above ``failure`` over the number of lists, else D
    would be smaller: some key attains what a promise of D attains.

    *Floating point*. What is added up are one-hot rows times 1/√d (or 1), times a weight, cut off at a public lattice:
    numbers at most as large, for which all of the above holds, and whose sums are exact. 1/c of their total is taken
    off afterwards, which errs by at most 2⁻⁵² of a row's length, in the rows that change.
    """

    proof: ClassVar[str] = PROVED_HERE

    level: BoundedLevel
    num_receivers: int
    num_classes: int
    failure: float | None = None
    row_norm: float | None = None
    length_norm: float = 0.0

    @property
    def words(self) -> str:
        """What is asked."""
        return "sum of what each receiver is told"

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per receiver."""
        return (self.num_receivers, self.num_classes)

    def bound(self) -> Bound:
        """How far all rows move together in ℓ2."""
        null, longest = is_null(self.level), message_bound(self.num_classes)
        if self.level.edges == "owned":
            if null:
                why = "what a node tells all its receivers together has norm at most √(1 − 1/c)"
                return Bound(longest, "l2", why)
            return Bound(math.sqrt(2), "l2", "two such blocks, one before and one after, are at most √2 apart")
        degree = entries_of_a_unit(self.level, self.failure)
        others = math.sqrt(degree * (1 - 1 / self.num_classes)) if null else math.sqrt(2 * degree)
        clip = max(1.0, others / (2 if null else 4))
        own = clip if null else 2 * clip
        if isinstance(self.level, NeighborLevel):
            own = min(own, self.level.k * longest)
        why = f"a node tells at most {degree} receivers a class distribution; its own row is clipped to norm {clip:.4g}"
        return Bound(math.hypot(others, own), "l2", why, clip)

    def answer(self, private: PrivatePart, *, node_model: nn.Module, receivers: BoolArray, **inputs: Any) -> FloatArray:
        """Sums in double precision."""
        entries = entries_between(private, self.level, None, receivers)
        told = self._one_hot_classes(private, node_model)
        if self.level.edges == "owned":
            told = told / np.sqrt(np.maximum(entries.out_degree(), 1))[:, None]
        sums = sums_over_edges(entries, on_lattice(told))[receivers]
        sums = sums - sums.sum(axis=1, keepdims=True) / self.num_classes
        clip = self.bound().clip
        return sums if clip is None else cut_rows(sums, clip)

    def _one_hot_classes(self, private: PrivatePart, node_model: nn.Module) -> FloatArray:
        """One-hot rows: the label of a training id, else the model's guess."""
        rows = one_hot_labels(private.graph)
        unlabelled = np.flatnonzero(rows.sum(axis=1) == 0)
        rows[unlabelled, self._guesses(private, node_model)[unlabelled]] = 1
        return rows

    def _guesses(self, private: PrivatePart, node_model: nn.Module) -> IntArray:
        features = private.graph.features
        seen = features if self.row_norm is None else rows_of_norm(features, self.row_norm, self.length_norm)
        scores = torch.nan_to_num(map_rows(node_model, seen, private.device))
        return np.asarray(scores.argmax(dim=1).cpu().numpy())
