"""DPDGC: features beside noisy, cached embeddings of adjacency rows."""

from discreet.methods.declaration import Declaration

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
    paper="DPDGC: Chien et al. 2023 (paper 004)",
)
