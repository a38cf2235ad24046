"""One run is enough for a valid bound: on mechanisms whose ε is known, and on methods with canary nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from discreet.audit.one_run import audit_one_run, guess, judge, one_run_lower_bound, one_run_p_value
from discreet.errors import ParameterError, UnsupportedError
from discreet.mechanisms.curator import Curator
from discreet.methods.base import NodeClassifier
from discreet.privacy.budget import Privacy
from discreet.privacy.events.gaussian import gaussian_mu
from discreet.privacy.levels import parse_level
from tests.contracts.cases import make


def test_the_p_value_by_hand() -> None:
    """Three guesses, all right, against fair coins; and with δ the largest of the differences by hand."""
    assert one_run_p_value(3, 3, 3, 0.0, 0.0) == pytest.approx(1 / 8)
    tail = {3: 1 / 8, 2: 1 / 2, 1: 7 / 8, 0: 1.0}
    gained = max((tail[3 - i] - tail[3]) / i for i in (1, 2, 3))
    assert one_run_p_value(3, 3, 3, 0.0, 0.01) == pytest.approx(1 / 8 + 2 * 3 * 0.01 * gained)
    assert one_run_p_value(10, 4, 0, 1.0, 0.1) == 1.0
    with pytest.raises(ParameterError):
        one_run_p_value(3, 4, 2, 1.0, 0.0)


def test_p_values_rise_with_epsilon_and_delta() -> None:
    grid = [one_run_p_value(200, 50, 45, epsilon, 1e-5) for epsilon in np.linspace(0, 5, 20)]
    assert (np.diff(grid) >= 0).all()
    assert one_run_p_value(200, 50, 45, 1.0, 1e-3) > one_run_p_value(200, 50, 45, 1.0, 0.0)


def test_guesses_are_the_extremes() -> None:
    assert guess(np.array([3.0, 1.0, 2.0, 5.0, 4.0]), 2).tolist() == [0, -1, 0, 1, 0]


def told_by_randomised_response(epsilon: float, audits: int) -> list[float]:
    """What audits at 5 % find, each from 5000 coins that randomised response told."""
    rng, found = np.random.default_rng(), []
    keep = 1 / (1 + math.exp(-epsilon))
    for _ in range(audits):
        present = rng.random(5000) < 0.5
        told = np.where(rng.random(5000) < keep, present, ~present)
        found.append(judge(told + 1e-6 * rng.random(5000), present, 0.0, 0.05).epsilon)
    return found


def test_randomised_response_valid() -> None:
    """In 40 audits no more than a few above ε."""
    wrong = sum(found > 2.0 for found in told_by_randomised_response(2.0, 40))
    assert wrong <= 11  # Bin(40, 0.05) exceeds this with a probability below 1e-6


@pytest.mark.chance
def test_randomised_response_near() -> None:
    assert min(told_by_randomised_response(2.0, 20)) > 0.75 * 2.0


def test_gaussian_valid_and_not_trivial() -> None:
    rng, epsilon, delta = np.random.default_rng(), 4.0, 1e-5
    present = rng.random(20_000) < 0.5
    scores = gaussian_mu(epsilon, delta) * present + rng.standard_normal(20_000)
    assert 0.2 * epsilon < judge(scores, present, delta, 1e-3).epsilon <= epsilon


def test_no_leak_gives_nothing() -> None:
    rng = np.random.default_rng()
    assert judge(rng.standard_normal(500), rng.random(500) < 0.5, 1e-5, 1e-7).epsilon == 0
    assert one_run_lower_bound(100, 20, 10, 0.0, 0.01) == 0


def with_canaries(name: str) -> NodeClassifier:
    privacy = Privacy(parse_level("node:owned,max_degree=1"), 0.2, 1e-6)
    settings = {"batch_size": None, "steps": 5, "hidden": 16, "insecure_noise_seed": None, "privacy": privacy}
    return make(name, "node:owned,max_degree=1").set_params(**settings)


@pytest.mark.parametrize("name", ["dp-mlp", "dp-gnn"])
def test_methods_with_canaries_stay_below_epsilon(name: str) -> None:
    assert audit_one_run(with_canaries(name), canaries=150, others=20, alpha=1e-6).epsilon <= 0.2


@pytest.mark.chance
@pytest.mark.parametrize("name", ["dp-mlp", "dp-gnn"])
def test_methods_with_hardly_any_noise_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Curator._answer_step

    def quiet(self: Curator, stage: Any, run: int, batch: Any, value: np.ndarray, terms: Any) -> np.ndarray:
        return value + (real(self, stage, run, batch, value, terms) - value) / 1000

    monkeypatch.setattr(Curator, "_answer_step", quiet)
    assert audit_one_run(with_canaries(name), canaries=400, others=20).epsilon > 0.2


def test_needs_nodes_that_can_be_null() -> None:
    with pytest.raises(UnsupportedError, match="null"):
        audit_one_run(make("gap", "edge"))
