"""One ε for two reports: shares, contradictions, and what is never claimed."""

from __future__ import annotations

import math

import pytest

from discreet.errors import PrivacyError
from discreet.methods.lpgnn.budget import LocalBudget, narrowed, split_budget
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import LocalLevel

INF = math.inf


def shares(
    epsilon: float, x: float | None = None, y: float | None = None, protects: str = "both", reads: bool = True
) -> LocalBudget:
    privacy = narrowed(Privacy(LocalLevel(protects), epsilon), x, y)  # type: ignore[arg-type]
    return split_budget(privacy, x, y, reads_features=reads)


def test_shares() -> None:
    assert shares(2.0) == LocalBudget(1.0, 1.0)
    assert shares(2.0, x=0.5) == LocalBudget(0.5, 1.5)
    assert shares(2.0, y=0.5) == LocalBudget(1.5, 0.5)
    assert shares(2.0, 1.0, 1.0) == LocalBudget(1.0, 1.0)
    assert shares(2.0, y=INF) == LocalBudget(2.0, None)
    assert shares(2.0, 2.0, INF) == LocalBudget(2.0, None)
    assert shares(2.0, x=INF) == LocalBudget(None, 2.0)
    assert shares(2.0, protects="features") == LocalBudget(2.0, None)
    assert shares(2.0, protects="labels") == LocalBudget(None, 2.0)
    assert shares(2.0, reads=False) == LocalBudget(None, 2.0)
    assert shares(2.0, protects="features", reads=False) == LocalBudget(None, None)


@pytest.mark.parametrize("x", [0.01, 0.1, 0.3, 0.7, 1 / 3, 1.1])
@pytest.mark.parametrize("total", [1.2, 2.0, 3.3])
def test_the_sum_never_exceeds_the_total_in_floating_point(x: float, total: float) -> None:
    found = shares(total, x=x)
    assert found.features is not None
    assert found.labels is not None
    assert found.features + found.labels <= total
    assert found.features + found.labels == pytest.approx(total)


@pytest.mark.parametrize(
    ("epsilon", "x", "y", "protects", "reads", "words"),
    [
        (2.0, 1.0, 2.0, "both", True, "the total must be their sum"),
        (2.0, 2.0, None, "both", True, "make it up together"),
        (2.0, None, 3.0, "both", True, "make it up together"),
        (2.0, INF, INF, "both", True, "level none"),
        (2.0, 1.0, INF, "both", True, "epsilon_x is 1"),
        (2.0, INF, 1.0, "both", True, "epsilon_y is 1"),
        (2.0, 1.0, 1.0, "features", True, "epsilon_x is 1"),
        (2.0, None, 1.0, "features", True, "epsilon_y is 1"),
        (2.0, INF, None, "features", True, "contradicts"),
        (2.0, None, INF, "labels", True, "contradicts"),
        (2.0, 1.0, None, "both", False, "no feature is read"),
    ],
)
def test_contradictions_are_said(
    epsilon: float, x: float | None, y: float | None, protects: str, reads: bool, words: str
) -> None:
    with pytest.raises(PrivacyError, match=words):
        shares(epsilon, x, y, protects, reads)


def test_an_infinite_part_leaves_the_level() -> None:
    assert narrowed(Privacy(LocalLevel(), 2.0), None, INF).level == LocalLevel("features")
    assert narrowed(Privacy(LocalLevel(), 2.0), INF, None).level == LocalLevel("labels")
    assert narrowed(Privacy.none(), INF, INF) == Privacy.none()
