"""Second moments as one vector for one Gaussian: ZᵀY beside w·ZᵀZ, with their joint sensitivity."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.ops.restart import row_norm_bound

FloatArray = npt.NDArray[np.float64]


def packed_length(width: int, classes: int) -> int:
    """Entries of ZᵀY and of the upper triangle of ZᵀZ."""
    return width * classes + width * (width + 1) // 2


def pack(rows: FloatArray, targets: FloatArray, gram_weight: float) -> FloatArray:
    """(ZᵀY, w·ZᵀZ) as a vector whose ℓ2 norm is that of the two matrices: off-diagonal entries once, times √2."""
    gram = rows.T @ rows
    upper = np.triu_indices(gram.shape[0])
    weights = np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    return np.concatenate([(rows.T @ targets).ravel(), gram_weight * weights * gram[upper]])


def unpack(packed: FloatArray, width: int, classes: int, gram_weight: float) -> tuple[FloatArray, FloatArray]:
    """Inverse of :func:`pack`: ZᵀY and the symmetric ZᵀZ."""
    cross, triangle = np.split(np.asarray(packed, dtype=np.float64), [width * classes])
    upper = np.triu_indices(width)
    weights = np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    gram = np.zeros((width, width))
    gram[upper] = triangle / (gram_weight * weights)
    return cross.reshape(width, classes), gram + np.triu(gram, 1).T


def packed_sensitivity(psi: float, steps: Sequence[float], *, target_norm: float, gram_weight: float) -> float:
    """How far :func:`pack` moves in ℓ2: Ψ·√(t² + 4w²/s) for targets of norm at most t.

    Guarantee. *Neighbours*: Σᵢ‖zᵢ − z′ᵢ‖ ≤ Ψ with ‖zᵢ‖ ≤ 1/√s on both sides, targets alike. *Bound*: row i moves
    (zᵢyᵢᵀ, w·zᵢzᵢᵀ) by (δyᵢᵀ, w(mδᵀ + δmᵀ)) with δ = z′ᵢ − zᵢ and m their mean, of norm at most
    ‖δ‖·√(t² + 4w²‖m‖²), and norms add over rows. *Edge case*: attained as δ → 0 along m. *Reference*: the issue's
    sufficient statistics; brute-forced in the tests.
    """
    return psi * math.sqrt(target_norm**2 + 4 * gram_weight**2 * row_norm_bound(steps) ** 2)
