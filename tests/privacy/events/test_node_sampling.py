"""Sampling the nodes first: amplification of the whole, checked by integration, and never q·ε."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of, exact_epsilon, pld_epsilon, rdp_epsilon, spend
from discreet.privacy.calibration import calibrate
from discreet.privacy.events.gaussian import gaussian_epsilon
from discreet.privacy.events.node_sampling import SampledNodesDpEvent, amplified, before_sampling
from discreet.privacy.events.table import split_sampling

DELTA = 1e-5
GRID = np.linspace(-30, 40, 400_001)


def sampled(rate: float, *parts: events.DpEvent) -> events.DpEvent:
    return events.compose([SampledNodesDpEvent(rate), *parts])


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), GRID))


@pytest.mark.parametrize("rate", [0.09, 0.5])
@pytest.mark.parametrize("deviation", [0.4, 1.0, 3.0])
def test_epsilon_is_that_of_the_mixture(rate, deviation, record_property):
    """Null: with the unit sampled N(1, σ²), else N(0, σ²). Both orders stay within δ, one of them meets it."""
    present, absent = norm.pdf(GRID, 1, deviation), norm.pdf(GRID, 0, deviation)
    mixture = (1 - rate) * absent + rate * present
    for delta in (1e-2, 1e-4):
        found = exact_epsilon(sampled(rate, events.GaussianDpEvent(deviation)), delta)
        forth, back = hockey_stick(mixture, absent, found), hockey_stick(absent, mixture, found)
        assert forth == pytest.approx(delta, rel=1e-3)
        assert back <= delta * (1 + 1e-6)
        record_property(f"node sampling {rate} {deviation}", forth / delta)


@pytest.mark.parametrize("rate", [0.09, 0.5])
def test_replacing_a_record_stays_within_it_too(rate):
    """Replace: +1 against −1, null in between at 0; what follows is calibrated to the distance 2."""
    null, one, two = (norm.pdf(GRID, mean, 2.0) for mean in (0, 1, -1))
    p, q = ((1 - rate) * null + rate * law for law in (one, two))
    for delta in (1e-2, 1e-4):
        found = exact_epsilon(sampled(rate, events.GaussianDpEvent(1.0)), delta)
        assert max(hockey_stick(p, q, found), hockey_stick(q, p, found)) <= delta


@pytest.mark.parametrize(("rate", "inner"), [(0.09, 8 / 0.09), (0.09, 1 / 0.09), (0.5, 4.0)])
def test_a_pure_mechanism_has_exactly_this_epsilon_and_not_q_times_it(rate, inner):
    """Randomised response behind the sample: its loss is ln(1 + q(e^ε − 1)), far above qε."""
    likely, unlikely = 1 / (1 + math.exp(-inner)), 1 / (1 + math.exp(inner))
    loss = math.log(((1 - rate) * unlikely + rate * likely) / unlikely)
    assert amplified(inner, rate) == pytest.approx(loss, rel=1e-9)
    assert amplified(inner, rate) > 1.25 * rate * inner


def test_the_published_factor_understates_tenfold():
    assert amplified(8 / 0.09, 0.09) == pytest.approx(86.48, abs=0.01)
    assert amplified(1 / 0.09, 0.09) == pytest.approx(8.70, abs=0.01)


def test_every_accountant_amplifies_and_the_best_is_certified():
    parts = [events.LaplaceDpEvent(2.0), events.GaussianDpEvent(2.0)]
    for account in (pld_epsilon, rdp_epsilon):
        inner = account(events.compose(parts), DELTA / 0.2)
        assert account(sampled(0.2, *parts), DELTA) == pytest.approx(math.log1p(0.2 * math.expm1(inner)), rel=1e-12)
    assert set(spend(sampled(0.2, *parts), DELTA)) == {"pld", "rdp"}
    assert epsilon_of(sampled(0.2, events.GaussianDpEvent(2.0)), DELTA) == pytest.approx(
        amplified(gaussian_epsilon(0.5, DELTA / 0.2), 0.2), rel=1e-12
    )


def test_a_rate_of_one_changes_nothing_and_a_rate_below_delta_costs_nothing():
    assert epsilon_of(sampled(1.0, events.GaussianDpEvent(1.0)), DELTA) == epsilon_of(
        events.GaussianDpEvent(1.0), DELTA
    )
    assert epsilon_of(sampled(1e-6, events.GaussianDpEvent(0.01)), DELTA) == 0.0
    assert epsilon_of(sampled(0.5, events.NonPrivateDpEvent()), DELTA) == math.inf


@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_calibration_goes_through_the_sample(rate):
    for parts in ([events.GaussianDpEvent(1.0)], [events.LaplaceDpEvent(1.0), events.GaussianDpEvent(1.0)]):
        unit = sampled(rate, *parts)
        factor = calibrate(unit, 1.0, DELTA)
        assert 0.99 < epsilon_of(events.scale_noise(unit, factor), DELTA) <= 1.0
    inner = before_sampling(1.0, DELTA, rate)
    assert amplified(inner[0], rate) == pytest.approx(1.0)
    with pytest.raises(PrivacyError, match="sample more nodes"):
        calibrate(sampled(1e-6, events.GaussianDpEvent(1.0)), 1.0, DELTA)


def test_sampling_comes_first_and_once():
    marker, cost = SampledNodesDpEvent(0.1), events.GaussianDpEvent(1.0)
    for wrong in ([cost, marker], [marker, cost, marker], [events.repeat(marker, 2), cost]):
        with pytest.raises(PrivacyError, match="once, before everything else"):
            epsilon_of(events.compose(wrong), DELTA)
    assert split_sampling(cost) == (1.0, cost)


def test_it_can_be_written_and_read():
    event = sampled(0.25, events.GaussianDpEvent(3.0))
    assert events.event_from_json(events.event_to_json(event)) == event


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, True, "half"])
def test_bad_rates(bad):
    with pytest.raises(PrivacyError, match="sampling_probability"):
        SampledNodesDpEvent(bad)
