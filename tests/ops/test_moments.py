"""Packed moments: round trip, norm, and joint sensitivity by brute force."""

import math

import numpy as np
import pytest

from discreet.ops.moments import pack, packed_length, packed_sensitivity, unpack
from discreet.ops.restart import unit_rows


def test_round_trip_and_norm():
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((9, 4)), rng.standard_normal((9, 3))
    packed = pack(z, y, 0.7)
    assert packed.shape == (packed_length(4, 3),)
    cross, gram = unpack(packed, 4, 3, 0.7)
    np.testing.assert_allclose(cross, z.T @ y)
    np.testing.assert_allclose(gram, z.T @ z)
    assert np.linalg.norm(packed) ** 2 == pytest.approx(np.sum((z.T @ y) ** 2) + 0.49 * np.sum((z.T @ z) ** 2))


@pytest.mark.parametrize("weight", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("steps", [[1], [0, 1, 2]])
def test_joint_sensitivity(weight, steps):
    """Random and adversarial rows whose summed change is Ψ; collinear small changes come close to the bound."""
    rng = np.random.default_rng(1)
    limit = 1 / math.sqrt(len(steps))
    tightest = 0.0
    for trial in range(400):
        n, d, c = int(rng.integers(1, 5)), int(rng.integers(1, 4)), 3
        z = limit * unit_rows(rng.standard_normal((n, d))) * (1 if trial % 2 else rng.random((n, 1)))
        moved = z * (1 - 0.02 * rng.random((n, 1))) if trial % 2 else limit * unit_rows(rng.standard_normal((n, d)))
        y = np.eye(c)[rng.integers(c, size=n) if trial % 3 else np.zeros(n, dtype=int)] - 1 / c
        psi = np.linalg.norm(z - moved, axis=1).sum()
        bound = packed_sensitivity(psi, steps, target_norm=math.sqrt(1 - 1 / c), gram_weight=weight)
        ratio = np.linalg.norm(pack(z, y, weight) - pack(moved, y, weight)) / bound
        assert ratio <= 1 + 1e-9
        tightest = max(tightest, ratio)
    print(f"weight {weight}, steps {steps}: {tightest:.3f}")
    assert tightest > 0.97
