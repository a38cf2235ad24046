"""DP-GNN: a graph network on degree-bounded ego-nets, by noisy clipped gradients."""

from discreet.methods.declaration import Declaration, Preset

DP_GNN = Declaration(
    name="dp-gnn",
    target="discreet.methods.dp_gnn.estimator:DPGNN",
    covers={"none": "weights", "edge": "weights", "neighbor": "weights", "node": "weights"},
    summary="a graph network on degree-bounded ego-nets, by noisy clipped gradients",
    why_no_weights="its ego-nets hold whole edges",
    paper="DP-GNN: Daigavane et al. 2021",
    presets={
        "paper": Preset(
            settings={
                "encoder_layers": 1,
                "decoder_layers": 2,
                "heads": 10,
                "hidden": 100,
                "activation": "tanh",
                "learning_rate": 0.003,
                "clipping": "per-layer",
                "sampling": "fixed",
                "optimizer": "adam",
                "schedule": "constant",
                "averaged": 0.0,
            },
            sound=(
                "noise is for all layers together: the paper's, layer by layer, is too little by the square root of "
                "their number",
            ),
            differs=(
                "gradients are clipped to clip_norm 1, a constant, where the paper takes the 75th percentile of norms "
                "on the private data",
                "each node keeps its edges by a secret key, so that no node decides what others keep (the paper's "
                "sampling does not bound that)",
                "every step takes all training nodes, where the paper draws 10,000 (on graphs of that size give "
                "batch_size=10000)",
                "noise follows from the number of steps, where the paper stops when epsilon is spent",
                "the width is 100 (the paper names none), so that gat has its ten heads",
            ),
            levels={"node": "node:owned,max_degree=7"},
        )
    },
)
DP_SAGE = Declaration(
    name="dp-sage",
    target="discreet.methods.dp_gnn.sage:DPSAGE",
    covers={"neighbor": "weights+predictions", "node": "weights+predictions"},
    summary="dp-gnn as the DPDGC paper compares with it: GraphSAGE, outputs released once with noise",
    why_no_weights="its ego-nets hold whole edges",
    paper="DP-SAGE: Chien et al. 2023",
)
