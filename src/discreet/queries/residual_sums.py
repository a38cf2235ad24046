"""How the labels at the far ends of each node's edges depart from the average: an embedding's first gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.arrays import FloatArray
from discreet.errors import UnsupportedError
from discreet.graph.parts import PrivatePart
from discreet.ops.row_embedding import embed_rows
from discreet.ops.rows import cut_rows, on_lattice
from discreet.privacy.levels import EdgeLevel, Level, NoPrivacy
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query
from discreet.queries.sums import edge_sensitivity


@dataclass(frozen=True)
class ResidualSums(Query):
    """Aᵀ·R at edge level: row u adds the rows of R that belong to the nodes that u's entries reach.

    Input: ``residuals``, R, public or released, one row per node; rows are cut at norm 1 here.

    Guarantee. A directed edge u → v changes row u by r_v: 1. An undirected one changes rows u and v by r_v and r_u:
    √2. These are the bounds of ``sums.edge_sensitivity`` for a sum, with every entry reversed. Attained by unit rows.
    An edge whose weight changes moves them by no more than one that comes or goes: weights lie in [0, 1].
    """

    proof: ClassVar[str] = PROVED_HERE

    level: Level
    num_nodes: int
    width: int

    @property
    def words(self) -> str:
        """What is asked."""
        return "sum of the label residuals of each node's neighbours: the embedding's first gradient"

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per node."""
        return (self.num_nodes, self.width)

    def bound(self) -> Bound:
        """How far all rows move together in ℓ2."""
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, "l2", NO_BOUND)
        if not isinstance(self.level, EdgeLevel):
            raise UnsupportedError(f"residuals read labels as public, which they are not at level {self.level.spec}")
        return edge_sensitivity("sum", self.level)

    def answer(self, private: PrivatePart, *, residuals: FloatArray, **inputs: Any) -> FloatArray:
        """The sums in double precision, which are exact: residuals lie on a public lattice."""
        graph = private.graph
        senders, sent = graph.weighted_adjacency.T.tocsr(), on_lattice(cut_rows(residuals, 1.0))
        return embed_rows(senders, sent, weighted=graph.edge_weights is not None)
