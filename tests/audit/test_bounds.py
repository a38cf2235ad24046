"""Lower bounds on ε: valid, near, and free of assumptions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.audit.bounds import epsilon_lower_bound
from discreet.errors import ParameterError
from discreet.privacy.events.gaussian import gaussian_mu

DELTA = 1e-3


RARELY = 1e-7
"""How often a bound that is asked for here is wrong: noise is fresh in make slow, and it runs often."""


def gaussian_bound(epsilon: float, runs: int, noise: float = 1.0):
    rng = np.random.default_rng()
    mu = gaussian_mu(epsilon, DELTA)
    one, two = mu + noise * rng.standard_normal(runs), noise * rng.standard_normal(runs)
    return epsilon_lower_bound({"x": one}, {"x": two}, DELTA, RARELY, gaussian=True)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_gaussian_is_below_epsilon_and_above_a_third(epsilon: float) -> None:
    found = gaussian_bound(epsilon, 200_000)
    assert epsilon / 3 < found.epsilon <= epsilon
    assert epsilon / 3 < found.epsilon_if_gaussian <= epsilon


@pytest.mark.chance
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_gaussian_that_is_known_to_be_one_is_met(epsilon: float) -> None:
    """How near depends on the threshold that the first half of the runs chose."""
    assert gaussian_bound(epsilon, 200_000).epsilon_if_gaussian > 0.75 * epsilon


def test_a_quarter_of_the_noise_is_too_little() -> None:
    """Half of it shows too, but for one audit in 25; a quarter in every one, far above ε."""
    assert gaussian_bound(1.0, 60_000, noise=0.25).epsilon > 1.0


def test_randomised_response_is_met() -> None:
    """A law of atoms, whose ε is attained by every test."""
    rng, epsilon, runs = np.random.default_rng(), 1.5, 100_000
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    one, two = ((rng.random(runs) < chance).astype(float) for chance in (keep, 1 - keep))
    found = epsilon_lower_bound({"bit": one}, {"bit": two}, 0.0, RARELY)
    assert 0.9 * epsilon < found.epsilon <= epsilon  # 0.96 in the mean, with a standard deviation of 0.007


def test_false_alarms_are_as_rare_as_stated() -> None:
    """At the very mechanism whose ε every test attains, a bound above ε is wrong; 100 audits at alpha = 0.2.

    With a true rate of 0.2 a count of 45 or more has probability 2e-8.
    """
    rng, epsilon, runs, alpha = np.random.default_rng(), 0.5, 400, 0.2
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    wrong = 0
    for _ in range(100):
        sides = [
            {"bit": (rng.random(runs) < chance).astype(float), "luck": rng.standard_normal(runs)}
            for chance in (keep, 1 - keep)
        ]
        wrong += epsilon_lower_bound(*sides, 0.0, alpha).epsilon > epsilon
    assert wrong < 45


def test_the_choice_among_statistics_costs_nothing_on_the_judged_half() -> None:
    """Thirty useless statistics beside nothing: no bound above zero but for alpha."""
    rng = np.random.default_rng()
    sides = [{str(i): rng.standard_normal(400) for i in range(30)} for _ in range(2)]
    assert epsilon_lower_bound(*sides, 0.0, RARELY).epsilon == 0


def test_what_was_learned_is_not_compared_where_it_was_learned() -> None:
    rng = np.random.default_rng()
    one, two = rng.standard_normal((2, 400))
    spoiled = [np.concatenate([np.full(80, value), side[80:]]) for value, side in ((9.0, one), (-9.0, two))]
    sides = [{"honest": 5 + one, "spoiled": spoiled[0]}, {"honest": -5 + two, "spoiled": spoiled[1]}]
    assert epsilon_lower_bound(*sides, 0.0, 1e-4, learned=80).statistic.startswith("honest")


def test_no_leak_gives_no_bound_and_a_certain_leak_what_the_runs_allow() -> None:
    nothing = np.zeros(200)
    assert epsilon_lower_bound({"x": nothing}, {"x": nothing}, DELTA, 1e-3).epsilon == 0
    found = epsilon_lower_bound({"x": nothing + 1}, {"x": nothing}, DELTA, 1e-3)
    assert 2 < found.epsilon < math.log(100)


def test_bad_samples_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least 40"):
        epsilon_lower_bound({"x": np.zeros(10)}, {"x": np.zeros(10)}, DELTA, 1e-3)
    with pytest.raises(ParameterError, match="same statistics"):
        epsilon_lower_bound({"x": np.zeros(100)}, {"y": np.zeros(100)}, DELTA, 1e-3)
