"""GCON: a convex graph convolution, by objective perturbation or from noisy sufficient statistics."""

from discreet.methods.declaration import Declaration

GCON = Declaration(
    name="gcon",
    target="discreet.methods.gcon.objective:GCON",
    covers={"none": "own-prediction", "edge": "own-prediction"},
    summary="a convex graph convolution by objective perturbation",
    paper="GCON: Wei et al. 2024 (paper 003)",
)
GCON_SSP = Declaration(
    name="gcon-ssp",
    target="discreet.methods.gcon.moments:GCONSSP",
    covers={"none": "own-prediction", "edge": "own-prediction"},
    summary="a convex graph convolution from noisy sufficient statistics",
)
