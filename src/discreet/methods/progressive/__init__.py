"""Stage after stage: networks that read what neighbours were said to be by the stage before (LPGNet, ProGAP)."""

from discreet.methods.declaration import Declaration

LPGNET = Declaration(
    name="lpgnet",
    target="discreet.methods.progressive.lpgnet:LPGNet",
    covers={"none": "weights+predictions", "edge": "weights+predictions"},
    summary="stacked networks on noisy counts of each class among the neighbours, cached",
    why_no_weights="it counts neighbours in whole numbers, and weights make none",
    paper="Kolluri et al. 2022",
)
PROGAP = Declaration(
    name="progap",
    target="discreet.methods.progressive.progap:ProGAP",
    covers={
        "none": "weights+predictions",
        "edge": "weights+predictions",
        "neighbor": "weights+others-predictions",
        "node": "weights+others-predictions",
    },
    summary="progressive training: each stage aggregates, with noise, what the stage before has learnt",
    why_no_weights="",
    paper="Sajadmanesh and Gatica-Perez 2024",
)
