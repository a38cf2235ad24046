"""The Gaussian mechanism: values on a public grid, and noise on it that keeps what is proved of continuous noise.

Values are rounded to multiples of a public step g, and the noise is a whole number of steps with P(x) ∝ exp(−x²/2σ²),
exactly (:mod:`discreet.mechanisms.discrete_gaussian`). Whatever the values, every multiple of g can come out; no bit of
a result tells what it was made of, as the bits of ``value + float normal`` do.

**What rounding costs.** Each of d coordinates moves by at most g/2, so each of two neighbouring answers moves by at
most g√d/2 in ℓ2: answers within Δ of each other become whole numbers of steps within Δ′/g, Δ′ = Δ + g√d. Cutting them
off at a public range first brings no two further apart.

**Grid lemma.** Let s² + r² = σ² with σ ≥ r > 0, and c be an integer. Draw y from N(c, s²), round it to an integer z
with probability ∝ exp(−(z − y)²/2r²), and call what results P. With D(z) ∝ exp(−(z − c)²/2σ²) on the integers,
|ln P(z) − ln D(z)| ≤ η = ln((1 + e)/(1 − e)) for every z, where e = 2·Σ_{k≥1} exp(−2π²r²k²).

*Proof.* By Poisson summation Σ_z exp(−(z − y)²/2r²) = r√(2π)·(1 + 2·Σ_{k≥1} exp(−2π²r²k²)·cos 2πky): between 1 − e
and 1 + e times r√(2π), for every y. So P(z) = ∫ N(y; c, s²)·exp(−(z − y)²/2r²)/Σ dy is 1/(1 ± e) times the convolution
of the densities N(c, s²) and N(0, r²) at z, which is the density N(z; c, σ²). The same formula with σ ≥ r in place of r
says that D(z) is N(z; c, σ²) divided by 1 ± e, too. ∎

*What follows.* Take r = 2: η ≤ 2.1e-34 for each coordinate of each answer. A mechanism M that draws T answers of d
coordinates with this noise, whatever it does between them (batches, answers that choose the next question), gives
every outcome a probability within e^{±Tdη} of what M̃ gives it, which draws N(c, σ² − 4) and rounds at random. Rounding
at random is post-processing, so M̃ has every guarantee of the continuous Gaussian with s = √(σ² − 4) steps on integers
that lie within Δ′/g: one of multiplier z, if σ ≥ √((zΔ′/g)² + 4). If that is (ε, δ), then for every event
P_M ≤ e^{Tdη}·P_M̃ ≤ e^{Tdη}(e^ε·Q_M̃ + δ) ≤ e^{ε+2Tdη}·Q_M + e^{Tdη}·δ: **M is (ε + 2Tdη, e^{Tdη}·δ)-private.** ∎
For T·d ≤ 1e15 these are changes of less than 1e-18, in ε and relative in δ. :meth:`Grid.for_release` makes σ for
(1 + 2⁻⁵⁰)·z and rounds it up, which more than pays for that in compositions of Gaussians with ε from 1e-3 to 100 and δ
from 1e-20 on (tested); for other events it is below what an accountant in doubles can tell.

The discrete Gaussian *without* r has not got the (ε, δ) of the continuous one, and on coarse grids depends on the
direction in which an answer moves.

*Where batches are sampled*, Δ is the clip norm of one term, and an answer moves by at most iΔ + g√d ≤ iΔ′ where i ≥ 1
terms change. An event whose proof needs more than that bound, namely that a sum moves by the sum of the terms that
change, needs terms that lie on the grid before they are summed; then nothing is left to round here.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Array, FloatArray, IntArray
from discreet.errors import ParameterError, PlanViolationError, UnsupportedError
from discreet.mechanisms.bits import KEY_BYTES, BitStream, Randomness, bits_of
from discreet.mechanisms.discrete_gaussian import LARGEST_SIGMA, DiscreteGaussian
from discreet.ops.compiled import compiled
from discreet.workers import thread_count

if TYPE_CHECKING:
    from discreet.privacy.plan import Stage  # an owner's device draws noise without plans and their libraries

FINENESS = 20
"""Rounding costs at most 2⁻²⁰ of the sensitivity, and so of the noise."""
ROUNDING_WIDTH = 2
"""r of the lemma, in steps."""
MARGIN = Fraction(1, 1 << 50)
"""By which the multiplier is raised: more than the lemma's 2Tdη costs."""
MOST_STEPS = 1 << 62
"""Values are cut off there: half of what int64 holds."""
SENSITIVITIES = (2.0**-300, 2.0**300)
"""Within which steps, noise and their squares are doubles that neither vanish nor overflow."""
SMALLEST_MULTIPLIER = 2.0**-30
"""Below it noise is no noise, and the step of the grid would be the larger part."""
MOST_NOISE = 1 << 34
"""The largest multiplier times √size: beyond it 2⁴⁴ steps of noise leave too few for the values."""
PORTION = 1 << 18
"""Numbers whose noise one stream serves."""
_CHUNK = 1 << 15
"""Numbers that are noised at once, so that they stay in cache."""


@dataclass(frozen=True)
class Grid:
    """The step g = 2^``exponent`` of a release of ``size`` numbers, and σ of its noise in steps.

    Made of public facts alone, by :meth:`for_release`.
    """

    size: int
    exponent: int
    sigma_steps: float

    @classmethod
    def for_release(cls, sensitivity: float, multiplier: float, size: int, *, fineness: int = FINENESS) -> Grid:
        """The grid and noise for ``size`` numbers that move by at most Δ in ℓ2, with noise multiplier z.

        Guarantee: :meth:`release` has every guarantee of the continuous Gaussian mechanism of multiplier z, in the
        sense of the lemma above. g is the largest power of two that is at most Δ·2⁻ᶠ/√d, f = ``fineness``, so that
        Δ′ ≤ (1 + 2⁻ᶠ)Δ; it is doubled while σ would exceed 2⁴⁴ steps, which for f = 20 can happen for multipliers
        above 2²³/√d and costs at most 2⁻⁸ more noise. σ = √((zΔ′/g)² + 4), rounded up in rationals.
        (For z below 2⁻¹⁵ the 4 begins to be felt.)

        Δ from 2⁻³⁰⁰ to 2³⁰⁰, z from 2⁻³⁰ on and z√d up to 2³⁴; anything else is refused. No number at all (d = 0)
        counts as one.
        """
        _check(sensitivity, multiplier, size)
        d = max(size, 1)
        moved = Fraction(float(sensitivity))
        raised = Fraction(float(multiplier)) * (1 + MARGIN)
        exponent = floor_log2(moved**2 / (d << 2 * fineness)) // 2
        while (sigma := _sigma_steps(moved / Fraction(2) ** exponent, raised, d)) > LARGEST_SIGMA:
            exponent += 1
        return cls(size, exponent, sigma)

    @property
    def step(self) -> float:
        """g, a power of two, in the units of the values."""
        return math.ldexp(1.0, self.exponent)

    @property
    def noise_std(self) -> float:
        """σ in the units of the values: what the noise's standard deviation is, to 30 digits."""
        return math.ldexp(self.sigma_steps, self.exponent)

    @cached_property
    def sampler(self) -> DiscreteGaussian:
        """Of the noise in steps."""
        return DiscreteGaussian(self.sigma_steps)

    def fill(self, stream: BitStream, noise: IntArray) -> None:
        """Draw the noise of as many numbers, in steps, for those who draw it ahead."""
        self.sampler.fill(stream, noise)

    def snap(self, values: Array) -> IntArray:
        """The nearest whole numbers of steps, half to even, cut off at ±2⁶²; what is not a number counts as zero.

        Guarantee: scaling by a power of two, rounding to integers and cutting off are exact in doubles (what
        overflows is cut off, what underflows is nearest to zero), so each value moves by at most g/2 and no two move
        apart by more than that on either side. The clause on what is not a number keeps the code total; no
        sensitivity speaks of it.
        """
        with np.errstate(all="ignore"):  # a warning would tell of private values
            steps = np.rint(np.asarray(values, dtype=np.float64) * math.ldexp(1.0, -self.exponent))
        whole: IntArray = np.nan_to_num(np.clip(steps, -MOST_STEPS, MOST_STEPS), nan=0.0).astype(np.int64)
        return whole

    def add(self, values: Array, noise: IntArray) -> FloatArray:
        """g·(:meth:`snap` of the values + noise), noise in steps.

        Exact below 2⁵³ steps. Beyond, the whole number is rounded to a double, and a sum beyond int64 (with
        probability below exp(−2³⁴)) would wrap around: functions of the noisy whole number alone, which is
        post-processing.
        """
        given = np.ascontiguousarray(values, dtype=np.float64)
        noisy = np.empty(given.shape)
        scale = math.ldexp(1.0, -self.exponent)
        compiled(_add_on_grid)(given.reshape(-1), noise.reshape(-1), scale, self.step, noisy.reshape(-1))
        return noisy

    def release(self, values: Array, stream: BitStream) -> FloatArray:
        """``values`` on the grid plus fresh noise on every number: the mechanism of :meth:`for_release`.

        Where there are many numbers, each :data:`PORTION` of them has a stream of its own, keyed with 32 bytes of the
        one given, so that threads draw side by side. Who cannot break ChaCha20 can tell neither those keys nor their
        words from independent uniform ones; what is drawn does not depend on how many threads there are.
        """
        if values.size != self.size:
            raise PlanViolationError(f"a grid for {self.size} numbers does not hold for {values.size}")
        flat, noisy = values.reshape(-1), np.empty(values.size)
        if values.size <= PORTION:
            self._add_noise(flat, noisy, stream)
            return noisy.reshape(values.shape)
        parts = [slice(start, start + PORTION) for start in range(0, values.size, PORTION)]
        streams = [BitStream(stream.bytes(KEY_BYTES)) for _ in parts]
        with ThreadPoolExecutor(thread_count(), thread_name_prefix="noise") as pool:
            list(pool.map(lambda part, own: self._add_noise(flat[part], noisy[part], own), parts, streams))
        return noisy.reshape(values.shape)

    def _add_noise(self, values: Array, noisy: FloatArray, stream: BitStream) -> None:
        """In chunks, so that memory stays at one copy of the values."""
        noise = np.empty(min(_CHUNK, values.size), dtype=np.int64)
        for start in range(0, values.size, _CHUNK):
            part = slice(start, min(start + _CHUNK, values.size))
            drawn = noise[: part.stop - part.start]
            self.fill(stream, drawn)
            noisy[part] = self.add(values[part], drawn)


def _add_on_grid(values: FloatArray, noise: IntArray, scale: float, step: float, noisy: FloatArray) -> None:
    """:meth:`Grid.add` in one pass: the operations of :meth:`Grid.snap`, number by number."""
    most = float(MOST_STEPS)
    for at in range(len(values)):
        steps = np.rint(values[at] * scale)
        if steps > most:
            steps = most
        elif steps < -most:
            steps = -most
        elif steps != steps:
            steps = 0.0
        noisy[at] = float(np.int64(steps) + noise[at]) * step


def _check(sensitivity: float, multiplier: float, size: int) -> None:
    low, high = SENSITIVITIES
    if not low <= sensitivity <= high:
        raise ParameterError(f"the sensitivity of a release must lie between 2^-300 and 2^300, not {sensitivity!r}")
    if size < 0:
        raise ParameterError(f"a release has a whole number of values, not {size!r}")
    if not SMALLEST_MULTIPLIER <= multiplier <= MOST_NOISE / math.sqrt(max(size, 1)):
        raise ParameterError(
            f"the noise multiplier of {size} values must lie between 2^-30 and 2^34/sqrt({size}), not {multiplier!r}"
        )


def _sigma_steps(moved: Fraction, multiplier: Fraction, size: int) -> float:
    """√((z(Δ/g + √d))² + r²) rounded up to a double, ``moved`` being Δ/g."""
    root = Fraction(math.isqrt(size << 128) + 1, 1 << 64)  # above √d
    needed = (multiplier * (moved + root)) ** 2 + ROUNDING_WIDTH**2
    sigma = math.sqrt(needed)
    while Fraction(sigma) ** 2 < needed:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def floor_log2(number: Fraction) -> int:
    """⌊log₂⌋ of a positive rational, exactly."""
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if number >= Fraction(2) ** guess else guess - 1


# -------------------------------------------------------------------- the mechanism of a stage

ROUNDING_ROOM = 2.0**-20
"""Of the sensitivity, for rounding in the query's own sums. Sums over a node's edges (up to 2³⁰) are exact:
``ops.rows.on_lattice``, ``graph.edge_weights``. The table of links of E edges has norm at most E and is rounded once,
so two of them by 2⁻⁵²·E: ample up to 2³² edges. Sums over n rows of length 1 err by n·2⁻⁴⁴ (``ops.moments``): more of
them than this pays for are refused (:func:`check_rows`). What restart adds up over E edges errs by E·2⁻⁵¹/α together,
in sums that may move by 1/α: ample up to a billion edges. Symmetric sums have room of their own (``queries.sums``)."""


def check_rows(stage: Stage, rows: int, length: float = 1.0) -> None:
    """Refuse a sum over so many rows, a public number, whose products have norm at most ``length``, that two neighbours
    may be apart by more than :data:`ROUNDING_ROOM` through rounding: 2·rows·length·2⁻⁴⁴.
    """
    most = ROUNDING_ROOM * 2.0**43 * stage.sensitivity / length
    if rows > most:
        raise UnsupportedError(
            f"stage {stage.name!r} adds up a row for each of {rows} nodes, and rounding is paid for up to {int(most)}"
        )


def release(value: Array, stage: Stage, randomness: Randomness) -> Array:
    """``value`` on the stage's grid plus exact noise on every entry.

    Guarantee: if values on neighbouring graphs are within ``stage.sensitivity`` in ℓ2, the result has the
    privacy of ``stage.event``, rounding included: see above.
    """
    if stage.noise_std == 0:
        return value.copy()
    return grid_of(stage).release(value, bits_of(randomness))


def grid_of(stage: Stage) -> Grid:
    """The public grid of a stage with Gaussian noise."""
    moved = stage.sensitivity * (1 + ROUNDING_ROOM)
    return Grid.for_release(moved, stage.noise_std / stage.sensitivity, math.prod(stage.shape))
