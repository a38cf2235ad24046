"""DPAR: noisy PageRank picks whom a node averages, then noisy clipped gradients."""

from discreet.methods.declaration import NULL_ROWS, Declaration, Difference, Preset

DPAR = Declaration(
    name="dpar",
    target="discreet.methods.dpar.estimator:DPAR",
    covers={"none": "weights", "node": "weights"},
    summary="noisy gradients on features, averaged over edges to predict; preset paper is DPAR: noisy PageRank too",
    why_no_weights="PageRank and averages over edges divide by degrees, and have no bound with weights",
    paper="DPAR: Zhang et al. 2024",
    presets={
        "paper": Preset(
            settings={
                "structure_share": 0.5,
                "top_k": 2,
                "sources": 70,
                "batch_size": 60,
                "layers": 2,
                "hidden": 32,
                "learning_rate": 0.005,
                "clip_norm": 1.0,
                "steps": 234,
                "schedule": "constant",
                "averaged": 0.0,
                "prediction": "logits",
            },
            sound=(
                Difference(
                    "picks are charged for what any change of edges does to clipped scores of all 70 rows: the paper's "
                    "sensitivities do not hold (docs/dpar.md)",
                    about=("sources",),
                ),
                Difference("no node stands in more than `users` other rows: the paper bounds no number of rows"),
                Difference(
                    "q' = 1: a node that is not drawn must stay as a row of zeros, so that the paper's 9% would leave "
                    "six of 70 rows (the paper takes its 70 rows among the 9%, which tells who was drawn)",
                    about=("node_rate", "sources"),
                ),
                Difference(
                    "a row holds its own node with weight 1/2 and two picks, and steps draw batches by coins",
                    about=("own_weight", "top_k"),
                ),
            ),
            differs=(
                Difference(
                    "half of the budget goes to picks, where the paper does not say how it is divided",
                    about=("structure_share",),
                ),
                Difference(
                    "steps are Adam's, where the paper's algorithm 2 writes plain ones; hidden rows are normalised"
                ),
                Difference(NULL_ROWS),
                Difference("alpha is the restart of the plain walk, which ISTA reads as alpha/(2 - alpha)"),
            ),
        )
    },
)
