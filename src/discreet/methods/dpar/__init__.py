"""DPAR: noisy PageRank picks whom a node averages, then noisy clipped gradients."""

from discreet.methods.declaration import Declaration

DPAR = Declaration(
    name="dpar",
    target="discreet.methods.dpar.estimator:DPAR",
    covers={"none": "weights", "node": "weights"},
    summary="noisy PageRank picks whom a node averages, then noisy clipped gradients",
    paper="DPAR: Zhang et al. 2024 (paper 000)",
)
