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
                    "noise for picks is calibrated exactly over all 70 rows, and with gm to a change of sqrt(2) C1 in "
                    "each. The paper has C1 there, and formulas for small epsilon (docs/dpar.md)",
                    about=("sources",),
                ),
                Difference(
                    "no node stands in more than one other row (`users`). The paper bounds no number of rows",
                    about=("users",),
                ),
                Difference(
                    "every node takes part (q' = 1). A sound sample of 9% would leave about six of 70 rows. The paper "
                    "takes its 70 rows among the nodes that were drawn, which tells who they are",
                    about=("node_rate", "sources"),
                ),
                Difference("a row holds its own node with weight 1/2 beside two picks", about=("own_weight", "top_k")),
            ),
            differs=(
                Difference(
                    "half of the budget goes to picks: the paper does not say how it divides it",
                    about=("structure_share",),
                ),
                Difference(
                    "234 steps are the paper's 200 epochs over 70 rows in batches of 60: with other rows or batches "
                    "give steps",
                    about=("steps",),
                ),
                Difference("a coin for each row decides whether it is in a batch", about=("batch_size",)),
                Difference(
                    "steps are those of Adam, where the paper's algorithm 2 has plain ones; hidden rows are "
                    "normalised, and the activation is ReLU: the paper names none"
                ),
                Difference(NULL_ROWS),
                Difference(
                    "ISTA runs with alpha/(2 - alpha), 0.14 for alpha = 0.25, which gives the walk that restarts with "
                    "probability alpha",
                    about=("alpha",),
                ),
            ),
        )
    },
)
