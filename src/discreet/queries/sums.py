"""One noisy hop: what each node's neighbours say, added up or averaged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from discreet.arrays import FloatArray
from discreet.errors import PlanViolationError, UnsupportedError
from discreet.graph.parts import PrivatePart
from discreet.ops.rows import clip_rows, finite_rows, normalize_rows, on_lattice
from discreet.ops.sparse import Aggregation, map_rows, neighbour_sums
from discreet.privacy.levels import EdgeLevel, Level, NeighborLevel, NodeLevel, NoPrivacy
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query
from discreet.queries.kept_edges import bounded_graph
from discreet.queries.reach import hop_inputs, hop_sensitivity, own_row_change

MOST_SYMMETRIC = 1 << 23
"""Nodes up to which the rounding of symmetric sums is paid for, whatever the degrees: see :func:`edge_sensitivity`."""


@dataclass(frozen=True)
class NeighbourSums(Query):
    """The sum (``mean``, ``symmetric``) over each node's neighbours of one row of norm at most 1 per node.

    Inputs: ``rows``, public or released, one per node; or, where features are private, ``encoder``, a released network
    whose centred output on each node's own features (and its own row of ``beside``, released) is that node's row.
    Either way rows are scaled to unit norm here (one that is not finite becomes zero).

    Guarantee, for every ``rows``, ``encoder`` and ``beside``:

    *edge*: :func:`edge_sensitivity`. *node* and *k neighbours*: ``reach.hop_sensitivity`` over the level's bounded
    graph bounds the rows of others, ``reach.own_row_change`` the unit's own. All rows are covered on every basis, so
    hops after the first read released rows alone, and refuse an ``encoder``.

    *Weights of edges*, in [0, 1], scale what an entry adds to a *sum*, and keep its bounds: see both functions. A mean
    or a symmetric sum over them is refused.

    *Floating point*. Rows and what is sent of them lie on a public lattice, so that sums are exact, with weights and
    without (``ops.sparse``).
    """

    proof: ClassVar[str] = PROVED_HERE

    level: Level
    num_nodes: int
    width: int
    aggregation: Aggregation = "sum"
    hop: int = 1
    failure: float | None = None

    @property
    def words(self) -> str:
        """What is asked."""
        return f"{self.aggregation} of the neighbours' rows, hop {self.hop}"

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per node."""
        return (self.num_nodes, self.width)

    def bound(self) -> Bound:
        """How far all rows move together in ℓ2."""
        if isinstance(self.level, EdgeLevel):
            if self.aggregation == "symmetric" and self.num_nodes > MOST_SYMMETRIC:
                raise UnsupportedError(
                    f"symmetric aggregation is proved in double precision up to {MOST_SYMMETRIC} nodes: use sum or mean"
                )
            return edge_sensitivity(self.aggregation, self.level)
        if isinstance(self.level, NodeLevel | NeighborLevel):
            return self._bound_at_node_level(self.level)
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, "l2", NO_BOUND)
        raise UnsupportedError(f"sums over neighbours have no bound at level {self.level.spec}")

    def _bound_at_node_level(self, level: NodeLevel | NeighborLevel) -> Bound:
        if self.aggregation == "symmetric":
            raise UnsupportedError("symmetric aggregation reaches one hop further at node level: use sum or mean")
        others, why = hop_sensitivity(level, hop=self.hop, aggregation=self.aggregation, failure=self.failure)
        own, clip = own_row_change(level, others, inputs=hop_inputs(self.hop), aggregation=self.aggregation)
        if clip is not None:
            why += f"; its own row is clipped to norm {clip:.4g}"
        elif own:
            why += f"; its own row moves by norm at most {own:g}"
        return Bound(math.hypot(others, own), "l2", why, clip)

    @property
    def adds_over_edges(self) -> bool:
        """At edge level; and where no sender's row is divided by a number of its edges."""
        return isinstance(self.level, EdgeLevel) and self.aggregation != "symmetric"

    @torch.no_grad()
    def answer(
        self,
        private: PrivatePart,
        *,
        rows: Tensor | None = None,
        encoder: nn.Module | None = None,
        beside: Tensor | None = None,
        **inputs: Any,
    ) -> FloatArray:
        """Sums in double precision, which are exact but for *symmetric*; a mean has one rounding more."""
        if encoder is not None:
            if self.hop > 1:
                raise PlanViolationError("hops after the first read released rows, not an encoder")
            encoded = map_rows(encoder, private.graph.features, private.device, beside)
            rows = encoded - encoded.mean(dim=1, keepdim=True)
        assert rows is not None
        sent = on_lattice(finite_rows(normalize_rows(rows)).cpu().numpy())
        bounded = isinstance(self.level, NodeLevel | NeighborLevel)
        graph = bounded_graph(private, self.level) if bounded else private.graph
        sums = neighbour_sums(graph, sent, self.aggregation)
        clip = self.bound().clip
        return sums if clip is None else clip_rows(torch.from_numpy(sums), clip).numpy()


def edge_sensitivity(aggregation: Aggregation, level: EdgeLevel) -> Bound:
    """How far one hop over rows of norm at most 1 moves in ℓ2 (all rows together), and why.

    Guarantee. Neighbours differ in one edge; the rows H do not depend on edges, or are released already.

    *sum*. A directed edge u → v changes row v by h_u: 1. An undirected one changes rows u and v by
    h_v and h_u: √2. Attained by unit rows. What an edge of weight w, in [0, 1], sends lies between 0 and h, number by
    number; so if the weight moves from w to w′ (0: no edge), the same rows move by no more than that.

    *mean*. Adding u → v to a row of degree d moves it by (h_u − mean)/(d + 1), of norm at most
    2/(d + 1) ≤ 1 for d ≥ 1, and by h_u for d = 0: at most 1 per row, so 1 and √2. Attained at isolated nodes. (Not so
    with weights: of an entry of weight 0.001 the mean is h, and one of weight 1 turns it into nearly −h: 2.)

    *symmetric*, undirected, without self-loops. Let a, b be the degrees of u, v before {u, v} is added and f(a) = 1 −
    √(a/(a+1)). Row u moves by at most √a·f(a) + 1/√((a+1)(b+1)), row v likewise. The other neighbours w of u move by at
    most (1/√d_w)(1/√a − 1/√(a+1)), in squares f(a)² in all; a common neighbour of u and v has d_w ≥ 2, which pays for
    the sum of its two terms. The total of squares is 2 at a = b = 0 and at most 1.6 elsewhere: √2, attained at two
    isolated nodes. Sums are not exact here. A row of degree d errs by at most d·√d·2⁻⁵², so the rows of a changed
    edge's ends and of their neighbours, 2d + 2 of them, by at most d²·2⁻⁵⁰ together. What lies between √1.6 and √2 pays
    for that up to d = 2²³; at isolated nodes nothing is added up. A degree is below the number of nodes, which is
    public: beyond 2²³ of them (:data:`MOST_SYMMETRIC`) the query is refused.
    """
    if aggregation == "symmetric" and level.directed:
        raise UnsupportedError("symmetric aggregation needs an undirected graph: use sum or mean")
    if level.directed:
        return Bound(1.0, "l2", f"one directed edge changes one {aggregation} by norm at most 1")
    if aggregation == "symmetric":
        why = "one undirected edge moves its ends and their neighbours by norm at most √2 together"
        return Bound(math.sqrt(2), "l2", why)
    return Bound(math.sqrt(2), "l2", f"one undirected edge changes two {aggregation}s, each by norm at most 1")
