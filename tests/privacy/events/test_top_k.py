"""One-shot top-K: the dominating pair of a pick against brute force, and composed ε in a second way."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.accountants import (
    RDP_ORDERS,
    epsilon_of,
    epsilon_of_two,
    pld_epsilon,
    rdp_curve,
    rdp_epsilon,
    spend,
)
from discreet.privacy.calibration import calibrate
from discreet.privacy.events.top_k import OneShotTopKDpEvent, bounded_range_delta

DELTA = 1e-5


def pick_law(scores: np.ndarray, scale: float) -> np.ndarray:
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def top_k_law(scores: np.ndarray, scale: float, picks: int) -> np.ndarray:
    """The law of K picks in turn, over ordered outcomes."""
    law = []
    for outcome in itertools.permutations(range(len(scores)), picks):
        probability, left = 1.0, list(range(len(scores)))
        for pick in outcome:
            weights = pick_law(scores[left], scale)
            probability *= weights[left.index(pick)]
            left.remove(pick)
        law.append(probability)
    return np.array(law)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_no_pair_of_scores_beats_the_bound_on_a_pick(scale, record_property):
    """Corners of the cube, where the divergence is largest, with groups of many sizes."""
    rng = np.random.default_rng(0)
    grid, nearest = np.linspace(-0.9, 0.9, 13) * 2 / scale, 0.0
    bound = bounded_range_delta(grid, 2 / scale)
    for size in (2, 3, 10, 100, 1000):
        for _ in range(60):
            split = rng.random()
            one = (rng.random(size) < split).astype(float)
            two = 1 - one if rng.random() < 0.8 else (rng.random(size) < split).astype(float)
            p, q = pick_law(one, scale), pick_law(two, scale)
            found = np.array([hockey_stick(p, q, epsilon) for epsilon in grid])
            assert (found <= bound + 1e-12).all()
            nearest = max(nearest, float((found / bound).max()))
    record_property(f"pick, scale {scale}", nearest)
    assert nearest > 0.95


def test_the_bound_is_a_profile():
    """Decreasing and convex in e^ε, 1 − e^ε on the far left and 0 on the right: so some pair of laws has it."""
    ratio = np.linspace(1e-4, 5, 4000)
    profile = bounded_range_delta(np.log(ratio), 1.2)
    assert (np.diff(profile) <= 1e-12).all()
    assert (np.diff(profile, 2) >= -1e-9).all()
    assert (profile >= np.maximum(0, 1 - ratio) - 1e-12).all()
    assert bounded_range_delta(np.array([-1.2, 1.2, 9.0]), 1.2) == pytest.approx([1 - math.exp(-1.2), 0, 0])


@pytest.mark.parametrize(("scale", "picks"), [(1.0, 1), (2.0, 2), (4.0, 3)])
def test_whole_selections_stay_within_both_accountants(scale, picks, record_property):
    """All ordered outcomes enumerated, over all corners of the cube of scores."""
    event, nearest = OneShotTopKDpEvent(scale, picks), 0.0
    corners = [np.array(corner, dtype=float) for corner in itertools.product((0, 1), repeat=6)]
    laws = [top_k_law(corner, scale, picks) for corner in corners[:: 1 if picks < 3 else 5]]
    deltas = [0.2, 0.05, 0.01]
    bounds = [(pld_epsilon(event, delta), rdp_epsilon(event, delta)) for delta in deltas]
    for p, q in itertools.product(laws, laws):
        for delta, (pld, rdp) in zip(deltas, bounds, strict=True):
            assert hockey_stick(p, q, pld) <= delta * (1 + 1e-6)
            assert hockey_stick(p, q, rdp) <= delta
            nearest = max(nearest, hockey_stick(p, q, pld) / delta)
    record_property(f"top-{picks}, scale {scale}", nearest)
    assert nearest > (0.5 if picks == 1 else 0.1)


def test_rdp_of_a_pick_is_above_the_worst_bounded_range_pair():
    """The two-point pairs of the docstring, maximised over t, at every order."""
    for spread in (0.1, 1.0, 5.0):
        curve = rdp_curve(OneShotTopKDpEvent(2 / spread, 1))
        for t in np.linspace(1e-3, 1 - 1e-3, 60) * spread:
            p = (math.exp(spread) - math.exp(t)) / math.expm1(spread)
            moments = [np.logaddexp(math.log(p) + (a - 1) * t, math.log1p(-p) + (a - 1) * (t - spread)) / (a - 1)
                       for a in RDP_ORDERS]  # fmt: skip
            assert (np.array(moments) <= curve * (1 + 1e-9)).all()


def test_the_profile_is_tighter_for_few_picks_and_zcdp_for_many():
    event = OneShotTopKDpEvent(2.0, 1)
    for delta in (0.1, 0.01):
        found = pld_epsilon(event, delta)
        assert bounded_range_delta(np.array([found]), 1.0)[0] == pytest.approx(delta, rel=1e-3)
    many = OneShotTopKDpEvent(20.0, 2)
    whole = spend(events.repeat(many, 70), DELTA)
    zcdp = rdp_epsilon(events.ZCDpEvent(70 * 2 / (2 * 20.0**2)), DELTA)
    assert whole["rdp"] == pytest.approx(zcdp, rel=1e-9)
    assert zcdp < whole["pld"] < math.sqrt(4 / 3) * zcdp
    few = spend(OneShotTopKDpEvent(2.0, 3), 1e-3)
    assert few["pld"] < 0.95 * few["rdp"]


def test_picks_rows_and_counts_are_the_same_thing():
    once = pld_epsilon(OneShotTopKDpEvent(10.0, 6), DELTA)
    for other in (events.repeat(OneShotTopKDpEvent(10.0, 2), 3), events.compose([OneShotTopKDpEvent(10.0, 3)] * 2)):
        assert pld_epsilon(other, DELTA) == pytest.approx(once, rel=1e-3)


def test_the_pure_bound_is_met_at_tiny_delta():
    """2Kε for noise scale Δ/ε."""
    assert pld_epsilon(OneShotTopKDpEvent(4.0, 3), 1e-12) == pytest.approx(2 * 3 / 4, abs=2e-2)
    assert rdp_epsilon(OneShotTopKDpEvent(4.0, 3), 1e-12) == pytest.approx(2 * 3 / 4, rel=1e-2)


def test_it_scales_composes_with_others_and_is_doubled_for_two():
    unit = events.compose([events.repeat(OneShotTopKDpEvent(12.0, 2), 30), events.GaussianDpEvent(1.0)])
    factor = calibrate(unit, 2.0, DELTA)
    scaled = events.scale_noise(unit, factor)
    assert 1.9 < epsilon_of(scaled, DELTA) <= 2.0
    assert epsilon_of_two(scaled, DELTA) > 3.0
    assert events.event_from_json(events.event_to_json(unit)) == unit


def test_noise_far_too_small_is_infinite_not_a_crash():
    assert pld_epsilon(events.repeat(OneShotTopKDpEvent(1e-3, 2), 70), DELTA) == math.inf
    assert spend(OneShotTopKDpEvent(0.0, 2), DELTA)["pld"] == math.inf


@pytest.mark.parametrize("bad", [{"noise_multiplier": -1.0}, {"picks": 0}, {"picks": 1.5}])
def test_bad_events_are_refused(bad):
    with pytest.raises(PrivacyError):
        OneShotTopKDpEvent(**{"noise_multiplier": 1.0, "picks": 1, **bad})
