"""Checks of noise: how odd something is, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import pearsonr

from discreet.audit.noise_checks import _worst_correlation, _worst_overlap


def coins(*heads: tuple[int, ...]) -> np.ndarray:
    """A hundred runs of coins; each fell heads in the runs named."""
    found = np.zeros((100, len(heads)), dtype=np.bool_)
    for column, runs in enumerate(heads):
        found[list(runs), column] = True
    return found


def test_rare_coins_that_fall_alike_twice_are_no_fault() -> None:
    """Three heads each, two of them together: (3·97 + 1)/C(100, 3), where a correlation of 0.66 would say 1e-14."""
    masks = coins((0, 1, 2), (0, 1, 50))
    found = _worst_overlap("independent coins", masks, masks, skip_own=True)
    assert found.p_value == pytest.approx(2 * (3 * 97 + 1) / math.comb(100, 3))


def test_coins_that_never_fell_say_nothing_and_the_same_coin_twice_says_all() -> None:
    masks = coins((), (), tuple(range(30)))
    assert _worst_overlap("independent coins", masks, masks, skip_own=True).p_value == 1.0
    found = _worst_overlap("fresh batches", masks, masks, skip_own=False)
    assert found.p_value == pytest.approx(9 * 2 / math.comb(100, 30))
    assert _worst_overlap("independent coins", masks[:, :1], masks[:, :1], skip_own=True).p_value == 1.0


def test_a_correlation_of_normal_scores_has_students_law() -> None:
    """As SciPy has it, for few runs."""
    scores = np.random.default_rng(0).standard_normal((34, 2))
    found = _worst_correlation("independent entries and stages", scores, scores, skip_own=True)
    assert found.p_value == pytest.approx(pearsonr(*scores.T).pvalue)
