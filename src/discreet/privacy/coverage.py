"""What a guarantee covers: by name, in words, and as the part of a graph that a prediction may read.

A prediction is computed from released values, from what the level makes public, and, where the guarantee covers it,
from what belongs to the node that it is for: that node's own record (``weights+others-predictions``), or its own
edges (``own-prediction``). Nothing else can be reached.
"""

from __future__ import annotations

from discreet.graph.graph import Graph
from discreet.graph.parts import EDGES, FEATURES, LABELS, PARTS, PublicPart
from discreet.privacy.levels import Level

NOTHING = "nothing"
"""The coverage of a run as published: its epsilon is a claim of a paper, which no proof here supports."""

COVERAGE: dict[str, str] = {
    "weights": (
        "the released weights; predictions on private data read that data again and are not covered, "
        "predictions on public data are"
    ),
    "weights+predictions": "the released weights and caches, and all predictions made from them, whoever reads them",
    "weights+others-predictions": (
        "the released weights and caches, and all predictions but that of the protected node itself. In plain words: "
        "the prediction about a person is computed from that person's own record and from values that were released "
        "with noise, and from nothing else. Whoever is given the release and the predictions about any number of "
        "people learns about every other person no more than the stated epsilon and delta allow. The prediction about "
        "a person is not protected against revealing that same person's own record: it goes to that person alone, and "
        "publishing all predictions is not covered (graph differential privacy: Chien et al. 2023, definition 4.2 and "
        "theorem B.1)"
    ),
    "own-prediction": (
        "the released weights; each prediction reads its node's own edges and goes to that node alone, "
        "publishing predictions is not covered"
    ),
    NOTHING: (
        "nothing: epsilon is what a paper claims for its own noise, not verified; the accountants' figures say what "
        "can be proved for the same noise"
    ),
}

READS = {
    "weights+predictions": frozenset[str](),
    "weights+others-predictions": frozenset({FEATURES}),
    "own-prediction": frozenset({EDGES}),
    "weights": frozenset[str](),
    NOTHING: frozenset[str](),
}
"""What a covered prediction may read, by coverage: of its own node alone."""

_PREDICTIONS = {
    "weights": "Do not publish predictions on private data: they read that data again.",
    "weights+others-predictions": "Give each prediction to the person it is about, and to nobody else.",
    "own-prediction": "Give each prediction to the node it is about, and to nobody else.",
}
_NOTHING_IS_PROTECTED = "Treat the release as you treat the data: nothing is protected."
_ALWAYS = (
    "Do not publish accuracy or any other figure that was measured on private data, unless its own noise was paid for.",
    "Do not publish how long training took or how much memory it used.",
    "Count every release from the same data: their costs add up.",
)


def duties(covers: str, level: Level) -> list[str]:
    """What whoever holds a release must see to, because no noise does."""
    if level.kind == "none" or covers == NOTHING:
        return [_NOTHING_IS_PROTECTED]
    unprotected = [part for part in (EDGES, FEATURES, LABELS) if part not in level.private]
    parts = " and ".join(unprotected)
    exposed = [f"Make sure that {parts} may be known to everyone: this guarantee does not protect them."]
    own = [_PREDICTIONS[covers]] if covers in _PREDICTIONS else []
    return [*own, *(exposed if unprotected else []), *_ALWAYS]


def open_for_prediction(graph: Graph, level: Level, covers: str, *, everything: bool) -> PublicPart:
    """The graph as a prediction may read it.

    ``everything`` opens all of it: for graphs in which nothing is private, and outside the guarantee.

    Guarantee: with coverage ``weights+others-predictions`` features are open, for row v of a prediction to read row v
    alone; with ``own-prediction`` edges are, for row v to read the edges at v alone. That a method keeps to its own row
    is checked by the replay audit; that it reads nothing else is enforced here.
    """
    return PublicPart(level.view(graph), level.private, PARTS if everything else READS[covers])
