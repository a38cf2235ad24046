"""DPGCN: a graph network on a noisy copy of the graph."""

from discreet.methods.declaration import Declaration

DPGCN = Declaration(
    name="dpgcn",
    target="discreet.methods.dpgcn.estimator:DPGCN",
    covers={"none": "weights+predictions", "edge": "weights+predictions"},
    summary="a graph network on a noisy copy of the graph (EdgeRand, LapGraph)",
    why_no_weights="its noisy copy of the graph holds whole edges",
    paper="Wu et al. 2022",
)
