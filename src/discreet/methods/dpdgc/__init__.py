"""DPDGC: features beside noisy, cached embeddings of adjacency rows."""

from discreet.methods.declaration import Declaration, Preset

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
                "embedding_steps": 100,
                "embedding_step_size": 0.001,
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
                "steps": 100,
                "step_size": 0.001,
                "clip_norm": 1.0,
            },
            sound=(
                "a replaced node stands in 2D + 1 examples of the embedding (the paper: D + 1)",
                "an undirected edge moves Z by the square root of 2 (the paper: 1)",
            ),
            differs=(
                "Z is made with the weights whose rows have norm 1e-8; the paper's code scales a copy (docs/dpdgc.md)",
                "at edge level the network on features has two layers and is trained first, and the head reads its "
                "probabilities; at neighbor and node the head is one linear map (the paper: one layer each for "
                "features and Z, a head of two, trained together)",
                "the head reads Z over its noise (at edge level with long rows damped, elsewhere along its strongest "
                "directions), where the paper adds a bias and normalises rows",
                "rows are normalised before the activation while W is trained",
                "without privacy features and rows get a network each, and two weights, fitted on folds, join them",
                "noisy steps take every training node, where the paper draws batches of 64 or 256 for 100 epochs",
                "training without noise takes batches of 64 on every graph, where the paper has 256 on its two "
                "largest, or the whole graph where that is better",
            ),
            levels={"node": "node:owned,max_degree=100,change=replace"},
        )
    },
)
