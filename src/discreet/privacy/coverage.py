"""What a guarantee covers, by name and in words."""

from __future__ import annotations

COVERAGE: dict[str, str] = {
    "weights": (
        "the released weights; predictions on private data read that data again and are not covered, "
        "predictions on public data are"
    ),
    "weights+predictions": "the released weights and caches, and all predictions made from them, whoever reads them",
    "weights+others-predictions": (
        "the released weights and caches, and all predictions but that of the protected node itself"
    ),
    "own-prediction": (
        "the released weights; each prediction reads its node's own edges and goes to that node alone, "
        "publishing predictions is not covered"
    ),
}
