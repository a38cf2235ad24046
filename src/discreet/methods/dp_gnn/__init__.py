"""DP-GNN: a graph network on degree-bounded ego-nets, by noisy clipped gradients."""

from discreet.methods.declaration import (
    EDGE,
    KEYED_EDGES,
    NOISY_STEPS,
    NULL_ROWS,
    PROTECTED,
    STEPS_OF_CHIEN,
    UNIT_OF_CHIEN,
    Declaration,
    Difference,
    Preset,
)

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
                    "noise is for all layers together. The paper adds it layer by layer, too little by the square root "
                    "of their number",
                    about=("clipping",),
                    levels=PROTECTED,
                ),
            ),
            differs=(
                Difference(
                    "gradients are clipped to 1, a constant that all linear maps share. The paper clips encoder, "
                    "aggregation and decoder apart, to a multiple of the 75th percentile of norms on the private data",
                    about=("clip_norm", "clipping"),
                    levels=PROTECTED,
                ),
                Difference(
                    "a node reads fan_in = 7 neighbours at most, which bounds memory (the paper's Table 6 has K = 10 "
                    "on ogbn-products and 5 on ogbn-mag: give fan_in and max_degree)",
                    about=("fan_in",),
                ),
                Difference(KEYED_EDGES, levels=("node", "neighbor")),
                Difference(NULL_ROWS, levels=("node",)),
                Difference(
                    "the paper protects nodes, not edges: at this level it is what GCON's paper compares with, DP-SGD",
                    levels=EDGE,
                ),
                Difference(
                    "every step takes all training nodes, where the paper draws 10,000 (on graphs with so many give "
                    "batch_size=10000)",
                    about=("batch_size",),
                ),
                Difference(
                    "200 steps are taken, and noise follows from epsilon. The paper fixes lambda and stops when "
                    "epsilon is spent: to do the same give noise_multiplier, which is 2(K + 1) lambda (16 for lambda = "
                    "1 and K = 7)",
                    about=("noise_multiplier", "steps"),
                    levels=PROTECTED,
                ),
                Difference("the width is 100, so that gat has its ten heads: the paper names none", about=("hidden",)),
                Difference(
                    "hidden rows are normalised, and an activation follows the aggregation too. With optimizer=sgd "
                    "steps have momentum 0.9"
                ),
                Difference(
                    "the rest is the row of the paper's Table 6 for ogbn-arxiv with Adam (with SGD: a rate of 1 and "
                    "one decoder layer). The paper states no delta",
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
    covers={"none": "weights+predictions", "neighbor": "weights+predictions", "node": "weights+predictions"},
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
                Difference(KEYED_EDGES, levels=NOISY_STEPS),
                Difference(
                    "a node reads at most 7 neighbours (fan_in), where the paper allows 100: that takes twelve times "
                    "as long",
                    about=("fan_in",),
                ),
                Difference(
                    "there is one map before and one after a single round of aggregation, and half of the squared "
                    "privacy loss goes to its output, in rows of norm 1: the paper names none of these",
                    about=("output_share", "output_norm", "encoder_layers", "decoder_layers", "layers"),
                ),
                Difference(UNIT_OF_CHIEN, levels=NOISY_STEPS),
                Difference(
                    STEPS_OF_CHIEN,
                    about=("steps", "learning_rate", "batch_size"),
                    levels=NOISY_STEPS,
                ),
                Difference(
                    "gradients are clipped to norm 1 (the paper names none), and hidden rows are normalised",
                    about=("clip_norm",),
                    levels=NOISY_STEPS,
                ),
            ),
            levels={"node": "node:owned,max_degree=100,change=replace"},
        )
    },
)
