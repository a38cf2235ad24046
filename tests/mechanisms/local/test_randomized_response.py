"""Randomised response: exact privacy by enumeration, one law for one label and many."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.mechanisms.local.randomized_response import RandomizedResponse


def probability(response: RandomizedResponse, report: int, label: int) -> float:
    """The exact probability of a report, given the label."""
    if label < 0:
        return 1 / response.num_classes
    return response.keep if report == label else response.other


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_largest_log_ratio_is_epsilon(epsilon: float, classes: int) -> None:
    """Over all labels, no label at all included."""
    response = RandomizedResponse(epsilon, classes)
    table = np.array([[probability(response, r, y) for r in range(classes)] for y in range(-1, classes)])
    assert table.sum(axis=1) == pytest.approx(1)
    assert np.log(table.max(axis=0) / table.min(axis=0)).max() == pytest.approx(epsilon, rel=1e-12)
    assert np.array_equal(table[1:], response.confusion())


@pytest.mark.parametrize("classes", [2, 3, 40, 999, 10_000])
@pytest.mark.parametrize("epsilon", [1e-9, 3e-9, 1e-7, 1e-3, 1.0, 30.0])
def test_the_coin_that_is_tossed_keeps_epsilon(epsilon: float, classes: int) -> None:
    """In exact arithmetic: what a double says of the lie, for truth, lie and no label at all."""
    lie = Fraction(RandomizedResponse(epsilon, classes).lie)
    chances = (1 - lie, lie / (classes - 1), Fraction(1, classes))
    # e^ε from below by its series, whose terms are all positive
    term, least = Fraction(1), Fraction(1)
    for n in range(1, 200 if epsilon > 1 else 20):
        term *= Fraction(epsilon) / n
        least += term
    assert max(chances) / min(chances) <= least


@pytest.mark.parametrize("classes", [2, 3, 999, 10_000])
def test_a_lie_is_never_likelier_than_the_truth(classes: int) -> None:
    response = RandomizedResponse(1e-9, classes)
    object.__setattr__(response, "epsilon", 1e-17)  # below what is allowed: the cap does not lean on the floor
    assert Fraction(response.lie) <= Fraction(classes - 1, classes)


@pytest.mark.parametrize(("epsilon", "classes"), [(1e-10, 2), (1e-300, 2), (0.0, 2), (1.0, 10_001), (1.0, 1)])
def test_settings_that_doubles_cannot_tell_apart_are_refused(epsilon: float, classes: int) -> None:
    with pytest.raises(ParameterError):
        RandomizedResponse(epsilon, classes)


def test_one_label_and_many_have_that_law() -> None:
    response = RandomizedResponse(1.0, 4)
    rng = np.random.default_rng(0)
    for label in range(-1, 4):
        exact = np.array([probability(response, report, label) for report in range(4)])
        for draws in (
            np.array([response.encode(label, rng) for _ in range(4_000)]),
            response.encode_rows(np.full(40_000, label), rng),
        ):
            frequency = np.bincount(draws, minlength=4) / len(draws)
            assert (np.abs(frequency - exact) < 5 * np.sqrt(exact * (1 - exact) / len(draws))).all()


def test_one_label_changes_one_report() -> None:
    response = RandomizedResponse(0.5, 5)
    one = np.random.default_rng(0).integers(-1, 5, 50)
    for new in range(-1, 5):
        two = one.copy()
        two[3] = new
        a, b = (response.encode_rows(labels, np.random.default_rng(1)) for labels in (one, two))
        assert set(np.flatnonzero(a != b)) <= {3}


@pytest.mark.parametrize("label", [4, -2, 1.5])
def test_a_label_that_no_class_has(label: float) -> None:
    with pytest.raises(ParameterError, match="no class"):
        RandomizedResponse(1.0, 4).encode_rows(np.array([0, label]), np.random.default_rng(0))


@pytest.mark.parametrize(("epsilon", "classes"), [(0.0, 3), (-1.0, 3), (math.inf, 3), (31.0, 3), (1.0, 1)])
def test_nonsense_is_refused(epsilon: float, classes: int) -> None:
    with pytest.raises(ParameterError):
        RandomizedResponse(epsilon, classes)
