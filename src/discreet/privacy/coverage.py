"""What a guarantee covers: by name, in words, and as the parts of a graph that a prediction may read.

A prediction is computed from released values, from what the level makes public, and, where the guarantee covers it,
from what belongs to the node that it is for: that node's own record (``weights+others-predictions``), or its own
edges (``own-prediction``). Nothing else can be reached.
"""

from __future__ import annotations

from discreet.graph.parts import EDGES, FEATURES

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
"""What a covered prediction may read, by coverage: of its own node alone (see ``Level.opened``)."""
