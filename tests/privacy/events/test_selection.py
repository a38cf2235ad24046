"""Private selection: the theorem against exact output laws, a second computation, and what it refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp import rdp_privacy_accountant as rdp
from scipy.special import logsumexp

from discreet.errors import PrivacyError
from discreet.mechanisms.bits import BitStream
from discreet.privacy import events
from discreet.privacy.accountants import RDP_ORDERS, epsilon_of, rdp_curve, spend
from discreet.privacy.events.node_sampling import SampledNodesDpEvent
from discreet.privacy.events.selection import (
    OneOfDpEvent,
    draw_repeats,
    gamma_for,
    generating,
    mean_of,
    repeated_curve,
    select_event,
)

SHAPES = (0.0, 1.0)


def best_of(probabilities: np.ndarray, mean: float, shape: float) -> np.ndarray:
    """The exact law of the best of K draws, outcomes in rising order: P(best ≤ y) = E[P(one ≤ y)ᴷ]."""
    below = np.concatenate([[0.0], np.cumsum(probabilities)])
    return np.diff(generating(shape, gamma_for(mean, shape), np.minimum(below, 1.0)))


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1))


def delta_at(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [1.5, 4.0, 20.0])
def test_the_number_of_runs_has_the_law_that_is_charged(shape: float, mean: float) -> None:
    secret = BitStream(bytes(32))
    drawn = np.array([draw_repeats(mean, shape, secret) for _ in range(2500)])
    assert drawn.min() == 1
    assert drawn.mean() == pytest.approx(mean, rel=0.1)
    gamma = gamma_for(mean, shape)
    assert mean_of(gamma, shape) == pytest.approx(mean)
    for x in (0.2, 0.7, 0.95):
        assert np.mean(x**drawn) == pytest.approx(float(generating(shape, gamma, np.array([x]))[0]), abs=0.02)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [2.0, 10.0])
def test_the_bound_holds_for_exact_output_laws(
    shape: float, mean: float, record_property: Callable[[str, object], None]
) -> None:
    """Random mechanisms on a few outcomes with a known divergence: selection never exceeds the theorem."""
    rng = np.random.default_rng(1)
    tightest = 0.0
    for _ in range(30):
        base = rng.dirichlet(np.ones(5) * rng.choice([1.0, 5.0]))
        tilt = np.exp(rng.uniform(-1, 1) * rng.choice([-1, 0, 1], size=5))
        other = base * tilt / (base * tilt).sum()
        curve = np.array([max(divergence(base, other, a), divergence(other, base, a), 0.0) for a in RDP_ORDERS])
        bound = repeated_curve(curve, mean, shape)
        one, two = best_of(base, mean, shape), best_of(other, mean, shape)
        for place in range(0, len(RDP_ORDERS), 7):
            found = max(divergence(one, two, RDP_ORDERS[place]), divergence(two, one, RDP_ORDERS[place]))
            assert found <= bound[place] * (1 + 1e-9) + 1e-12
            tightest = max(tightest, found / bound[place])
    record_property(f"tightness, mean {mean}, shape {shape}", tightest)
    assert tightest > 0.2


@pytest.mark.parametrize("shape", SHAPES)
def test_certified_epsilon_covers_the_exact_privacy_loss(shape: float) -> None:
    """Best of K noisy scores of two outcomes apart by one standard deviation, on a fine grid: δ(ε) stays below δ."""
    sigma, mean, delta = 3.0, 8.0, 1e-4
    grid = np.linspace(-30, 31, 20_001)
    one, two = (np.exp(-((grid - at) ** 2) / (2 * sigma**2)) for at in (0.0, 1.0))
    one, two = best_of(one / one.sum(), mean, shape), best_of(two / two.sum(), mean, shape)
    one, two = np.maximum(one, 0), np.maximum(two, 0)
    epsilon = epsilon_of(RepeatAndSelectDpEvent(events.GaussianDpEvent(sigma), mean, shape), delta)
    single = epsilon_of(events.GaussianDpEvent(sigma), delta)
    assert single < epsilon < 4 * single
    assert max(delta_at(one, two, epsilon), delta_at(two, one, epsilon)) <= delta
    # A test that can fail: the cost of a single run does not pay for the selection.
    assert max(delta_at(one, two, single), delta_at(two, one, single)) > delta


@pytest.mark.parametrize("shape", SHAPES)
def test_a_second_way_to_compute_it(shape: float) -> None:
    inner = events.compose([events.GaussianDpEvent(4.0), events.repeat(events.GaussianDpEvent(20.0), 3)])
    event = RepeatAndSelectDpEvent(inner, 12.0, shape)
    accountant = rdp.RdpAccountant(RDP_ORDERS).compose(event)
    assert epsilon_of(event, 1e-5) == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-6)
    assert set(spend(event, 1e-5)) == {"rdp"}
    # A pure ε mechanism becomes (2 + η)ε: the theorem where both orders go to infinity.
    pure = rdp_curve(RepeatAndSelectDpEvent(events.ApproximateDpEvent(1.0, 0.0), 12.0, shape))
    assert pure is not None
    assert pure[-1] == pytest.approx(2 + shape, rel=0.01)
    assert pure[-1] >= 2 + shape


def test_one_of_several_costs_what_the_worst_does() -> None:
    near, far = events.GaussianDpEvent(2.0), events.repeat(events.GaussianDpEvent(8.0), 2)
    both = rdp_curve(OneOfDpEvent([near, far]))
    assert both == pytest.approx(rdp_curve(near))
    assert select_event([near, near], 5.0, 0.0) == RepeatAndSelectDpEvent(near, 5.0, 0.0)
    event = select_event([near, far], 5.0, 0.0)
    assert epsilon_of(event, 1e-5) == epsilon_of(RepeatAndSelectDpEvent(near, 5.0, 0.0), 1e-5)
    assert events.event_from_json(json.loads(json.dumps(events.event_to_json(event)))) == event
    assert epsilon_of(events.scale_noise(event, 2.0), 1e-5) < epsilon_of(event, 1e-5)


def test_what_the_theorem_does_not_cover_is_refused() -> None:
    boxed = RepeatAndSelectDpEvent(events.ApproximateDpEvent(1.0, 1e-6), 5.0, 0.0)
    with pytest.raises(PrivacyError, match="no accountant"):
        epsilon_of(boxed, 1e-5)
    with pytest.raises(PrivacyError, match="no accountant"):
        epsilon_of(select_event([events.GaussianDpEvent(1.0), events.ApproximateDpEvent(1.0, 1e-6)], 5.0, 0.0), 1e-5)
    sampled = events.compose([SampledNodesDpEvent(0.5), events.GaussianDpEvent(2.0)])
    with pytest.raises(PrivacyError, match="no accountant"):
        epsilon_of(select_event([sampled], 5.0, 0.0), 1e-5)
    for mean, shape in ((1.0, 0.0), (math.inf, 0.0), (5.0, -0.5), (5.0, math.inf)):
        with pytest.raises(PrivacyError):
            gamma_for(mean, shape)
    with pytest.raises(PrivacyError, match="shape"):
        draw_repeats(5.0, 0.5, BitStream(bytes(32)))
