"""Packed moments: round trip and norm."""

import math

import numpy as np
import pytest

from discreet.ops.moments import cross_moments, pack, packed_length, unpack


def test_round_trip_and_norm():
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((9, 4)), rng.standard_normal((9, 3))
    packed = pack(z, y, 0.7)
    assert packed.shape == (packed_length(4, 3),)
    cross, gram = unpack(packed, 4, 3, 0.7)
    np.testing.assert_allclose(cross, z.T @ y)
    np.testing.assert_allclose(gram, z.T @ z)
    assert np.linalg.norm(packed) ** 2 == pytest.approx(np.sum((z.T @ y) ** 2) + 0.49 * np.sum((z.T @ z) ** 2))


def test_sums_over_many_rows_keep_to_their_error():
    """Aligned rows, the worst for rounding; in single precision they would not."""
    n = 20_000
    left, right = np.ones((n, 2)), np.random.default_rng(0).uniform(0.5, 1, (n, 3))
    exact = np.array([[math.fsum(column) for column in right.T]] * 2)
    assert np.abs(cross_moments(left, right) - exact).max() <= n * 2.0**-44
    assert np.array_equal(cross_moments(left[:0], right[:0]), np.zeros((2, 3)))
    assert np.abs(cross_moments(left, right.astype(np.float32)) - exact).max() > n * 2.0**-44
