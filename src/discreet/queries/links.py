"""How classes link: a table of links between classes, of public rows (edge level) or of private labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Array, BoolArray, FloatArray
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.ops.degrees import BoundedLevel
from discreet.ops.moments import cross_moments
from discreet.ops.rows import PRODUCT_PLACES, cut_on_lattice, cut_rows, lattice_products, on_lattice
from discreet.ops.sparse import sums_over_edges
from discreet.privacy.levels import EdgeLevel, NoPrivacy
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query
from discreet.queries.kept_edges import entries_between, entries_of_a_unit
from discreet.queries.reach import is_null

RECEIVED_NORM = 1.0
"""The norm to which what one id receives is clipped in the table between labels, on the owned basis."""
_TURNED = (1 + math.sqrt(2)) / math.sqrt(2)
"""How far a clipped table of labels moves when a label leaves and another comes; see :class:`LabelLinks`."""


# -------------------------------------------------------------------- rows are public


@dataclass(frozen=True)
class LinkTable(Query):
    """The (receiver class × sender class) table of links where every node tells a distribution over classes.

    QᵀAQ, halved on undirected graphs. Inputs: ``rows``, Q, public or released, one per node; they are cut at norm 1
    here (one that is not finite becomes zero), which leaves distributions as they are.

    Guarantee, for every ``rows``, whatever the number of nodes and the degrees. *Neighbours* differ in one edge.
    Directed: the matrix moves by Q_v Q_uᵀ, of norm ‖Q_u‖‖Q_v‖ ≤ 1. Undirected: by ½(Q_uQ_vᵀ + Q_vQ_uᵀ), whose squared
    norm is ½(‖Q_u‖²‖Q_v‖² + (Q_u·Q_v)²) ≤ 1. Attained by two one-hot rows of one class. *Weights of edges*, in [0, 1]:
    what u and v tell moves by t_u and t_v with ‖t‖ ≤ ‖Q‖, so the table by Q_v t_uᵀ or ½(Q_v t_uᵀ + Q_u t_vᵀ): ≤ 1 too.
    *Floating point*: ``ops.rows.lattice_products``.
    """

    proof: ClassVar[str] = PROVED_HERE

    level: EdgeLevel | NoPrivacy
    num_classes: int

    @property
    def words(self) -> str:
        """What is asked."""
        return "number of links from class to class"

    @property
    def shape(self) -> tuple[int, ...]:
        """Receiver class × sender class."""
        return (self.num_classes, self.num_classes)

    def bound(self) -> Bound:
        """How far the table moves in Frobenius norm."""
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, "l2", NO_BOUND)
        kind = "directed" if self.level.directed else "undirected"
        why = f"one {kind} edge moves the table by an outer product of class distributions, of norm at most 1"
        return Bound(1.0, "l2", why)

    @property
    def adds_over_edges(self) -> bool:
        """Nothing else is read."""
        return True

    def answer(self, private: PrivatePart, *, rows: Array, **inputs: Any) -> FloatArray:
        """The table in double precision, exact but for one rounding."""
        sent = cut_on_lattice(rows, 1.0, PRODUCT_PLACES)
        table = lattice_products(sent, sums_over_edges(private.graph, sent))
        return np.asarray(table if private.graph.directed else table / 2)


# -------------------------------------------------------------------- labels are private


@dataclass(frozen=True)
class LabelLinks(Query):
    """The (class that hears × class that tells) table of links between the private labels of training ids.

    Every training id has one role, by its public position among them: it *tells* its label or it *hears* those of
    others, never both (:func:`roles`). On *owned* a teller divides its label by its number of entries, a number that is
    its own, so nothing cascades; and what an id hears is clipped to norm 1. No bound grows with the degree there. On
    *promised* and *thinned* a node that leaves changes the degrees of others, so labels are added as they are. An id
    without a label tells nothing, and what it hears is not counted.

    Guarantee. *Neighbours*: one node's record and entries, see the level. A unit has one role.

    *owned*. A hearer adds Q_v s_vᵀ with ‖s_v‖ ≤ 1, heard from others: it moves the table by 1 (null: its label is
    gone) or √2 (another label). A teller changes what its d receivers hear by 1/d each, and clipping is a projection:
    1 under null, attained by one entry. If it is replaced, take every small change of a clipped sum as J·e_i/d with
    J = I inside the ball and J = I − r̂r̂ᵀ (or less) on it, r̂ ≥ 0 the direction of the sum. All in one row of the table,
    which is worst, they add up to Je_i − J′e_j. With p = r̂_i, q = r̂′_j its square is at most
    2 − p² − q² + 2q√(1−q²)(1−p²) + 2p√(1−p²)(1−q²), whose maximum, at p = q = cos 67.5°, is (3 + 2√2)/2:
    (1 + √2)/√2 ≈ 1.7071, above √2 because a clipped sum turns as it grows. Approached with many receivers.

    *promised*, *thinned*. Nothing is clipped. A unit's at most D entries add an outer product of its label with
    others': D under null; otherwise two tables without a negative entry, each of norm at most D: √2·D. Attained.
    On *thinned* D is what survives but for ``failure``, which the ledger is charged for.

    *Weights of edges*, in [0, 1], scale what is told; a teller divides by its number of entries as before. *owned*: it
    tells a label of total weight α = Σw/d ≤ 1, and after it β ≤ 1. Null: α. Replaced: ‖αJe_i − βJ′e_j‖, a convex
    function of (α, β), is largest at a corner of [0, 1]²: 0, 1, or the above at (1, 1). *promised*, *thinned*: tables
    without a negative entry whose norms are at most D, as before.

    *Floating point*. What is told lies on a public lattice, so that sums over edges are exact: 1/d and weights times
    that are numbers at most as large. Tables of n clipped rows err by n·2⁻⁴⁴ at most (``ops.moments.cross_moments``).
    """

    proof: ClassVar[str] = PROVED_HERE

    level: BoundedLevel
    num_classes: int
    failure: float | None = None

    @property
    def words(self) -> str:
        """What is asked."""
        return "labels that half of the training ids tell the other half"

    @property
    def shape(self) -> tuple[int, ...]:
        """Class that hears × class that tells."""
        return (self.num_classes, self.num_classes)

    def bound(self) -> Bound:
        """How far the table moves in Frobenius norm."""
        null = is_null(self.level)
        if self.level.edges == "owned":
            if null:
                why = "a node tells one label in all, or hears labels up to norm 1"
                return Bound(RECEIVED_NORM, "l2", why, RECEIVED_NORM)
            why = "a node tells one label in all before and after, into sums that are clipped to norm 1"
            return Bound(_TURNED, "l2", why, RECEIVED_NORM)
        degree = entries_of_a_unit(self.level, self.failure)
        why = f"one node has at most {degree} entries, each an outer product of two labels"
        return Bound(degree if null else math.sqrt(2) * degree, "l2", why)

    def answer(self, private: PrivatePart, **inputs: Any) -> FloatArray:
        """The table, in double precision."""
        senders, receivers = roles(private.graph.mask("train"))
        entries = entries_between(private, self.level, senders, receivers)
        labels = one_hot_labels(private.graph)
        told = labels
        if self.level.edges == "owned":
            told = labels / np.maximum(entries.out_degree(), 1)[:, None]
        heard = sums_over_edges(entries, on_lattice(told))
        clip = self.bound().clip
        return cross_moments(labels, heard if clip is None else cut_rows(heard, clip))


def roles(training: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Who tells and who hears in the table of labels: every other training id, by position. Public."""
    ids = np.flatnonzero(training)
    senders, receivers = np.zeros_like(training), np.zeros_like(training)
    senders[ids[::2]] = receivers[ids[1::2]] = True
    return senders, receivers


def one_hot_labels(graph: Graph) -> FloatArray:
    """A one-hot row for each training id with a label, zero elsewhere."""
    rows = np.zeros((graph.num_nodes, graph.num_classes))
    if graph.train_mask is not None:
        ids = np.flatnonzero(graph.train_mask & (graph.labels >= 0))
        rows[ids, graph.labels[ids]] = 1
    return rows
