"""hop-bayes: class-to-class links and neighbour evidence, weighed by their noise."""

from discreet.methods.declaration import Declaration

HOP_BAYES = Declaration(
    name="hop-bayes",
    target="discreet.methods.hop_bayes.estimator:HopBayes",
    covers={
        "none": "weights+predictions",
        "edge": "weights+predictions",
        "neighbor": "weights+others-predictions",
        "node": "weights+others-predictions",
    },
    summary="class-to-class links and neighbour evidence, weighed by their noise",
    why_no_weights="",
    variants={"edge": ({"predictions": "own"},)},
)
