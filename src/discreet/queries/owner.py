"""The one reader of predictions: what of a private graph the reader of a prediction may see without noise.

A prediction is computed from released values, from what the level makes public, and, where the guarantee covers it,
from what belongs to the node that it is for: that node's own record (``weights+others-predictions``), or its own
edges (``own-prediction``). Nothing else can be reached.
"""

from __future__ import annotations

from discreet.graph.graph import Graph
from discreet.graph.parts import EDGES, FEATURES, PARTS, PublicPart
from discreet.privacy.levels import Level

READS = {
    "weights+predictions": frozenset[str](),
    "weights+others-predictions": frozenset({FEATURES}),
    "own-prediction": frozenset({EDGES}),
    "weights": frozenset[str](),
    "nothing": frozenset[str](),
}
"""What a covered prediction may read, by coverage: of its own node alone."""


def open_for_prediction(graph: Graph, level: Level, covers: str, *, everything: bool) -> PublicPart:
    """The graph as a prediction may read it.

    ``everything`` opens all of it: for graphs in which nothing is private, and outside the guarantee.

    Guarantee: with coverage ``weights+others-predictions`` features are open, for row v of a prediction to read row v
    alone; with ``own-prediction`` edges are, for row v to read the edges at v alone. That a method keeps to its own row
    is checked by the replay audit; that it reads nothing else is enforced here.
    """
    return PublicPart(level.view(graph), level.private, PARTS if everything else READS[covers])
