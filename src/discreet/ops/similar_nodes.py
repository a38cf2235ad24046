"""Similar nodes of a public graph by one of three measures, for any threshold; slow work is done once per process."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from discreet.graph.parts import Topology, topology_key
from discreet.ops.rows import unit_rows
from discreet.ops.similarity import WalkCounts, distance_for, nearest_within, spread_of
from discreet.ops.walks import Walker, embed, meetings

Similarity = Literal["deepwalk", "node2vec", "grarep"]


@dataclass(frozen=True)
class SimilarityMeasure:
    """How similarity is measured: walks of ``length`` nodes, ``walks`` from each, embedded in ``dimensions``."""

    kind: Similarity
    length: int
    walks: int
    dimensions: int
    window: int
    p: float
    q: float
    seed: int


class SimilarNodes:
    """One measure on one graph. It reads edges alone, which are public wherever this is used."""

    def __init__(self, graph: Topology, measure: SimilarityMeasure) -> None:
        self._measure = measure
        self._known: dict[float, sp.csr_array] = {}
        if measure.kind == "grarep":
            self._counts = WalkCounts(graph, measure.length)
            return
        biased = {"p": measure.p, "q": measure.q} if measure.kind == "node2vec" else {}
        counts = meetings(
            Walker(graph, **biased),
            graph.num_nodes,
            walks=measure.walks,
            length=measure.length,
            window=measure.window,
            seed=measure.seed,
        )
        self._points = unit_rows(embed(counts, measure.dimensions, measure.seed))

    def beyond(self, threshold: float, most: int) -> sp.csr_array:
        """Similar nodes by a threshold in the paper's units: a share, a normalised distance, or a cosine."""
        if self._measure.kind == "grarep":
            if threshold not in self._known:
                self._known = {threshold: self._counts.above(threshold)}
            return self._known[threshold]
        if self._measure.kind == "deepwalk":
            return nearest_within(self._points, threshold * spread_of(self._points), most)
        return nearest_within(self._points, float(np.sqrt(2 - 2 * threshold)), most)

    def about(self, similar: float, most: int) -> sp.csr_array:
        """So many similar nodes on average."""
        if self._measure.kind == "grarep":
            return self.beyond(self._counts.threshold_for(similar, self._measure.seed), most)
        return nearest_within(self._points, distance_for(self._points, similar, self._measure.seed), most)


_REMEMBERED: OrderedDict[tuple[bytes, SimilarityMeasure], SimilarNodes] = OrderedDict()
_MOST_REMEMBERED = 3
"""Graphs whose neighbourhoods are kept: the fitted one and a few that are predicted on."""


def similar_nodes(graph: Topology, measure: SimilarityMeasure) -> SimilarNodes:
    """The measure on the graph; the last few are remembered, so that many fits on one graph embed it once."""
    key = topology_key(graph), measure
    if key not in _REMEMBERED:
        _REMEMBERED[key] = SimilarNodes(graph, measure)
        if len(_REMEMBERED) > _MOST_REMEMBERED:
            _REMEMBERED.popitem(last=False)
    _REMEMBERED.move_to_end(key)
    return _REMEMBERED[key]
