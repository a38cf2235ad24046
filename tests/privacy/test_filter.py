"""The Rényi filter holds against runs that are chosen by what was seen, and is not much tighter than it must be."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.filter import Cost, RenyiFilter, together

Choose = Callable[[tuple[int, ...]], float]


def coin(epsilon: float) -> events.RandomizedResponseDpEvent:
    """Randomised response on one bit: the worst of all mechanisms that are ε-private."""
    return events.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2)


def hockey_stick(limit: RenyiFilter, choose: Choose, most: int) -> float:
    """The exact δ, at the limit's ε, of all coins that the filter lets through, each chosen by the outputs so far."""

    def walk(seen: tuple[int, ...], spent: Cost, p: float, q: float) -> float:
        epsilon = choose(seen)
        cost = limit.cost(coin(epsilon), epsilon, 0.0)
        if len(seen) == most or not limit.admits(spent, cost):
            return max(0.0, p - math.exp(limit.epsilon) * q)
        high, low = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
        after = together([spent, cost])
        return walk((*seen, 1), after, p * high, q * low) + walk((*seen, 0), after, p * low, q * high)

    return walk((), Cost(0.0, 0.0), 1.0, 1.0)


STRATEGIES: dict[str, Choose] = {
    "always the same": lambda seen: 0.5,
    "more after a hit": lambda seen: 0.9 if seen and seen[-1] else 0.35,
    "less after a hit": lambda seen: 0.35 if seen and seen[-1] else 0.9,
    "press the advantage": lambda seen: 1.2 if sum(seen) > len(seen) / 2 else 0.2,
    "one large step, then small ones": lambda seen: 0.3 if seen else 1.5,
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-2), (2.0, 1e-2), (2.0, 1e-3)])
def test_it_holds_against_every_strategy(strategy: str, epsilon: float, delta: float) -> None:
    limit = RenyiFilter(epsilon, delta)
    assert hockey_stick(limit, STRATEGIES[strategy], most=12) <= delta


def test_a_budget_twice_as_large_would_not_hold() -> None:
    """The test above can fail: the filter is within a factor of two of what is true."""
    limit = RenyiFilter(1.0, 1e-2)
    object.__setattr__(limit, "budget", 2 * limit.budget)
    found = [hockey_stick(limit, choose, most=14) for choose in STRATEGIES.values()]
    assert max(found) > 1e-2


def test_budget_is_what_gaussian_runs_may_use() -> None:
    limit = RenyiFilter(4.0, 1e-5)
    largest = math.sqrt(2 * limit.budget / limit.order)
    event = events.GaussianDpEvent(1 / largest)
    assert limit.cost(event, math.inf, 1e-5).divergence == pytest.approx(limit.budget)
    assert epsilon_of(event, 1e-5) == pytest.approx(limit.room(Cost(0.0, 0.0)))
    assert 3.2 < limit.room(Cost(0.0, 0.0)) < 4
    assert limit.room(Cost(limit.budget, 0.0)) == 0


def test_many_small_runs_cost_less_than_their_sum() -> None:
    limit, event = RenyiFilter(4.0, 1e-5), events.GaussianDpEvent(20.0)
    alone = epsilon_of(event, 1e-5)
    runs = int(limit.budget / limit.cost(event, alone, 1e-5).divergence)
    assert runs * alone > 3 * limit.epsilon
    assert epsilon_of(events.repeat(event, runs), 1e-5) <= limit.epsilon


def test_runs_with_a_delta_of_their_own() -> None:
    limit = RenyiFilter(4.0, 1e-5)
    box = limit.cost(events.ApproximateDpEvent(0.1, 2e-6), 0.1, 2e-6)
    assert box.aside == 2e-6
    assert limit.admits(together([box]), box)
    assert not limit.admits(together([box, box]), box)  # 6e-6 is more than half of the limit's delta


def test_runs_of_unknown_divergence_are_black_boxes() -> None:
    limit = RenyiFilter(4.0, 1e-5)
    sampled = events.compose([events.SampledNodesDpEvent(0.1), events.GaussianDpEvent(1.0)])
    assert limit.cost(sampled, 0.5, 1e-6) == limit.cost(events.ApproximateDpEvent(0.5, 1e-6), 0.5, 1e-6)
    assert limit.cost(sampled, math.inf, 1e-6).divergence == math.inf
    assert limit.cost(events.NonPrivateDpEvent(), math.inf, 0.0).divergence == math.inf


def test_without_delta_it_adds_epsilons() -> None:
    limit = RenyiFilter(3.0, 0.0)
    cost = limit.cost(coin(1.0), 1.0, 0.0)
    assert limit.admits(together([cost, cost]), cost)
    assert not limit.admits(together([cost, cost, cost]), cost)
    assert not limit.admits(Cost(0.0, 0.0), Cost(1.0, 1e-9))
    assert limit.room(together([cost])) == 2.0


def test_limits_that_mean_nothing_are_refused() -> None:
    for epsilon, delta in [(0.0, 1e-5), (-1.0, 1e-5), (math.inf, 1e-5), (math.nan, 1e-5), (1.0, 1.0)]:
        with pytest.raises(PrivacyError, match="limit"):
            RenyiFilter(epsilon, delta)
    with pytest.raises(PrivacyError, match="room"):
        RenyiFilter(1e-4, 1e-9)
