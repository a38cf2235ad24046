"""DPDGC: features beside noisy, cached embeddings of adjacency rows."""

from discreet.methods.declaration import (
    BATCHES_OF_CHIEN,
    EDGE,
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
                Difference("an undirected edge moves Z by the square root of 2 (the paper: 1)", levels=EDGE),
            ),
            differs=(
                Difference(
                    "Z is made with the weights whose rows have norm 1e-8; the paper's code scales a copy "
                    "(docs/dpdgc.md)",
                    about=("row_norm",),
                    levels=PROTECTED,
                ),
                Difference(
                    "at edge level the network on features has two layers and is trained first, and the head reads its "
                    "probabilities; at neighbor and node the head is one linear map (the paper: one layer each for "
                    "features and Z, a head of two, trained together)",
                    about=("layers",),
                    levels=PROTECTED,
                ),
                Difference(
                    "the head reads Z over its noise (at edge level with long rows damped, elsewhere along its "
                    "strongest directions), where the paper adds a bias and normalises rows",
                    levels=PROTECTED,
                ),
                Difference("hidden rows are normalised, before the activation while W is trained"),
                Difference(
                    "without privacy features and rows get a network each, and two weights, fitted on folds, join "
                    "them; the network on rows trains twice the epochs at a rate of 0.003, in larger batches",
                    levels=("none",),
                ),
                Difference(UNIT_OF_CHIEN, levels=NOISY_STEPS),
                Difference(
                    STEPS_OF_CHIEN,
                    about=("steps", "step_size", "embedding_steps", "embedding_step_size", "embedding_batch"),
                    levels=PROTECTED,
                ),
                Difference("clip_norm is 1, and the paper names none", about=("clip_norm",), levels=PROTECTED),
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
