"""What neighbours say where whole nodes are protected: sums of told rows, and links between labels, with their bounds.

At these levels a node owns what it tells (its label, or a guess from its features) and the entries along which it
tells it. Two choices, both from public ids alone, keep what one node can move small. Evidence goes only to
*receivers*, the ids whose class is wanted. In the table of links every training id has one role: it *tells* its
label or it *hears* those of others, never both.

On the *owned* basis a sender also divides by the number of entries that it uses (its root, for evidence): that number
is its own, so nothing cascades and no bound grows with the degree. On *promised* and *thinned* a node that leaves
changes the degrees of others, so rows are added as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph
from discreet.ops.degrees import bound_degrees, surviving_degree
from discreet.privacy.levels import NeighborLevel, NodeLevel

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
BoundedLevel = NodeLevel | NeighborLevel

HEARD = 1.0
"""The norm to which what one id hears is clipped in the table of links, on the owned basis."""
_MARGIN = 1 - 1e-12
_TURNED = (1 + math.sqrt(2)) / math.sqrt(2)


@dataclass(frozen=True)
class Bound:
    """How far a query moves between neighbours in ℓ2, why, and the norm to which its rows are clipped, if they are."""

    sensitivity: float
    why: str
    clip: float | None = None


# -------------------------------------------------------------------- entries in use


def entries_between(
    graph: Graph, level: BoundedLevel, key: bytes, senders: BoolArray | None, receivers: BoolArray
) -> Graph:
    """The entries from public ``senders`` (None: anyone) to public ``receivers``, under the level's degree bound.

    Guarantee: on *owned* each node keeps its ``max_degree`` entries of smallest hash among those in use, which
    is a function of its own entries and public ids. On *promised* and *thinned* the whole graph is bounded first.
    """
    if level.edges == "owned":
        return bound_degrees(_between(level.view(graph), senders, receivers), level, key)
    return _between(bound_degrees(graph, level, key).as_directed(), senders, receivers)


def _between(graph: Graph, senders: BoolArray | None, receivers: BoolArray) -> Graph:
    source, target = graph.edges()
    keep = receivers[target] if senders is None else receivers[target] & senders[source]
    return graph.with_edges(source[keep], target[keep])


# -------------------------------------------------------------------- evidence


def told_sums(
    entries: Graph, told: FloatArray, receivers: BoolArray, level: BoundedLevel, clip: float | None = None
) -> FloatArray:
    """What each receiver is told, added up: rows of ``told`` less 1/c, from every sender of ``entries``.

    On *owned* a sender of d entries divides its row by √d. Guarantee: see :func:`told_bound`, which also says
    to what norm (``clip``) the sums are clipped.
    """
    rows = told - 1 / told.shape[1]
    if level.edges == "owned":
        rows = rows / np.sqrt(np.maximum(entries.out_degree(), 1))[:, None]
    sums = np.asarray(entries.adjacency[np.flatnonzero(receivers)].astype(np.float64) @ rows)
    return sums if clip is None else _clipped(sums, clip)


def told_bound(level: BoundedLevel, classes: int, failure: float | None = None) -> Bound:
    """How far :func:`told_sums` moves over all receivers.

    Guarantee, for told rows that are distributions over c classes, q = Q − 1/c: ‖q‖² ≤ B² = 1 − 1/c, two of them
    have q·q′ ≥ −1/c, so ‖q − q′‖² ≤ 2.

    *owned*. What a unit tells d receivers is a block of norm ‖q‖·√(d/d) ≤ B, and nothing else moves: entries
    into a node belong to their senders. Null: B, attained by any label. Replace and k neighbours: blocks over d
    and d′ receivers, s of them shared, are apart by at most 2B² + (2/c)·s/√(dd′) ≤ 2 in squares: √2, attained by
    another label told to the same receivers. No degree bound enters.

    *promised*, *thinned*: a + b receivers before, a + c after, at most D each (D: what survives). Null: √D·B.
    Otherwise √(2a + (b + c)B²) ≤ √(2D). The unit's own row loses its senders too: it is clipped to norm C, so it
    moves by C under null (to zero) and by 2C otherwise; clipping is a projection and brings no two rows further apart.
    With k neighbours it gains or loses k senders, whose rows are what they were: at most kB, if that is less.
    On *thinned*, D entries of a list survive with a probability above ``failure`` over the number of lists, else D
    would be smaller: some key attains what a promise of D attains.
    """
    own, null = 1 - 1 / classes, _is_null(level)
    if level.edges == "owned":
        if null:
            return Bound(math.sqrt(own), "what a node tells all its receivers together has norm at most √(1 − 1/c)")
        return Bound(math.sqrt(2), "two such blocks, one before and one after, are at most √2 apart")
    degree = reached(level, failure)
    base = math.sqrt(degree * own) if null else math.sqrt(2 * degree)
    clip = max(1.0, base / (2 if null else 4))
    turned = clip if null else 2 * clip
    if isinstance(level, NeighborLevel):
        turned = min(turned, level.k * math.sqrt(own))
    why = f"a node tells at most {degree} receivers a class distribution; its own row is clipped to norm {clip:.4g}"
    return Bound(math.hypot(base, turned), why, clip)


# -------------------------------------------------------------------- links between labels


def roles(training: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Who tells and who hears in the table of links: every other training id, by position. Public."""
    ids = np.flatnonzero(training)
    tells, hears = np.zeros_like(training), np.zeros_like(training)
    tells[ids[::2]] = hears[ids[1::2]] = True
    return tells, hears


def label_links(entries: Graph, one_hot: FloatArray, level: BoundedLevel) -> FloatArray:
    """The (class that hears × class that tells) table over ``entries``, which run from tellers to hearers.

    ``one_hot`` has a zero row where a node has no label. On *owned* a teller divides its label by its number of
    entries, and what an id hears is clipped to norm 1. Guarantee: see :func:`label_links_bound`.
    """
    rows = one_hot
    if level.edges == "owned":
        rows = rows / np.maximum(entries.out_degree(), 1)[:, None]
    heard = np.asarray(entries.adjacency.astype(np.float64) @ rows)
    return np.asarray(one_hot.T @ (_clipped(heard, HEARD) if level.edges == "owned" else heard))


def label_links_bound(level: BoundedLevel, failure: float | None = None) -> Bound:
    """How far :func:`label_links` moves in Frobenius norm.

    Guarantee, for one-hot or zero rows. A unit has one role.

    *owned*. A hearer adds Q_v s_vᵀ with ‖s_v‖ ≤ 1, heard from others: it moves the table by 1 (null: its label is
    gone) or √2 (another label). A teller changes what its d receivers hear by 1/d each, and clipping is a projection:
    1 under null, attained by one entry. If it is replaced, take every small change of a clipped sum as J·e_i/d with
    J = I inside the ball and J = I − r̂r̂ᵀ (or less) on it, r̂ ≥ 0 the direction of the sum. All in one row of the table,
    which is worst, they add up to Je_i − J′e_j. With p = r̂_i, q = r̂′_j its square is at most
    2 − p² − q² + 2q√(1−q²)(1−p²) + 2p√(1−p²)(1−q²), whose maximum, at p = q = cos 67.5°, is (3 + 2√2)/2:
    (1 + √2)/√2 ≈ 1.7071, above √2 because a clipped sum turns as it grows. Approached with many receivers.

    *promised*, *thinned*. Nothing is clipped. A unit's at most D entries add an outer product of its label with
    others': D under null; otherwise two tables without a negative entry, each of norm at most D: √2·D. Attained.
    """
    null = _is_null(level)
    if level.edges == "owned":
        if null:
            return Bound(HEARD, "a node tells one label in all, or hears labels up to norm 1")
        return Bound(_TURNED, "a node tells one label in all before and after, into sums that are clipped to norm 1")
    degree = reached(level, failure)
    why = f"one node has at most {degree} entries, each an outer product of two labels"
    return Bound(degree if null else math.sqrt(2) * degree, why)


def reached(level: BoundedLevel, failure: float | None) -> int:
    """D on *promised*; on *thinned* what survives at most of a unit's lists, from it and to it, but for ``failure``."""
    if isinstance(level, NodeLevel) and level.edges == "thinned":
        assert level.d_max is not None
        assert level.p is not None
        assert failure is not None
        return surviving_degree(level.d_max, level.p, failure, lists=2 if level.change == "null" else 4)
    if level.max_degree is None:
        raise UnsupportedError("on the promised basis hop-bayes needs a degree bound: give max_degree")
    return level.max_degree


def _clipped(rows: FloatArray, norm: float) -> FloatArray:
    """Rows scaled down to this norm, shorter ones left alone; in double precision."""
    bound = norm * _MARGIN
    return np.asarray(rows * (bound / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), bound)))


def _is_null(level: BoundedLevel) -> bool:
    return isinstance(level, NodeLevel) and level.change == "null"
