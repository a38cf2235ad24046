"""DP-GNN: a graph network on degree-bounded ego-nets, by noisy clipped gradients."""

from discreet.methods.declaration import Declaration

DP_GNN = Declaration(
    name="dp-gnn",
    target="discreet.methods.dp_gnn.estimator:DPGNN",
    covers={"none": "weights", "edge": "weights", "neighbor": "weights", "node": "weights"},
    summary="a graph network on degree-bounded ego-nets, by noisy clipped gradients",
    paper="DP-GNN: Daigavane et al. 2021 (paper 001)",
)
DP_SAGE = Declaration(
    name="dp-sage",
    target="discreet.methods.dp_gnn.sage:DPSAGE",
    covers={"neighbor": "weights+predictions", "node": "weights+predictions"},
    summary="dp-gnn as paper 004 compares with it: GraphSAGE, outputs released once with noise",
    paper="DP-SAGE: Chien et al. 2023 (paper 004)",
)
