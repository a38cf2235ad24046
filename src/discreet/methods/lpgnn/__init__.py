"""LPGNN and SimGAT: graph networks on reports that every node makes of its own record."""

from discreet.methods.declaration import Declaration

_COVERS = {"none": "weights+predictions", "local": "weights+predictions"}

LPGNN = Declaration(
    name="lpgnn",
    target="discreet.methods.lpgnn.estimator:LPGNN",
    covers=_COVERS,
    summary="a graph network on reports that every node makes of its own record",
    paper="LPGNN: Sajadmanesh and Gatica-Perez 2021",
)
SIMGAT = Declaration(
    name="simgat",
    target="discreet.methods.lpgnn.simgat:SimGAT",
    covers=_COVERS,
    summary="lpgnn that averages reports over similar nodes too",
    paper="SimGAT (paper 002)",
)
