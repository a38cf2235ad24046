"""DPDGC: features beside noisy, cached embeddings of adjacency rows."""

from discreet.methods.declaration import (
    BATCHES_OF_CHIEN,
    EDGE,
    KEYED_EDGES,
    NO_NOISY_STEPS,
    NOISY_STEPS,
    PROTECTED,
    STEPS_OF_CHIEN,
    UNIT_OF_CHIEN,
    Declaration,
    Difference,
    Preset,
)

DPDGC = Declaration(
    name="dpdgc",
    target="discreet.methods.dpdgc.estimator:DPDGC",
    covers={
        "none": "weights+predictions",
        "edge": "weights+predictions",
        "neighbor": "weights+others-predictions",
        "node": "weights+others-predictions",
    },
    summary="features beside noisy, cached embeddings of adjacency rows",
    why_no_weights="",
    paper="DPDGC: Chien et al. 2023",
    presets={
        "paper": Preset(
            settings={
                "embedding": "trained",
                "width": 64,
                "row_norm": 1e-8,
                "embedding_steps": 300,
                "embedding_step_size": 0.01,
                "hidden": 64,
                "layers": 2,
                "activation": "selu",
                "dropout": 0.5,
                "head_dropout": 0.5,
                "own_dropout": 0.0,
                "learning_rate": 0.001,
                "weight_decay": 0.0,
                "epochs": 100,
                "batch_size": 64,
                "components": 64,
                "rows_hidden": 64,
                "linear": False,
                "steps": 300,
                "step_size": 0.01,
                "clip_norm": 1.0,
            },
            sound=(
                Difference(
                    "a replaced node stands in 2D + 1 examples of the embedding (the paper: D + 1)", levels=("node",)
                ),
                Difference(
                    "an undirected edge moves Z by the square root of 2, and stands in two examples of the embedding "
                    "(the paper: 1, and one)",
                    levels=EDGE,
                ),
            ),
            differs=(
                Difference(
                    "the rows of W really have norm 1e-8 when Z is computed. The paper's code scales a copy of them, "
                    "so that its noise is far too small (docs/dpdgc.md)",
                    about=("row_norm",),
                    levels=PROTECTED,
                ),
                Difference(
                    "the network on features has two layers and is trained first, and the head reads its "
                    "probabilities. The paper has one layer for features, one for Z and a head of two, trained "
                    "together",
                    about=("layers",),
                    levels=EDGE,
                ),
                Difference(
                    "there is one layer for features and one for Z, and the head is one linear map, whose weights for "
                    "Z start at zero. The paper's head has two layers",
                    levels=NOISY_STEPS,
                ),
                Difference(
                    "before the head reads Z, it is divided by its noise, and long rows are shortened. The paper adds "
                    "a bias and normalises rows",
                    levels=EDGE,
                ),
                Difference(
                    "before the head reads Z, it is divided by its noise, and only its strongest directions are kept. "
                    "The paper adds a bias and normalises rows",
                    levels=NOISY_STEPS,
                ),
                Difference("hidden rows are normalised (while W is trained, before the activation)"),
                Difference(
                    "features and rows get a network each, and two weights, fitted on folds, join them. The network on "
                    "rows trains for twice the epochs at a rate of 0.003, in larger batches",
                    levels=("none",),
                ),
                Difference(
                    "W, Z and the network get 3 : 3 : 7 of the squared privacy loss: the paper does not say how it "
                    "divides its budget",
                    about=("split",),
                    levels=NOISY_STEPS,
                ),
                Difference(
                    "W and Z get half of the squared privacy loss each: the paper does not say how it divides its "
                    "budget",
                    about=("split",),
                    levels=EDGE,
                ),
                Difference(UNIT_OF_CHIEN, levels=NOISY_STEPS),
                Difference(
                    "here k outgoing edges of a node are added or removed. The paper replaces k entries of its row and "
                    "k of its column, which moves the rows of other nodes by the same bound",
                    levels=("neighbor",),
                ),
                Difference(KEYED_EDGES, levels=("node",)),
                Difference(
                    STEPS_OF_CHIEN,
                    about=("steps", "step_size", "embedding_steps", "embedding_step_size", "embedding_batch"),
                    levels=PROTECTED,
                ),
                Difference(
                    "gradients are clipped to norm 1: the paper names none", about=("clip_norm",), levels=PROTECTED
                ),
                Difference(
                    BATCHES_OF_CHIEN,
                    about=("batch_size",),
                    levels=NO_NOISY_STEPS,
                ),
            ),
            levels={"node": "node:owned,max_degree=100,change=replace"},
        )
    },
)
