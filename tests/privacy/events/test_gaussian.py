"""The closed form against direct integration, and its inverses against itself."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.integrate import quad
from scipy.stats import norm

from discreet.privacy import events
from discreet.privacy.events.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_pld
from discreet.privacy.events.grids import PLD_INTERVAL


@pytest.mark.parametrize("mu", [0.1, 0.7, 2.0, 6.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 8.0])
def test_delta_is_the_hockey_stick_divergence(mu: float, epsilon: float) -> None:
    threshold = epsilon / mu + mu / 2  # the density ratio exceeds e^ε from here on
    found, _ = quad(lambda t: norm.pdf(t - mu) - math.exp(epsilon) * norm.pdf(t), threshold, threshold + 40)
    assert gaussian_delta(mu, epsilon) == pytest.approx(found, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 16.0])
def test_inverses_never_overshoot(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_delta(mu * (1 + 1e-9), epsilon) > delta
    assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-9)
    assert gaussian_delta(mu, gaussian_epsilon(mu, delta)) <= delta


@pytest.mark.parametrize("delta", [1e-14, 1e-50, 1e-100])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-4, 100.0])
def test_the_smallest_budgets_have_a_noise_too(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta < gaussian_delta(mu * 1.001, epsilon)


def test_textbook_formula_is_not_used() -> None:
    """√(2 ln(1.25/δ))/ε fails above ε = 1 and wastes noise below it."""
    textbook = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert 1 / gaussian_mu(1.0, 1e-5) < 0.8 * textbook
    assert gaussian_delta(20 / textbook, 20.0) > 1e-5


def test_monotone() -> None:
    grid = [gaussian_epsilon(mu, 1e-5) for mu in np.geomspace(1e-3, 10, 30)]
    assert all(a <= b for a, b in itertools.pairwise(grid))
    assert gaussian_epsilon(0.0, 1e-5) == 0.0


@pytest.mark.parametrize(("multiplier", "count"), [(0.5, 1), (2.0, 1), (2.0, 7), (30.0, 100)])
def test_the_distribution_is_above_the_closed_form_and_beside_dp_accounting(multiplier: float, count: int) -> None:
    found = gaussian_pld(events.GaussianDpEvent(multiplier), count)
    deviation = multiplier / math.sqrt(count)
    theirs = pld.from_gaussian_mechanism(deviation, value_discretization_interval=PLD_INTERVAL)
    for delta in (1e-3, 1e-6, 1e-10):
        epsilon, exact = found.get_epsilon_for_delta(delta), gaussian_epsilon(1 / deviation, delta)
        assert exact <= epsilon <= exact + 1e-6
        assert epsilon == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-8)
