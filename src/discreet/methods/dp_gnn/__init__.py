"""DP-GNN: a graph network on degree-bounded ego-nets, by noisy clipped gradients."""

from discreet.methods.declaration import Declaration

DP_GNN = Declaration(
    name="dp-gnn",
    target="discreet.methods.dp_gnn.estimator:DPGNN",
    covers={"node": "weights", "neighbor": "weights"},
    summary="a graph network on degree-bounded ego-nets, by noisy clipped gradients",
    paper="DP-GNN: Daigavane et al. 2021 (paper 001)",
)
