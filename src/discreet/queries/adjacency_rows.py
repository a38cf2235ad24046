"""Adjacency rows times a matrix of node rows, A·W: the decoupled convolution of the DPDGC paper, and how far it moves.

Row v of A·W adds the rows of W that belong to the nodes whose entries reach v. No private feature enters, so
where W is public or released one entry moves one row by one row of W and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from discreet.arrays import FloatArray
from discreet.errors import ParameterError
from discreet.graph.parts import PrivatePart
from discreet.limits import ROW_NORM
from discreet.ops.row_embedding import Weight, embed_rows
from discreet.ops.rows import cut_rows, cut_sparse_rows, on_lattice
from discreet.privacy.levels import EdgeLevel, Level, NeighborLevel, NodeLevel, NoPrivacy
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query
from discreet.queries.kept_edges import bounded_graph
from discreet.queries.reach import own_row_change, sum_sensitivity
from discreet.queries.sums import edge_sensitivity


@dataclass(frozen=True)
class AdjacencyRows(Query):
    """A·W over the level's bounded graph.

    Input: ``weight``, W, public or released, one row per node, dense or CSR. Its rows are cut at c = ``row_norm`` here
    (one that is not finite becomes zero), so the bound holds for every W.

    Guarantee. *edge*: one entry changes one row by c; an undirected edge is two entries: c·√2. *neighbor* and
    *node*, rows of others: ``reach.sum_sensitivity(inputs="released")``, c times √k, √D (null) or √(2D) (replace)
    where there is no more to say. The unit's own row: ``reach.own_row_change``. All rows, the unit's own among them,
    may then be released. Edges with weights change nothing: an entry carries at most 1 times its row, and another
    weight moves it by no more than its coming or going does.

    *Floating point*. Rows of W lie on a public lattice, in units of c, so that sums are exact.

    Reference: DPDGC, theorems 5.3, 5.4 and G.1, which count an undirected edge once and leave the own row out.
    """

    proof: ClassVar[str] = PROVED_HERE

    level: Level
    num_nodes: int
    width: int
    row_norm: float = 1.0
    failure: float | None = None

    def __post_init__(self) -> None:
        """Refuse a norm that bounds nothing."""
        ROW_NORM.check("row_norm", self.row_norm)

    @property
    def words(self) -> str:
        """What is asked."""
        return "sum of the embedding rows of each node's neighbours"

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per node."""
        return (self.num_nodes, self.width)

    def bound(self) -> Bound:
        """How far all rows move together in ℓ2."""
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, "l2", NO_BOUND)
        unit, c = self._bound_on_unit_rows(), self.row_norm
        why = unit.why if c == 1 else f"{unit.why}, times the row norm {c:g}"
        if unit.clip is None:
            return Bound(c * unit.sensitivity, "l2", why)
        said = f"{why}; its own row is cut at norm {c * unit.clip:.4g}"
        return Bound(c * unit.sensitivity, "l2", said, c * unit.clip)

    def _bound_on_unit_rows(self) -> Bound:
        """The bound for c = 1, and the norm B at which rows of the product are cut (None: not at all)."""
        level = self.level
        if isinstance(level, EdgeLevel):
            return edge_sensitivity("sum", level)
        if not isinstance(level, NodeLevel | NeighborLevel):
            raise ParameterError(f"level {level.spec} does not say how far adjacency rows move")
        others, why = sum_sensitivity(level, inputs="released", failure=self.failure)
        own, clip = own_row_change(level, others, inputs="released")
        return Bound(math.hypot(others, own), "l2", why if clip or not own else f"{why}, and its own by {own:g}", clip)

    def answer(self, private: PrivatePart, *, weight: Weight, **inputs: Any) -> FloatArray:
        """The product in units of c, where no square of an entry vanishes that counts, then times c."""
        graph = bounded_graph(private, self.level)
        with np.errstate(over="ignore", invalid="ignore"):
            unit = weight / self.row_norm
        cut = _on_lattice(cut_sparse_rows(unit, 1.0)) if sp.issparse(unit) else on_lattice(cut_rows(unit, 1.0))
        clip = None if isinstance(self.level, NoPrivacy) else self._bound_on_unit_rows().clip
        weighted = graph.edge_weights is not None
        return embed_rows(graph.weighted_adjacency, cut, clip, weighted=weighted) * self.row_norm


def _on_lattice(rows: sp.csr_array) -> sp.csr_array:
    rows.data = on_lattice(rows.data)
    return rows
