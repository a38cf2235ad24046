"""Stage after stage: networks that read what neighbours were said to be by the stage before (LPGNet, ProGAP)."""

from discreet.methods.declaration import EDGE, NOISY_STEPS, Declaration, Difference, Preset

LPGNET = Declaration(
    name="lpgnet",
    target="discreet.methods.progressive.lpgnet:LPGNet",
    covers={"none": "weights+predictions", "edge": "weights+predictions"},
    summary="stacked networks on noisy counts of each class among the neighbours, cached",
    why_no_weights="it counts neighbours in whole numbers, and weights make none",
    paper="LPGNet: Kolluri et al. 2022",
    presets={
        "paper": Preset(
            settings={
                "architecture": "paper",
                "start": "random",
                "stages": 2,
                "known_labels": False,
                "hidden": 256,
                "layers": 2,
                "activation": "relu",
                "dropout": 0.2,
                "learning_rate": 0.01,
                "weight_decay": 0.0,
                "epochs": 500,
                "batch_size": None,
            },
            sound=(
                Difference(
                    "noise on counts is drawn once and kept: published code draws it anew in every pass, which "
                    "averages it away and is charged once"
                ),
            ),
            differs=(
                Difference(
                    "settings are those of the example that its code gives for Cora; the paper tunes them on each "
                    "graph, by validation accuracy",
                    about=("hidden", "layers", "dropout", "learning_rate", "stages"),
                ),
                Difference("no best epoch is chosen; the learning rate falls along a cosine"),
                Difference(
                    "counts enter over their noise, with long rows damped, and hidden rows are normalised; linear "
                    "maps have a bias"
                ),
            ),
        )
    },
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
    paper="ProGAP: Sajadmanesh and Gatica-Perez 2024",
    presets={
        "paper": Preset(
            settings={
                "architecture": "paper",
                "start": "random",
                "stages": 2,
                "frozen": False,
                "hidden": 16,
                "layers": 1,
                "activation": "selu",
                "dropout": 0.0,
                "learning_rate": 0.01,
                "weight_decay": 0.0,
                "epochs": 100,
                "batch_size": None,
                "steps": 100,
                "step_size": 0.01,
                "head_steps": 100,
                "head_step_size": 0.01,
                "clip_norm": 1.0,
                "split": (0.34, 0.33, 0.33),
            },
            sound=(
                Difference("an undirected edge moves a stage by the square root of 2 (published code: 1)", levels=EDGE),
            ),
            differs=(
                Difference(
                    "settings are the defaults of its code: two stages, bases of one layer; the paper tunes both, and "
                    "the learning rate, on each graph",
                    about=("stages", "layers", "learning_rate"),
                ),
                Difference(
                    "hidden rows are normalised each by itself, where the paper normalises by batch; rows are centred "
                    "before they are summed, and sums enter over their noise, with long rows damped"
                ),
                Difference("no best epoch is chosen; the learning rate falls along a cosine"),
                Difference(
                    "the first network, all sums and all later networks get a third of the squared privacy loss each, "
                    "where the paper has one noise multiplier for all",
                    about=("split",),
                    levels=NOISY_STEPS,
                ),
                Difference(
                    "noisy steps take every training node, 100 times in each stage, where the paper draws batches of "
                    "256 to 4,096 for 5 or 10 epochs",
                    about=("steps", "head_steps"),
                    levels=NOISY_STEPS,
                ),
            ),
            levels={"node": "node:owned,max_degree=100"},
        )
    },
)
