"""Packed moments: round trip and norm."""

import numpy as np
import pytest

from discreet.ops.moments import pack, packed_length, unpack


def test_round_trip_and_norm():
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((9, 4)), rng.standard_normal((9, 3))
    packed = pack(z, y, 0.7)
    assert packed.shape == (packed_length(4, 3),)
    cross, gram = unpack(packed, 4, 3, 0.7)
    np.testing.assert_allclose(cross, z.T @ y)
    np.testing.assert_allclose(gram, z.T @ z)
    assert np.linalg.norm(packed) ** 2 == pytest.approx(np.sum((z.T @ y) ** 2) + 0.49 * np.sum((z.T @ z) ** 2))
