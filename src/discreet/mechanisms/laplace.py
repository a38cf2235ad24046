"""Laplace noise on a grid, exact, with every guarantee of the continuous Laplace mechanism.

**Rounded Laplace.** Draw y from the Laplace law of scale s steps and take the nearest whole number x. With
h = 1/(2s), P(x = 0) = 1 − exp(−h), and for k ≥ 1 P(x = k) = P(x = −k) = ½·exp(−(2k − 1)h) − ½·exp(−(2k + 1)h)
= ½·exp(−h)·exp(−2h(k − 1))·(1 − exp(−2h)): a coin of exp(−h) for "not zero", a fair sign, and one more than a geometric
number of scale s. So it is drawn without any real number, from exact coins.

*Why not the discrete Laplace law.* It has the same pure ε and no more: at δ > 0 two whole numbers that are a step apart
are told apart better by it than by the continuous law (total variation tanh h against 1 − exp(−h)), so an accountant of
the continuous law would certify too little. Rounding is post-processing: where values are whole numbers c,
round(c + y) = c + round(y), hence values plus this noise are a function of the continuous mechanism's answer, and
**every** guarantee of that holds, composed as one likes. ∎

Noise is drawn on a grid of 2⁻²⁰, on which whole numbers lie, so that rounding costs nothing that could be noticed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Array, FloatArray, IntArray
from discreet.mechanisms.bits import LARGEST_SCALE, BitStream, Randomness, Size, bits_of, exp_bounds
from discreet.mechanisms.gaussian import FINENESS, Grid, floor_log2

if TYPE_CHECKING:  # devices that make reports of themselves know no plans
    from discreet.privacy.plan import Stage

GRID = 1 << 20
"""Steps to a unit."""


def rounded_laplace(scale: Fraction, size: Size, bits: BitStream) -> IntArray:
    """Independent whole numbers with the law of a rounded Laplace number of ``scale`` steps (2⁻¹⁰ to 2⁴⁴), exactly."""
    count = math.prod(size) if isinstance(size, tuple) else size
    away = bits.coins_within(partial(exp_bounds, 1 / (2 * scale)), count)
    sign = 1 - 2 * (bits.words(count) & np.uint64(1)).astype(np.int64)
    return np.asarray(away * sign * (1 + bits.geometric(scale, count))).reshape(size)


def release(value: Array, stage: Stage, randomness: Randomness) -> FloatArray:
    """``value`` plus fresh noise on every number.

    Guarantee: where values are whole numbers below 2³², and those of neighbours within ``stage.sensitivity`` in ℓ1, the
    result has the privacy of ``stage.event``. (What is not a whole number is rounded to one first.)
    """
    if stage.noise_std == 0:
        return np.array(value, dtype=np.float64)
    steps = np.rint(value).astype(np.int64) * GRID
    noise = rounded_laplace(Fraction(stage.noise_std) * GRID, value.shape, bits_of(randomness))
    return np.asarray((steps + noise) / GRID)


def release_real(values: Array, sensitivity: float | Fraction, scale: float | Fraction, bits: BitStream) -> FloatArray:
    """Real numbers on a grid plus exact noise of this scale on every one.

    Guarantee: where each number moves by at most Δ = ``sensitivity``, each answer has every guarantee of the continuous
    Laplace mechanism of multiplier scale/Δ, pure ε = Δ/scale among them; so together in ℓ1. *Proof.* With a public step
    g, the nearest whole numbers of steps are at most Δ/g + 1 apart; the noise has scale (scale/g)(1 + g/Δ) steps, as a
    rational, whose ratio to that is scale/Δ; and rounding is post-processing (see the module). ∎ g is the largest power
    of two that is at most Δ·2⁻²⁰, or larger where the noise would exceed what its sampler holds.
    """
    exponent = step_exponent(sensitivity, scale)
    step = Fraction(2) ** exponent
    noise = rounded_laplace(Fraction(scale) / step * (1 + step / Fraction(sensitivity)), values.shape, bits)
    return Grid(values.size, exponent, 0.0).add(values, noise)


def step_exponent(sensitivity: float | Fraction, scale: float | Fraction) -> int:
    """The binary logarithm of the public step of :func:`release_real`."""
    needed = floor_log2(Fraction(scale) / LARGEST_SCALE) + 2
    return max(floor_log2(Fraction(sensitivity)) - FINENESS, needed)
