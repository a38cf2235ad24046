"""How sure a stage is: who proved its bound and its cost, and how its noise is drawn in the machine's arithmetic."""

from __future__ import annotations

PROVED_HERE = "proved here"
"""The proof stands in the docstring of the query (and of its event); tests search small graphs for a counterexample."""
PUBLISHED = "published proof"
"""The bound or the cost rests on a theorem of a paper that the docstring names."""
CHECKED = "numerically checked"
"""No proof is known; searches found nothing above what is stated."""
STATED = "stated by its author"
"""A query of another package that says nothing of its proof."""
NOTHING_PROMISED = "nothing is promised"
"""Level ``none``."""

PROOFS = (PROVED_HERE, PUBLISHED, CHECKED, STATED, NOTHING_PROMISED)

NO_NOISE = "no noise"
IN_FLOATING_POINT = "drawn and added in floating point, from cryptographic random bits; no bound is proved on rounding"
_ON_A_GRID = "exact on a public grid"
_ROUGH = ("objective",)
_SAMPLERS = {
    "gaussian": f"{_ON_A_GRID}: a discrete Gaussian from ChaCha20",
    "dpsgd": f"{_ON_A_GRID}: a discrete Gaussian from ChaCha20; batches by exact coins",
    "laplace": f"{_ON_A_GRID}: rounded Laplace noise from ChaCha20",
    "gumbel-top-k": "exact: picks by coins from ChaCha20; values with rounded Laplace noise on a public grid",
    "gaussian-top-k": f"{_ON_A_GRID}: a discrete Gaussian from ChaCha20",
    "edge-rand": "exact: coins from ChaCha20",
    "lap-graph": f"{_ON_A_GRID}: rounded Laplace noise from ChaCha20",
    "repeat-and-select": "exact where every stage of a trial is: see the trial's stages",
    "thinning": "exact: a secret key from ChaCha20",
    "node-sampling": "exact: coins from ChaCha20",
}
_REPORTS = "exact: coins, or noise on a public grid, from ChaCha20"


def is_exact(mechanism: str) -> bool:
    """Whether the noise of a mechanism has the law that its proof is about, without rounding."""
    return mechanism not in _ROUGH


def sampler(mechanism: str) -> str:
    """How a mechanism draws its noise, in words."""
    return _SAMPLERS.get(mechanism, _REPORTS) if is_exact(mechanism) else IN_FLOATING_POINT
