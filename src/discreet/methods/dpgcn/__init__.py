"""DPGCN: a graph network on a noisy copy of the graph."""

from discreet.methods.declaration import Declaration, Difference, Preset

DPGCN = Declaration(
    name="dpgcn",
    target="discreet.methods.dpgcn.estimator:DPGCN",
    covers={"none": "weights+predictions", "edge": "weights+predictions"},
    summary="a graph network on a noisy copy of the graph (EdgeRand, LapGraph)",
    why_no_weights="its noisy copy of the graph holds whole edges",
    paper="DPGCN: Wu et al. 2022",
    presets={
        "paper": Preset(
            settings={
                "mechanism": "lap-graph",
                "count_share": 0.01,
                "network": "gcn",
                "hidden": 256,
                "layers": 2,
                "activation": "relu",
                "dropout": 0.2,
                "learning_rate": 0.01,
                "weight_decay": 5e-4,
                "epochs": 500,
            },
            differs=(
                Difference(
                    "settings are those that the code of LPGNet gives for a GCN on Cora. The paper tunes them on each "
                    "graph",
                    about=("hidden", "layers", "dropout", "learning_rate", "epochs"),
                ),
                Difference(
                    "feature rows are scaled to norm 1, hidden rows are normalised, and the rate falls along a cosine"
                ),
                Difference(
                    "the epoch with the best validation accuracy is kept, which is free: labels are public, and the "
                    "noisy copy is released"
                ),
                Difference(
                    "of the paper's two mechanisms this is lap-graph: for the other give mechanism=edge-rand",
                    about=("mechanism",),
                ),
            ),
        )
    },
)
