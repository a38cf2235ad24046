"""Stage after stage: networks that read what neighbours were said to be by the stage before (LPGNet, ProGAP)."""

from discreet.methods.declaration import EDGE, KEYED_EDGES, NOISY_STEPS, Declaration, Difference, Preset

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
                "weight_decay": 5e-4,
                "epochs": 500,
                "batch_size": None,
            },
            sound=(
                Difference(
                    "noise on counts is drawn once and kept. A version of the published code draws new noise in every "
                    "pass and pays for one: the average of all would reveal the counts"
                ),
            ),
            differs=(
                Difference(
                    "settings are those of the example that its code gives for Cora. The paper tunes them on each "
                    "graph, by validation accuracy",
                    about=("hidden", "layers", "dropout", "learning_rate", "stages"),
                ),
                Difference("no best epoch is chosen, and the learning rate falls along a cosine"),
                Difference(
                    "before a network reads counts, they are divided by their noise and long rows are shortened. "
                    "Hidden rows are normalised, and linear maps have a bias. A version of the code sets counts below "
                    "0 to 0 instead, and where all are 0 one of them to 1"
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
                    "settings are the defaults of its code: two stages and bases of one layer. The paper tunes both, "
                    "and the learning rate, on each graph",
                    about=("stages", "layers", "learning_rate"),
                ),
                Difference(
                    "each hidden row is normalised by itself, where the paper normalises by batch. Rows are centred "
                    "before they are summed, and before a network reads sums, they are divided by their noise and long "
                    "rows are shortened"
                ),
                Difference(
                    "a node tells what all bases so far make of it, side by side. A later version of its code "
                    "normalises these rows before the head, and tells those of the newest base alone"
                ),
                Difference("no best epoch is chosen, and the learning rate falls along a cosine"),
                Difference(
                    "the first network, all sums and all later networks get a third of the squared privacy loss each, "
                    "where the paper has one noise multiplier for all",
                    about=("split",),
                    levels=NOISY_STEPS,
                ),
                Difference(
                    "a noisy step uses all training nodes, and each stage has 100. The paper draws batches of 256 to "
                    "4,096 for 5 or 10 epochs",
                    about=("steps", "head_steps"),
                    levels=NOISY_STEPS,
                ),
                Difference(KEYED_EDGES, levels=NOISY_STEPS),
            ),
            levels={"node": "node:owned,max_degree=100"},
        )
    },
)
