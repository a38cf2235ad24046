"""Laplace noise on whole numbers: the law on paper, and in draws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare, laplace

from discreet.mechanisms.bits import BitStream
from discreet.mechanisms.laplace import rounded_laplace


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.5])
def test_law_is_that_of_a_rounded_laplace_number(scale: float) -> None:
    drawn = rounded_laplace(Fraction(scale), 40_000, BitStream(bytes(32)))
    ends = np.arange(-4, 5) + 0.5
    expected = np.diff(laplace.cdf(np.concatenate([[-math.inf], ends, [math.inf]]), scale=scale))
    seen = np.array([((drawn > a) & (drawn < b)).sum() for a, b in zip([-1e9, *ends], [*ends, 1e9], strict=True)])
    few = expected * len(drawn) < 5
    seen, expected = (np.append(part[~few], part[few].sum()) for part in (seen, expected))
    assert chisquare(seen[expected > 0], expected[expected > 0] * len(drawn)).pvalue > 1e-4


def test_the_discrete_law_would_tell_more() -> None:
    """Why rounding: at δ > 0 the discrete law loses more than the continuous law that is accounted for."""
    h = 0.5
    assert math.tanh(h) > 1 - math.exp(-h)


def test_shape_is_kept() -> None:
    assert rounded_laplace(Fraction(2), (3, 4), BitStream(bytes(32))).shape == (3, 4)
