"""Accountants: counts equal loops, a second way to every ε, and the traps of the library underneath."""

from __future__ import annotations

import math
from collections.abc import Callable

import attr
import numpy as np
import pytest
import scipy.fft
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.stats import binom

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.accountants import (
    PLD_INTERVAL,
    RDP_ORDERS,
    epsilon_of,
    exact_epsilon,
    pld_epsilon,
    pld_without_allowance,
    rdp_epsilon,
    spend,
)
from discreet.privacy.events.black_box import pure_curve
from discreet.privacy.events.gaussian import gaussian_mu
from discreet.privacy.events.group_sampling import GroupFixedSampledGaussianDpEvent, GroupSampledGaussianDpEvent
from discreet.privacy.events.top_k import _one_pick

DELTA = 1e-5
EVENTS = {
    "gaussian": events.GaussianDpEvent(4.0),
    "laplace": events.LaplaceDpEvent(3.0),
    "poisson": events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(1.5)),
    "randomized response": events.RandomizedResponseDpEvent(0.5, 3),
    "black box": events.ApproximateDpEvent(0.3, 1e-8),
    "zcdp": events.ZCDpEvent(0.05),
    "group": GroupSampledGaussianDpEvent(6.0, 0.1, 3, "replace"),
    "group fixed": GroupFixedSampledGaussianDpEvent(8.0, 1000, 100, 3, "replace"),
}


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("account", [exact_epsilon, pld_epsilon, rdp_epsilon])
def test_count_equals_loop(name: str, account: object) -> None:
    event = EVENTS[name]
    counted = account(events.repeat(event, 5), DELTA)  # type: ignore[operator]
    looped = account(events.compose([event] * 5), DELTA)  # type: ignore[operator]
    once = account(event, DELTA)  # type: ignore[operator]
    assert (counted is None) == (looped is None)
    if counted is not None:
        assert counted == pytest.approx(looped, rel=2e-3, abs=1e-3)
        assert counted > once


@pytest.mark.parametrize("name", EVENTS)
def test_some_accountant_knows_every_event(name: str) -> None:
    assert spend(EVENTS[name], DELTA)


def test_exact_and_pld_agree_and_rdp_is_above() -> None:
    event = events.compose([events.repeat(events.GaussianDpEvent(5.0), 3), events.GaussianDpEvent(2.0)])
    bounds = spend(event, DELTA)
    assert bounds["pld"] == pytest.approx(bounds["exact"], rel=1e-4)
    assert bounds["rdp"] > bounds["exact"]
    assert epsilon_of(event, DELTA) == bounds["exact"]


def test_randomized_response_trap() -> None:
    """dp_accounting's PLD accountant drops the count of this event; ours composes it, checked by enumeration."""
    event = events.RandomizedResponseDpEvent(0.5, 2)  # keep with 3/4, flip with 1/4
    theirs = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(events.repeat(event, 20), 1).get_epsilon(0.0)
    assert theirs == pytest.approx(math.log(3), rel=1e-3)  # the trap: 20 runs cost as much as one
    assert pld_epsilon(events.repeat(event, 20), 1e-12) == pytest.approx(20 * math.log(3), rel=1e-3)
    kept = np.arange(21)
    loss = (2 * kept - 20) * math.log(3)
    for delta in (0.3, 0.05, 1e-3):
        found = pld_epsilon(events.repeat(event, 20), delta)
        assert found is not None
        spent = np.sum(binom.pmf(kept, 20, 0.75) * np.maximum(0, 1 - np.exp(found - loss)))
        less = np.sum(binom.pmf(kept, 20, 0.75) * np.maximum(0, 1 - np.exp(found - 0.01 - loss)))
        assert spent <= delta < less


def test_replace_one_trap() -> None:
    """The two accountants underneath disagree on what replacing doubles, so we never ask them under it."""
    event = events.repeat(events.GaussianDpEvent(2.0), 3)
    pld = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(event).get_epsilon(DELTA)
    rdp = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE).compose(event).get_epsilon(DELTA)
    assert pld > 1.9 * rdp
    assert exact_epsilon(event, DELTA) == pytest.approx(spend(event, DELTA)["pld"], rel=1e-4)


def test_black_box_adds_its_delta() -> None:
    event = events.ApproximateDpEvent(1.0, 1e-6)
    assert pld_epsilon(event, DELTA) == pytest.approx(1.0, rel=1e-3)
    assert pld_epsilon(event, 1e-7) == math.inf
    assert rdp_epsilon(event, 1e-7) == math.inf


@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 1e-6, 1e-4])
def test_the_divergence_of_a_small_pure_epsilon_does_not_round_away(epsilon: float) -> None:
    """Near zero it is αε²/2, a number of which differences of logarithms leave nothing."""
    low = RDP_ORDERS < 50
    assert pure_curve(epsilon)[low] == pytest.approx(RDP_ORDERS[low] * epsilon**2 / 2, rel=1e-4)
    event = events.RandomizedResponseDpEvent(1 - math.tanh(epsilon / 2), 2)
    assert events.rdp_curve(event)[low] == pytest.approx(RDP_ORDERS[low] * epsilon**2 / 2, rel=1e-3)


def test_the_divergence_of_a_pure_epsilon_never_exceeds_it() -> None:
    for epsilon in (0.0, 1.0, 30.0, 700.0, math.inf):
        curve = pure_curve(epsilon)
        assert (curve <= epsilon).all()
        assert (curve[1:] >= curve[:-1] * (1 - 1e-12)).all()
        assert curve[-1] == pytest.approx(epsilon, rel=1e-3)


def test_no_noise_is_infinite() -> None:
    for event in (
        events.NonPrivateDpEvent(),
        events.GaussianDpEvent(0.0),
        events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(0.0)),
    ):
        assert epsilon_of(event, DELTA) == math.inf


def test_several_events_that_lose_everything() -> None:
    """Next to no noise, at the largest budgets: each is infinite to distributions, and so are all of them together."""
    loud = events.GroupSampledGaussianDpEvent(0.01, 0.5, 2, "null")
    three = events.compose([loud, events.repeat(loud, 5), events.LaplaceDpEvent(1.0), attr.evolve(loud, group_size=3)])
    assert pld_epsilon(three, DELTA) == math.inf
    assert spend(three, DELTA)["rdp"] > 1000


def test_nothing_costs_nothing() -> None:
    assert epsilon_of(events.compose([]), DELTA) == 0.0


def test_unknown_combination_is_refused() -> None:
    mixed = events.compose([events.ZCDpEvent(0.1), events.PoissonSampledDpEvent(0.1, events.LaplaceDpEvent(1.0))])
    with pytest.raises(PrivacyError, match="no accountant"):
        epsilon_of(mixed, DELTA)


@pytest.mark.parametrize("name", EVENTS)
def test_json_round_trip(name: str) -> None:
    event = events.compose([events.repeat(EVENTS[name], 3), events.GaussianDpEvent(1.0)])
    assert events.event_from_json(events.event_to_json(event)) == event


@pytest.mark.parametrize("data", [{"kind": "os.system"}, {"kind": "Gaussian"}, {"kind": "Gaussian", "x": 1}, 3])
def test_json_admits_known_events_only(data: object) -> None:
    with pytest.raises(PrivacyError):
        events.event_from_json(data)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EVENTS)
def test_more_noise_never_costs_more(name: str) -> None:
    event = EVENTS[name]
    assert epsilon_of(events.scale_noise(event, 2.0), DELTA) <= epsilon_of(event, DELTA) + 1e-9


def test_basic_composition_is_exact_without_delta() -> None:
    """Pure black boxes add up, at δ = 0 too, where nothing else is exact."""
    pair = events.compose([events.ApproximateDpEvent(1.0, 0.0), events.ApproximateDpEvent(0.3, 0.0)])
    assert epsilon_of(pair, 0.0) == 1.3
    assert "pld" not in spend(pair, 0.0), "rounding of compositions needs some of delta"
    assert epsilon_of(events.repeat(pair, 3), 0.0) == pytest.approx(3.9)
    assert epsilon_of(events.ApproximateDpEvent(1.0, 1e-6), 1e-6) <= 1.0
    assert math.isinf(epsilon_of(events.GaussianDpEvent(1.0), 0.0))
    with_delta = events.compose([events.ApproximateDpEvent(1.0, 1e-6), events.ApproximateDpEvent(1.0, 0.0)])
    assert "basic" not in spend(with_delta, 1e-7)
    assert spend(with_delta, 1e-6)["basic"] == 2.0


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
@pytest.mark.parametrize("runs", [2, 100, 1000])
def test_compositions_of_distributions_are_pessimistic_at_any_delta(epsilon: float, runs: int) -> None:
    """Against the closed form of Gaussians, in both ways to compose them; where delta leaves no room, no answer."""
    one = events.GaussianDpEvent(math.sqrt(runs) / gaussian_mu(epsilon, 1e-6))
    sampled = events.PoissonSampledDpEvent(1.0, one)
    for delta in (1e-3, 1e-6, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-14):
        exact = exact_epsilon(events.repeat(one, runs), delta)
        found = pld_epsilon(events.repeat(sampled, runs), delta)
        assert exact is not None
        assert found is None or exact <= found <= exact + 0.3, delta
        assert found is not None or delta < 1e-10


def test_one_selection_of_many_picks_is_pessimistic_at_any_delta() -> None:
    """Each pick is a distribution: those of one run are no fewer than those of as many runs."""
    event = events.OneShotTopKDpEvent(18.404392957056128, 4000)
    delta_of = _delta_of_tilted(event)
    for delta in (1e-15, 3.793e-14, 1e-13, 3e-12, 1e-11):
        found = pld_epsilon(event, delta)
        assert found is None or delta_of(found) <= delta, delta
    assert pld_epsilon(event, 1e-11) is not None
    few = events.OneShotTopKDpEvent(18.404392957056128, 30)
    several = events.repeat(few, 4)
    assert pld_epsilon(several, DELTA) == pld_without_allowance(several, DELTA - 4e-14), "certificates have this figure"


def _delta_of_tilted(event: events.OneShotTopKDpEvent, tilt: float = 2.0) -> Callable[[float], float]:
    """δ(ε) of all picks, from a distribution times exp(tilt·loss), in which what matters to δ is not the tail."""
    one = _one_pick(2 / event.noise_multiplier, PLD_INTERVAL)._pmf_remove.to_dense_pmf()
    raised = one._probs * np.exp(tilt * np.arange(one.size) * PLD_INTERVAL)
    size = (one.size - 1) * event.picks + 1
    length = scipy.fft.next_fast_len(size, real=True)
    composed = scipy.fft.irfft(scipy.fft.rfft(raised / raised.sum(), length) ** event.picks, length)[:size]
    losses = (np.arange(size) + one._lower_loss * event.picks) * PLD_INTERVAL

    def delta_of(epsilon: float) -> float:
        first = int(np.searchsorted(losses, epsilon, side="right"))
        back = event.picks * math.log(raised.sum()) - tilt * np.arange(first, size) * PLD_INTERVAL
        return float(np.maximum(composed[first:], 0) @ (np.exp(back) * -np.expm1(epsilon - losses[first:])))

    return delta_of
