"""Second moments as one vector for one Gaussian: ZᵀY beside w·ZᵀZ."""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import FloatArray

_AT_ONCE = 256
"""Rows that one product adds up."""


def cross_moments(left: FloatArray, right: FloatArray) -> FloatArray:
    """leftᵀ·right, summed over halves of halves of the rows.

    Guarantee: for n rows whose products have norm at most 1 the sum errs by at most n·2⁻⁴⁴ in norm: a number passes
    through one sum of 256 and at most 30 more additions. (One product over all rows would err by n²·2⁻⁵³.)
    """
    if len(left) <= _AT_ONCE:
        return np.asarray(left.T @ right)
    half = len(left) // 2
    return cross_moments(left[:half], right[:half]) + cross_moments(left[half:], right[half:])


def packed_length(width: int, classes: int) -> int:
    """Entries of ZᵀY and of the upper triangle of ZᵀZ."""
    return width * classes + width * (width + 1) // 2


def pack(rows: FloatArray, targets: FloatArray, gram_weight: float) -> FloatArray:
    """(ZᵀY, w·ZᵀZ) as a vector whose ℓ2 norm is that of the two matrices: off-diagonal entries once, times √2."""
    gram = cross_moments(rows, rows)
    upper = np.triu_indices(gram.shape[0])
    weights = np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    return np.concatenate([cross_moments(rows, targets).ravel(), gram_weight * weights * gram[upper]])


def unpack(packed: FloatArray, width: int, classes: int, gram_weight: float) -> tuple[FloatArray, FloatArray]:
    """Inverse of :func:`pack`: ZᵀY and the symmetric ZᵀZ."""
    cross, triangle = np.split(np.asarray(packed, dtype=np.float64), [width * classes])
    upper = np.triu_indices(width)
    weights = np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    gram = np.zeros((width, width))
    gram[upper] = triangle / (gram_weight * weights)
    return cross.reshape(width, classes), gram + np.triu(gram, 1).T
