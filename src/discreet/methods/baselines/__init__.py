"""What private graph learning is compared with: features alone, and graph networks without privacy."""

from discreet.methods.declaration import DIVIDES_BY_DEGREES, Declaration

MLP = Declaration(
    name="mlp",
    target="discreet.methods.baselines.mlp:MLPClassifier",
    covers={"none": "weights+predictions", "edge": "weights+predictions"},
    summary="a network on features alone; reads no edge",
    why_no_weights="",
)
DP_MLP = Declaration(
    name="dp-mlp",
    target="discreet.methods.baselines.dp_mlp:DPMLPClassifier",
    covers={"node": "weights+others-predictions", "neighbor": "weights+others-predictions"},
    summary="a network on features alone, by noisy clipped gradients",
    why_no_weights="",
)
GCN = Declaration(
    name="gcn",
    target="discreet.methods.baselines.convolution:GCN",
    covers={"none": "weights"},
    summary="graph convolutions without privacy",
    why_no_weights=DIVIDES_BY_DEGREES,
    paper="Kipf and Welling 2017",
)
SAGE = Declaration(
    name="sage",
    target="discreet.methods.baselines.convolution:SAGE",
    covers={"none": "weights"},
    summary="GraphSAGE without privacy (mean aggregation)",
    why_no_weights=DIVIDES_BY_DEGREES,
    paper="Hamilton et al. 2017",
)
GAT = Declaration(
    name="gat",
    target="discreet.methods.baselines.convolution:GAT",
    covers={"none": "weights"},
    summary="graph attention without privacy",
    paper="Veličković et al. 2018",
)
