"""GAP: noisy aggregation of encoded features, cached."""

from discreet.methods.declaration import (
    BATCHES_OF_CHIEN,
    EDGE,
    KEYED_EDGES,
    NO_NOISY_STEPS,
    NOISY_STEPS,
    STEPS_OF_CHIEN,
    UNIT_OF_CHIEN,
    Declaration,
    Difference,
    Preset,
)

GAP = Declaration(
    name="gap",
    target="discreet.methods.gap.estimator:GAP",
    covers={
        "none": "weights+predictions",
        "edge": "weights+predictions",
        "neighbor": "weights+others-predictions",
        "node": "weights+others-predictions",
    },
    summary="noisy aggregation of encoded features, cached",
    why_no_weights="",
    paper="GAP: Sajadmanesh et al. 2023; analysed in Chien et al. 2023",
    presets={
        "paper": Preset(
            settings={
                "hops": 2,
                "width": 64,
                "own": "rows",
                "start": "random",
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
                "steps": 300,
                "step_size": 0.01,
                "head_steps": 300,
                "head_step_size": 0.01,
                "clip_norm": 1.0,
                "split": (0.34, 0.33, 0.33),
            },
            sound=(
                Difference("an undirected edge moves a hop by the square root of 2 (published code: 1)", levels=EDGE),
            ),
            differs=(
                Difference(
                    "settings are those with which Chien et al. 2023 run it, with two hops, where they try 1 to 3 on "
                    "each graph",
                    about=("hops",),
                ),
                Difference(
                    "encoder, hops and head get a third of the squared privacy loss each, where the paper has one "
                    "noise multiplier for all",
                    about=("split",),
                    levels=NOISY_STEPS,
                ),
                Difference(
                    STEPS_OF_CHIEN,
                    about=("steps", "step_size", "head_steps", "head_step_size"),
                    levels=NOISY_STEPS,
                ),
                Difference(
                    BATCHES_OF_CHIEN,
                    about=("batch_size",),
                    levels=NO_NOISY_STEPS,
                ),
                Difference(
                    "gradients are clipped to norm 1: the paper names none", about=("clip_norm",), levels=NOISY_STEPS
                ),
                Difference(UNIT_OF_CHIEN, levels=NOISY_STEPS),
                Difference(KEYED_EDGES, levels=NOISY_STEPS),
                Difference(
                    "each hidden row is normalised by itself, and rows are centred before they are summed. (The paper "
                    "normalises hidden rows by batch)"
                ),
                Difference(
                    "before the head reads a hop, it is divided by its noise and long rows are shortened. The head "
                    "also has a linear path beside its layers"
                ),
            ),
            levels={"node": "node:owned,max_degree=100,change=replace"},
        )
    },
)
