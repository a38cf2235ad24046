"""Losses: derivatives against finite differences, suprema against a fine grid."""

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.mechanisms.objective.losses import PseudoHuber, SoftMargin, loss_by_name

LOSSES = [SoftMargin(1), SoftMargin(7), PseudoHuber(3, 0.1), PseudoHuber(3, 0.5), PseudoHuber(2, 2.0)]
X = np.linspace(-8, 8, 4001)
TARGETS = (0.0, 0.3, 1.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slope_and_curvature_are_derivatives_of_the_value(loss):
    h = 1e-5
    for y in TARGETS:
        np.testing.assert_allclose(loss.slope(X, y), (loss.value(X + h, y) - loss.value(X - h, y)) / (2 * h), atol=1e-8)
        difference = (loss.slope(X + h, y) - loss.slope(X - h, y)) / (2 * h)
        np.testing.assert_allclose(loss.curvature(X, y), difference, atol=1e-7)
        assert (loss.curvature(X, y) >= 0).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_suprema_hold_and_are_met(loss):
    h = 1e-5
    slopes = np.array([loss.slope(100 * X, y) for y in TARGETS])
    curvatures = np.array([loss.curvature(X, y) for y in TARGETS])
    thirds = np.array([(loss.curvature(X + h, y) - loss.curvature(X - h, y)) / (2 * h) for y in TARGETS])
    for found, bound in ((slopes, loss.c1), (curvatures, loss.c2), (thirds, loss.c3)):
        assert np.abs(found).max() <= bound * (1 + 1e-6)
        assert np.abs(found).max() >= bound * 0.99


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.0, 0.1, 0.8, 1.5, 1.7, 5.0, 30.0])
def test_steepness_bounds_slope_plus_radius_times_curvature(loss, radius):
    x = np.linspace(-radius, radius, 20001)
    found = max(np.max(np.abs(loss.slope(x, y)) + radius * loss.curvature(x, y)) for y in TARGETS)
    assert found <= loss.steepness(radius) * (1 + 1e-12)
    if isinstance(loss, SoftMargin):
        assert found >= loss.steepness(radius) * 0.999  # the sharp bound is attained


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slope_at_zero(loss):
    assert max(abs(float(loss.slope(np.zeros(1), y)[0])) for y in TARGETS) <= loss.slope_at_zero


def test_unknown_losses_are_refused():
    with pytest.raises(ParameterError, match="soft-margin or pseudo-huber"):
        loss_by_name("hinge", 3, 0.2)
    with pytest.raises(ParameterError, match="positive"):
        loss_by_name("pseudo-huber", 3, 0.0)
