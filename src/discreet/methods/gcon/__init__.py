"""GCON: a convex graph convolution, by objective perturbation or from noisy sufficient statistics."""

from discreet.methods.declaration import DIVIDES_BY_DEGREES, Declaration, Difference, Preset

_TUNED = ("width", "alpha", "inference_alpha", "steps", "ridge", "learning_rate", "loss", "pseudo_labels")

GCON = Declaration(
    name="gcon",
    target="discreet.methods.gcon.objective:GCON",
    covers={"none": "own-prediction", "edge": "own-prediction"},
    summary="a convex graph convolution by objective perturbation",
    why_no_weights=DIVIDES_BY_DEGREES,
    paper="GCON: Wei et al. 2024",
    presets={
        "paper": Preset(
            settings={
                "encoder": "mlp",
                "width": 64,
                "centre": False,
                "scoring": "plain",
                "bounds": "paper",
                "alpha": 0.8,
                "inference_alpha": 0.1,
                "steps": 2,
                "loss": "soft-margin",
                "omega": 0.9,
                "pseudo_labels": True,
                "hidden": 64,
                "layers": 2,
                "activation": "tanh",
                "dropout": 0.5,
                "epochs": 200,
                "learning_rate": 0.01,
                "weight_decay": 1e-5,
            },
            differs=(
                Difference(
                    "the paper tunes width, restart, steps, Lambda and the learning rate on each graph, which is not "
                    "free where predictions read private edges; here width 64, alpha 0.8, alpha_I 0.1, m = 2, Lambda 1 "
                    "(or what its floor asks), rate 0.01, the soft margin and pseudo-labels for all nodes are "
                    "constants (a Lambda below its floor is refused, where eq. 22 raises it)",
                    about=_TUNED,
                ),
                Difference(
                    "for Actor the paper's grid also has m = 0, features alone, and several m side by side: "
                    "steps=[0,2]",
                    about=("steps",),
                ),
                Difference(
                    "the encoder has tanh units on normalised rows, dropout 0.5 and 200 epochs in batches of 256 at a "
                    "rate that falls along a cosine: the paper says nothing of these",
                    about=("activation", "dropout", "epochs"),
                ),
                Difference("with steps=inf the bound on rows is ours, which is smaller (docs/gcon.md)"),
                Difference("the objective is minimised to a stated gradient norm, which noise pays for"),
            ),
        )
    },
)
GCON_SSP = Declaration(
    name="gcon-ssp",
    target="discreet.methods.gcon.moments:GCONSSP",
    covers={"none": "own-prediction", "edge": "own-prediction"},
    summary="a convex graph convolution from noisy sufficient statistics",
    why_no_weights=DIVIDES_BY_DEGREES,
)
