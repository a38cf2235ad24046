"""Whom a row of approximate personalised PageRank stands on: its largest entries, on a sample of the private graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
import torch

from discreet.arrays import IntArray
from discreet.graph.parts import PrivatePart
from discreet.privacy.query import PUBLISHED
from discreet.queries.picks import TopPicks
from discreet.queries.sampled_nodes import NodeSample, checked_positions


@dataclass(frozen=True)
class PageRankRows(TopPicks):
    """The largest entries of rows of personalised PageRank among the nodes that take part.

    Input: ``sources``, the public positions (see ``queries.sampled_nodes``) of the rows. Candidates are the
    positions but the row's own, which moves later ones up by one; with ``own_entry`` (as published) all of them.
    ``alpha``, ``rho``, ``gamma`` and ``solver`` are those of :func:`discreet.ops.ppr.appr_rows`.

    Guarantee. *Neighbours*: any change of one node's record and edges. *Bound*: that of :class:`TopPicks`, for any
    scores at all: which nodes a unit may reach through PageRank is unbounded, so all rows are charged. With a secret
    sample, scores are those of the sampled graph, in which a node that lost its coin has no edge. *Edge cases*: a
    source without neighbours, or one that lost, has an empty row. Edges to and from ids outside the range are not read.
    """

    proof: ClassVar[str] = PUBLISHED

    sample: NodeSample
    alpha: float
    rho: float
    gamma: float
    solver: Literal["ista", "push"]
    own_entry: bool = False

    @property
    def words(self) -> str:
        """What is asked."""
        return f"the {self.picks} largest entries of each of {self.rows} rows of personalised PageRank"

    def scores(self, private: PrivatePart, *, sources: IntArray, **inputs: Any) -> sp.csr_array:
        """PageRank from each source."""
        from discreet.ops.ppr import appr_rows  # numba, late: only rows need it

        taken = self.sample.take(private)
        chosen = checked_positions(sources, self.rows, len(taken.ids))
        rows = appr_rows(
            taken.edges(private.graph),
            chosen,
            alpha=self.alpha,
            rho=self.rho,
            gamma=self.gamma,
            solver=self.solver,
            threads=torch.get_num_threads(),
        )
        return rows if self.own_entry else without_own(rows, chosen)


def without_own(rows: sp.csr_array, own: IntArray) -> sp.csr_array:
    """Rows over all candidates but each row's own node: later columns move up by one."""
    entries = rows.tocoo()
    keep = entries.col != own[entries.row]
    row, col = entries.row[keep], entries.col[keep].astype(np.int64)
    col = col - (col > own[row])
    return sp.csr_array((entries.data[keep], (row, col)), shape=(rows.shape[0], rows.shape[1] - 1))


def positions_of(candidates: IntArray, own: IntArray) -> IntArray:
    """The positions that columns of :func:`without_own` stand for; never a row's own."""
    return candidates + (candidates >= own[:, None])
