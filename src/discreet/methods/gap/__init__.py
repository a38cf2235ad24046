"""GAP: noisy aggregation of encoded features, cached."""

from discreet.methods.declaration import Declaration

GAP = Declaration(
    name="gap",
    target="discreet.methods.gap.estimator:GAP",
    covers={
        "none": "weights+predictions",
        "edge": "weights+predictions",
        "neighbor": "weights+others-predictions",
        "node": "weights+others-predictions",
    },
    summary="noisy aggregation of encoded features, cached",
    why_no_weights="",
    paper="GAP: Sajadmanesh et al. 2023; analysed in Chien et al. 2023",
)
