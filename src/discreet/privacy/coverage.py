"""What a guarantee covers, by name and in words."""

from __future__ import annotations

from discreet.graph.parts import EDGES, FEATURES, LABELS
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
