"""LPGNN and SimGAT: graph networks on reports that every node makes of its own record."""

from discreet.methods.declaration import DIVIDES_BY_DEGREES, Declaration, Difference, Preset

_COVERS = {"none": "weights+predictions", "local": "weights+predictions"}

# What LPGNN's paper trains with, and code of SimGAT's too as far as it says; K for features and labels.
_PAPER = {"x_steps": 16, "y_steps": 2, "hidden": 16, "learning_rate": 0.01, "epochs": 500, "patience": 500}
_REPORTS = Difference(
    "reports are averaged as they are (-1, 0, 1), and rows are scaled to norm 1. The paper rectifies reports first, "
    "which shifts and stretches all of them by the same amount"
)
_TUNED = Difference(
    "dropout 0.5 and weight decay 0.001 are constants, where published code of LPGNN sets both for each graph",
    about=("dropout", "weight_decay"),
)
_VALIDATED = Difference("the best epoch is chosen by the noisy reports of validation nodes, never by their labels")

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
                Difference(
                    "K is 16 and 2, constants, where the paper chooses among 0 to 64 by validation labels",
                    about=("x_steps", "y_steps"),
                ),
                _TUNED,
                _REPORTS,
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
            settings={**_PAPER, "similarity": "deepwalk", "threshold": "paper"},
            differs=(
                Difference(
                    "K' is 16, and the threshold is the middle one of the paper's three: it names no best one",
                    about=("x_steps", "threshold"),
                ),
                Difference(
                    "DeepWalk and node2vec factorise the matrix that word2vec fits to walks, with windows of 5 and "
                    "normalised rows: the paper leaves window and norm open"
                ),
                Difference(
                    "reports of similar nodes are averaged with equal weights, those of neighbours by the symmetric "
                    "normalisation: the paper writes one AGGREGATE for both"
                ),
                Difference(
                    "GraphSAGE of width 16, a rate of 0.01, 500 epochs and K = 2 for labels are those of LPGNN: this "
                    "paper names none of these numbers",
                    about=("hidden", "learning_rate", "epochs", "y_steps"),
                ),
                Difference("with DeepWalk and node2vec a node has at most 1,000 similar others, the most similar ones"),
                _TUNED,
                _REPORTS,
                _VALIDATED,
            ),
        )
    },
)
