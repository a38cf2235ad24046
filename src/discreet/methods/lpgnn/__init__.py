"""LPGNN and SimGAT: graph networks on reports that every node makes of its own record."""

from discreet.methods.declaration import DIVIDES_BY_DEGREES, Declaration, Preset

_COVERS = {"none": "weights+predictions", "local": "weights+predictions"}

# What both papers train with; K for features and labels.
_PAPER = {"x_steps": 16, "y_steps": 2, "hidden": 16, "learning_rate": 0.01, "epochs": 500, "patience": 500}
_VALIDATED = "the epoch is chosen by noisy reports of validation nodes, never by their labels"

LPGNN = Declaration(
    name="lpgnn",
    target="discreet.methods.lpgnn.estimator:LPGNN",
    covers=_COVERS,
    summary="a graph network on reports that every node makes of its own record",
    why_no_weights=DIVIDES_BY_DEGREES,
    paper="LPGNN: Sajadmanesh and Gatica-Perez 2021",
    presets={
        "paper": Preset(
            settings=_PAPER,
            differs=(
                "K is 16 and 2, constants, where the paper chooses among 0 to 64 by validation labels",
                _VALIDATED,
            ),
        )
    },
)
SIMGAT = Declaration(
    name="simgat",
    target="discreet.methods.lpgnn.simgat:SimGAT",
    covers=_COVERS,
    summary="lpgnn that averages reports over similar nodes too",
    why_no_weights=DIVIDES_BY_DEGREES,
    paper="SimGAT: Ameen, Emireddy and Stevens",
    presets={
        "paper": Preset(
            settings={**_PAPER, "similarity": "deepwalk", "threshold": 0.0002},
            differs=(
                "K' is 16 and the threshold 0.0002, the middle one of the paper, which prints no best setting",
                "DeepWalk and node2vec factorise the matrix of walks that their networks fit, and rows are normalised",
                "of each node the 1,000 most similar others are kept at most",
                _VALIDATED,
            ),
        )
    },
)
