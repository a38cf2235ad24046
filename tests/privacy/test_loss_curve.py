"""The curve of privacy losses: against closed forms, and never below what is true."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from discreet.privacy import events
from discreet.privacy.accountants import composed_losses, epsilon_of
from discreet.privacy.loss_curve import LossCurve, _deltas_of, for_units, surest
from discreet.privacy.tradeoff import TradeOff

GAUSSIAN = events.GaussianDpEvent(1.5)
LAPLACE = events.LaplaceDpEvent(1.0)  # the loss is at most 1, and 1 with probability one half


def test_odds() -> None:
    assert surest(1.0, 0.5) == pytest.approx(0.7311, abs=1e-4)
    assert surest(0.0, 0.3) == pytest.approx(0.3)
    assert surest(math.log(3), 0.5) == pytest.approx(0.75)
    assert (surest(math.inf, 0.01), surest(1e9, 0.5), surest(1.0, 0.0)) == (1.0, 1.0, 0.0)


def test_gaussian_is_exact() -> None:
    curve, mu = LossCurve(events.repeat(GAUSSIAN, 4)), 2 / 1.5
    assert curve.exceeds(2.0) == pytest.approx(ndtr(mu / 2 - 2 / mu))
    assert TradeOff.of(curve.event).true_positive_rate(0.1) == pytest.approx(ndtr(ndtri(0.1) + mu), abs=1e-3)
    assert curve.delta(epsilon_of(curve.event, 1e-5)) == pytest.approx(1e-5)


def test_laplace_is_bounded_from_above() -> None:
    curve = LossCurve(LAPLACE)
    assert 0.5 <= curve.exceeds(0.999) <= 1.0  # truly a little more than one half
    assert curve.exceeds(3.0) < 1e-6
    for false_alarms in (0.01, 0.1, 0.3, 0.5):
        true = false_alarms * math.e if false_alarms * math.e <= 0.5 else 1 - math.exp(-1) / 4 / false_alarms
        assert true - 1e-9 <= TradeOff.of(curve.event).true_positive_rate(false_alarms) <= true + 1e-2


def test_numerical_curves_agree_with_the_closed_form() -> None:
    """A Gaussian beside an event that costs next to nothing goes through distributions instead of formulas."""
    mixed = LossCurve(events.compose([GAUSSIAN, events.LaplaceDpEvent(1e5)]))
    exact = LossCurve(GAUSSIAN)
    near, far = TradeOff.of(exact.event), TradeOff.of(mixed.event)
    for false_alarms in np.linspace(0, 1, 9):
        assert (
            near.true_positive_rate(false_alarms) - 5e-3
            <= far.true_positive_rate(false_alarms)
            <= near.true_positive_rate(false_alarms) + 5e-3
        )
    for epsilon in (0.5, 1.0, 2.0):
        assert exact.exceeds(epsilon) <= mixed.exceeds(epsilon) <= 4 * exact.exceeds(epsilon) + 0.1


def test_events_with_renyi_curves_alone() -> None:
    curve = LossCurve(events.ZCDpEvent(0.1))
    assert 0 < curve.delta(2.0) < 1
    assert curve.delta(2.0) <= curve.exceeds(2.0) <= 1


def test_sampling_first() -> None:
    sampled = LossCurve(events.compose([events.SampledNodesDpEvent(0.1), GAUSSIAN]))
    epsilon = epsilon_of(sampled.event, 1e-5)
    assert sampled.delta(epsilon) == pytest.approx(1e-5, rel=1e-3)
    assert TradeOff.of(sampled.event).true_positive_rate(0.05) < TradeOff.of(GAUSSIAN).true_positive_rate(0.05)


def test_without_noise_everything_is_told() -> None:
    curve = LossCurve(events.NonPrivateDpEvent())
    assert (curve.delta(9.0), curve.exceeds(9.0), TradeOff.of(curve.event).true_positive_rate(0.01)) == (1.0, 1.0, 1.0)
    nothing = LossCurve(events.NoOpDpEvent())
    assert (nothing.delta(0.0), nothing.exceeds(0.5), TradeOff.of(nothing.event).true_positive_rate(0.25)) == (
        0.0,
        0.0,
        pytest.approx(0.25),
    )


@pytest.mark.parametrize(
    "event",
    [
        events.compose([GAUSSIAN, LAPLACE]),
        events.repeat(events.PoissonSampledDpEvent(0.1, GAUSSIAN), 30),
        events.repeat(events.GroupSampledGaussianDpEvent(3.0, 0.1, 4, "null"), 5),
    ],
    ids=["both", "sampled", "group"],
)
def test_many_at_once_are_as_one_by_one(event: events.DpEvent) -> None:
    losses = composed_losses(event)
    assert losses is not None
    epsilons = np.array([0.0, 1e-3, 1.1e-3, 0.5, 2.0, 2.0, 8.0, 50.0])
    expected = [losses.get_delta_for_epsilon(float(epsilon)) for epsilon in epsilons]
    np.testing.assert_allclose(_deltas_of(losses, epsilons), expected, rtol=1e-9, atol=1e-17)
    np.testing.assert_array_equal(LossCurve(event).deltas([]), [])


def test_several_units() -> None:
    four = for_units(GAUSSIAN, 2)
    assert four == events.GaussianDpEvent(1.5 / 4)
    assert for_units(events.RandomizedResponseDpEvent(0.5, 2), 1) is None
