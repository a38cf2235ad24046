"""What the low bits of an answer tell of the value under the noise: all of it with floating-point noise, nothing here.

``value + float normal`` lies on the grid of doubles around the *value* (Mironov 2012): where the value is 1, every
answer below ½ is a multiple of 2⁻⁵³; where it is 0, about half of those answers are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from discreet.mechanisms import gaussian
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.local.encoders import feature_encoder
from tests.mechanisms.draws import given_stage
from tests.mechanisms.float_attack import can_be_drawn, ruled_out, verdict

ENTRIES, RELEASES = 100, 50


def certainly_zero(answer: np.ndarray) -> bool:
    """The attack: an answer that no value of 1 can lead to."""
    scaled = answer[np.abs(answer) < 0.5].astype(np.float64) * 2.0**53
    return bool((scaled != np.rint(scaled)).any())


def in_floating_point(value: np.ndarray) -> np.ndarray:
    """How noise must not be added; kept here alone, to show that the attack works."""
    return np.asarray(value + np.random.default_rng().standard_normal(value.shape))


def by_the_mechanism(value: np.ndarray) -> np.ndarray:
    stage = given_stage("s", value.shape, sensitivity=1.0, multiplier=1.0)
    return np.asarray(gaussian.release(value, stage, NoiseSource().stream("s")))


def by_a_report(mechanism: str) -> Callable[[np.ndarray], np.ndarray]:
    def release(value: np.ndarray) -> np.ndarray:
        encoder = feature_encoder(mechanism, width=len(value), feature_range=(0, 1), epsilon=100.0, delta=1e-5)
        noisy = encoder._noisy(value, NoiseSource().stream("report"))  # before it is cut to single precision
        return np.asarray(noisy)

    return release


def test_the_attack_is_certain_of_floating_point_noise() -> None:
    zeros, ones = np.zeros(ENTRIES), np.ones(ENTRIES)
    assert all(certainly_zero(in_floating_point(zeros)) for _ in range(RELEASES))
    assert not any(certainly_zero(in_floating_point(ones)) for _ in range(RELEASES))


@pytest.mark.parametrize(
    "release",
    [by_the_mechanism, by_a_report("laplace"), by_a_report("gaussian")],
    ids=["gaussian", "laplace", "report"],
)
def test_the_attack_learns_nothing_from_a_release(release: Callable[[np.ndarray], np.ndarray]) -> None:
    for value in (np.zeros(ENTRIES), np.ones(ENTRIES), np.full(ENTRIES, 1 / 3), np.full(ENTRIES, math.pi / 4)):
        assert not any(certainly_zero(release(value)) for _ in range(RELEASES))


# -------------------------------------------------------------------- the strong form: certain in both directions

HALVES = (-0.5, 0.5)
MANY, FEW_RELEASES = 3000, 15


def test_numbers_that_numpy_draws_are_known_and_few() -> None:
    drawn = np.random.default_rng().standard_normal(20_000)
    assert can_be_drawn(drawn).all()
    assert can_be_drawn(np.random.default_rng().uniform(0, 1e-3, 2000)).mean() < 0.3


def test_the_strong_attack_is_certain_of_floating_point_noise_whatever_the_value() -> None:
    for value in HALVES:
        assert all(verdict(in_floating_point(np.full(ENTRIES, value)), HALVES) == value for _ in range(RELEASES))


@pytest.mark.parametrize(
    "release",
    [by_the_mechanism, by_a_report("laplace"), by_a_report("gaussian")],
    ids=["gaussian", "laplace", "report"],
)
def test_the_strong_attack_knows_nothing_of_a_release(release: Callable[[np.ndarray], np.ndarray]) -> None:
    for value in (0.5, 1.0):  # reports have a range from 0 to 1
        assert all(verdict(release(np.full(ENTRIES, value)), HALVES) is None for _ in range(RELEASES))


def test_inverting_the_ziggurat_alone_tells_floating_point_noise_and_no_release() -> None:
    """That no number of NumPy's gives an answer rules 0 out where the noise is NumPy's. A release lies on its grid, so
    that 0 is "ruled out" whether it is true or not.
    """
    zeros, ones = np.zeros(MANY), np.ones(MANY)

    def says_no(release: Callable[[np.ndarray], np.ndarray], values: np.ndarray) -> int:
        answers = [release(values) for _ in range(FEW_RELEASES)]
        return sum(bool(ruled_out(found[np.abs(found) < 0.01], 0.0).any()) for found in answers)

    assert says_no(in_floating_point, zeros) == 0
    assert says_no(in_floating_point, ones) >= FEW_RELEASES - 3
    assert says_no(by_the_mechanism, zeros) >= FEW_RELEASES - 3
    assert says_no(by_the_mechanism, ones) >= FEW_RELEASES - 3


@pytest.mark.parametrize("value", [0.0, 1.0, 1 / 3, 1e-17, 0.9999999999999999])
def test_every_answer_lies_on_the_public_grid(value: float) -> None:
    """The same multiples of one public step can come out, whatever went in."""
    stage = given_stage("s", (ENTRIES,), sensitivity=1.0, multiplier=1.0)
    answer = gaussian.release(np.full(ENTRIES, value), stage, NoiseSource().stream("s"))
    steps = answer / gaussian.grid_of(stage).step
    assert np.array_equal(steps, np.rint(steps))
    assert len(set((steps % 1024).tolist())) > ENTRIES / 2  # and the lowest bits are drawn, not left over
