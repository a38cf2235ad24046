"""DP-GNN: a graph network on degree-bounded ego-nets, by noisy clipped gradients."""

from discreet.methods.declaration import NULL_ROWS, STEPS_OF_CHIEN, UNIT_OF_CHIEN, Declaration, Difference, Preset

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
                Difference(
                    "noise is for all layers together: the paper's, layer by layer, is too little by the square root "
                    "of their number",
                    about=("clipping",),
                ),
            ),
            differs=(
                Difference(
                    "gradients are clipped to 1, a constant, divided among all linear maps; the paper clips encoder, "
                    "aggregation and decoder apart, to a multiple of the 75th percentile of norms on the private data",
                    about=("clip_norm", "clipping"),
                ),
                Difference(
                    "each node keeps its edges by a secret key, so that no node decides what others keep (the paper's "
                    "sampling does not bound that); a node reads fan_in = 7 neighbours at most, for memory (K = 10, in "
                    "two rows of the paper's Table 6, wants fan_in=10)",
                    about=("fan_in",),
                ),
                Difference(NULL_ROWS, levels=("node",)),
                Difference(
                    "every step takes all training nodes, where the paper draws 10,000 (on graphs of that size give "
                    "batch_size=10000)",
                    about=("batch_size",),
                ),
                Difference(
                    "200 steps are taken and noise follows from epsilon, where the paper fixes lambda and stops when "
                    "epsilon is spent: to do the same give noise_multiplier, which is 2(K + 1) lambda (16 for lambda = "
                    "1 and K = 7)",
                    about=("noise_multiplier", "steps"),
                ),
                Difference("the width is 100 (the paper names none), so that gat has its ten heads", about=("hidden",)),
                Difference(
                    "hidden rows are normalised, and there is an activation after the aggregation too; with "
                    "optimizer=sgd steps have momentum 0.9"
                ),
                Difference(
                    "the rest is the row of its Table 6 for ogbn-arxiv with Adam: with optimizer=sgd it has rate 1 and "
                    "one decoder layer",
                    about=("learning_rate", "decoder_layers"),
                ),
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
    presets={
        "paper": Preset(
            settings={
                "convolution": "sage",
                "inference": "noisy",
                "hidden": 64,
                "activation": "selu",
                "learning_rate": 0.01,
                "clip_norm": 1.0,
                "steps": 300,
                "optimizer": "adam",
            },
            differs=(
                Difference(
                    "each node keeps its edges by a secret key, so that no node decides what others keep (the paper's "
                    "sampling does not bound that)"
                ),
                Difference(
                    "a node reads 7 of its neighbours at most (fan_in), where the paper has D = 100: reading 100 takes "
                    "twelve times as long",
                    about=("fan_in",),
                ),
                Difference(UNIT_OF_CHIEN),
                Difference(
                    STEPS_OF_CHIEN,
                    about=("steps", "learning_rate", "batch_size"),
                ),
                Difference(
                    "clip_norm is 1, and the paper names none; hidden rows are normalised", about=("clip_norm",)
                ),
            ),
            levels={"node": "node:owned,max_degree=100,change=replace"},
        )
    },
)
