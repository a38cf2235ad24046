"""What a guarantee covers, by name and in words."""

from __future__ import annotations

COVERAGE: dict[str, str] = {
    "weights": (
        "the released weights; predictions on private data read that data again and are not covered, "
        "predictions on public data are"
    ),
    "weights+predictions": "the released weights and caches, and all predictions made from them, whoever reads them",
    "weights+others-predictions": (
        "the released weights and caches, and all predictions but that of the protected node itself. In plain words: "
        "the prediction about a person is computed from that person's own record and from values that were released "
        "with noise, and from nothing else. Whoever is given the release and the predictions about any number of "
        "people learns about every other person no more than the stated epsilon and delta allow. The prediction about "
        "a person is not protected against revealing that same person's own record: it goes to that person alone, and "
        "publishing all predictions is not covered (graph differential privacy: Chien et al. 2023, definition 4.2 and "
        "theorem B.1)"
    ),
    "own-prediction": (
        "the released weights; each prediction reads its node's own edges and goes to that node alone, "
        "publishing predictions is not covered"
    ),
}
