"""Whole numbers with P(x) ∝ ρ(x) = exp(−x²/2σ²): an exact sampler, made of the words of a :class:`BitStream`.

**Layout.** The integers from −J·2ˢ to J·2ˢ − 1 are cut into 2J columns of 2ˢ, and the area under ρ into cells: a cell
is one column wide and κ high, and a column has as many, stacked from the ground, as cover ρ over all of it. What lies
beyond on either side, the tail, is covered by stairs: the t-th, of 2ᵘ integers, is H/2ᵗ high. Both sides together have
the area 4H·2ᵘ, and H is such that this is a whole number of cells, too. There are at most 2¹⁴ cells.

**A proposal** is one word: 14 bits say which of 2¹⁴ cells (where there are fewer, the rest are rejected), s other bits
say which integer of its column. In a cell that lies under ρ from one end to the other (19 of 20), x is accepted. In
one that ρ crosses, x is accepted if (k + U)·κ < ρ(x), for the k-th cell of its column and U uniform. In a cell of the
tail a bit gives the side, the zeros before the first one of a word the stair t, and a further word the place in it; x
is accepted if U·H/2ᵗ < ρ(x). What is rejected is proposed anew.

**Exactness.** One proposal gives an x of the body with probability 2⁻¹⁴·2⁻ˢ·Σₖ min(max(ρ(x)/κ − k, 0), 1), which is
2⁻¹⁴⁻ˢ·ρ(x)/κ, because the cells of its column reach at least to ρ(x). In the tail, with n cells, the probability is
n·2⁻¹⁴·½·2⁻ᵗ⁻¹·2⁻ᵘ·ρ(x)·2ᵗ/H, because H/2ᵗ ≥ ρ(x) (ρ at least halves from one stair to the next: checked for the first
and true for the rest, since ln ρ is concave); and H = n·κ·2ˢ/(4·2ᵘ) makes it the same 2⁻¹⁴⁻ˢ·ρ(x)/κ. So what is
accepted has probability ∝ ρ(x), for every integer, and draws are independent. ∎ That cells reach as high as ρ, that
inner ones lie below it and that stairs halve is decided in whole numbers, with enclosures of ρ.

**Doubles decide speed alone.** U < p, p = ρ(x)/κ − k, is first compared in doubles. Where the two are nearer than
``SLACK`` = 2⁻²⁰, it is decided again with rational enclosures of ρ and as many bits of U as it takes. So the law is
exact if |computed p − p| ≤ 2⁻²⁰ − 2⁻⁵³ (2⁻⁵³ is what is cut off U). *Bound.* |x| is below 2⁵³, hence exact. γ = x²/2σ²
carries a relative error of 6·2⁻⁵³ at most, which moves exp(−γ) by γ·exp(−γ)·6·2⁻⁵³ < 2⁻⁵¹; with that of exp itself, a
relative e, and 1/κ ≤ 2¹⁴ (2¹⁴ cells cover ρ(0) = 1), p is off by at most 2⁻³⁵ + 2¹⁴·e in the body, its last two
roundings included. In the tail p is at most 1 and its exponent below 2¹⁶, so p is off by at most 2⁻³³ + e.
*Assumption*: e ≤ 2⁻³⁵. C libraries state 2⁻⁵² or a few times that: a margin of more than 2¹⁵.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Array, BoolArray, IntArray
from discreet.errors import ParameterError
from discreet.mechanisms.bits import BitStream, Size, WordArray, exp_bounds
from discreet.ops.compiled import compiled

SMALLEST_SIGMA, LARGEST_SIGMA = Fraction(1, 4), Fraction(1 << 44)  # what is drawn stays below 2⁵³, exact in doubles
CELL_BITS = 14  # of a proposal; with as many cells, 19 of 20 need no second look
CELLS = 1 << CELL_BITS
SLACK = 2.0**-20  # far above what doubles err by: see the bound above
_LOOK = 4  # words of a proposal that takes a second look: itself, U, stair and place
_CHUNK = 1 << 15  # words drawn at a time: 256 KiB, which stay near the processor
_REACH = 3.9  # how many σ the columns cover; the rest, one in ten thousand, is the tail
_PRECISION = 112  # binary places of ρ and of κ in the layout


class DiscreteGaussian:
    """Independent integers with P(x) ∝ exp(−x²/2σ²), for a double or rational σ from 1/4 to 2⁴⁴.

    Guarantee: the exact law of the very σ given, as proved above. Its variance is at most σ² (Canonne, Kamath and
    Steinke 2020), and less than σ² by a relative 1e-30 or so from σ = 2 on.
    """

    def __init__(self, sigma: float | Fraction) -> None:
        """Lay out the cells; the layouts of the last few σ are kept, which are public as σ is."""
        if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
            raise ParameterError(f"sigma of noise on whole numbers must lie between 1/4 and 2^44, not {sigma!r}")
        self.layout = layout_of(sigma if isinstance(sigma, Fraction) else Fraction(float(sigma)))

    @property
    def sigma(self) -> Fraction:
        """σ in steps."""
        return self.layout.sigma

    def draw(self, stream: BitStream, size: Size) -> IntArray:
        """That many samples; how far the stream moves depends on its words and on the size."""
        drawn = np.empty(size, dtype=np.int64)
        self.fill(stream, drawn.reshape(-1))
        return drawn

    def fill(self, stream: BitStream, out: IntArray) -> None:
        """Overwrite a one-dimensional array with samples."""
        kernel, layout, filled = compiled(_sample), self.layout, 0
        buffer = np.empty(_words_for(out.size), dtype=np.uint64)
        while filled < out.size:
            words = buffer[: _words_for(out.size - filled)]
            stream.fill(words)
            at, undecided = 0, True
            while undecided:
                filled, at, undecided = kernel(words, at, out, filled, SLACK, *layout.for_kernel)
                if undecided and (x := layout.decide(words[at - _LOOK : at], stream)) is not None:
                    out[filled] = x
                    filled += 1


def _words_for(count: int) -> int:
    """Enough for that many samples as a rule (1.2 each), and no more than a chunk; what is left over is dropped."""
    return min(count + count // 4 + 8 * _LOOK, _CHUNK)


# -------------------------------------------------------------------- the layout


@dataclass(frozen=True, eq=False)
class Layout:
    """Cells under and around ρ for one σ; the module's docstring says what they are.

    Cells are numbered: below ``inner`` they lie under ρ, below ``crossed`` ρ may cross them, below ``used`` they are
    the tail's. ``column`` and ``level`` say where each of the first two kinds stands. κ = ``height``·2⁻¹¹².
    """

    sigma: Fraction
    shift: int
    height: int
    column: npt.NDArray[np.int16]
    level: npt.NDArray[np.int32]
    inner: int
    crossed: int
    used: int
    tail_start: int
    tail_shift: int

    @property
    def kappa(self) -> Fraction:
        """The height of a cell, ρ(0) being 1."""
        return Fraction(self.height, 1 << _PRECISION)

    @property
    def tail_height(self) -> Fraction:
        """H, the height of the first stair: what makes the stairs of both sides as large as the tail's cells."""
        return (self.used - self.crossed) * self.kappa * (1 << self.shift) / (4 << self.tail_shift)

    @cached_property
    def for_kernel(self) -> tuple[Any, ...]:
        """The same, as the kernel takes it."""
        tables = (self.column, self.level, self.inner, self.crossed, self.used)
        places = (self.shift, self.tail_start, self.tail_shift)
        return (*tables, *places, float(1 / self.sigma), float(1 / self.kappa), float(1 / self.tail_height))

    def decide(self, words: WordArray, stream: BitStream) -> int | None:
        """What the four words of a proposal say, without a double: the sample, or None where it is rejected."""
        proposal, uniform, stairs, place = (int(word) for word in words)
        cell = proposal % CELLS
        if cell < self.crossed:
            x = (int(self.column[cell]) << self.shift) + (proposal >> (64 - self.shift))
            factor, level = 1 / self.kappa, int(self.level[cell])
        else:
            stair = _zeros_before_one(stairs, stream)
            x = self.tail_start + (stair << self.tail_shift) + (place >> (64 - self.tail_shift))
            x = ~x if proposal >> CELL_BITS & 1 else x
            factor, level = (1 << stair) / self.tail_height, 0
        gamma = x * x / (2 * self.sigma**2)

        def bounds(bits: int) -> tuple[int, int]:
            low, high = (rho * factor / (1 << _PRECISION) for rho in exp_bounds(gamma, bits + _PRECISION))
            return math.floor(low) - (level << bits), math.ceil(high) - (level << bits)

        return x if stream.below(uniform, bounds) else None


def _zeros_before_one(word: int, stream: BitStream) -> int:
    """How many bits are zero before the first one, from the lowest of the word on, and into further words."""
    zeros = 0
    while not word:
        word, zeros = stream.word(), zeros + 64
    return zeros + (word & -word).bit_length() - 1


@lru_cache(maxsize=64)  # of 100 kB each: more than the stages of any method
def layout_of(sigma: Fraction) -> Layout:
    """Columns of σ/64 to σ/32, or of one integer; cells about as low as 2¹⁴ of them can be."""

    twice_the_variance = 2 * sigma**2

    @cache  # columns share ends
    def rho(x: int) -> tuple[int, int]:
        return exp_bounds(x * x / twice_the_variance, _PRECISION)

    shift = max(0, math.frexp(float(sigma))[1] - 6)
    half = math.ceil(_REACH * sigma / (1 << shift))
    tail_start = half << shift
    tail_shift = shift
    while 2 * rho(tail_start + (1 << tail_shift))[1] > rho(tail_start)[0]:
        tail_shift += 1
    tops, floors = [], []
    for first in range(-half << shift, half << shift, 1 << shift):
        ends = abs(first), abs(first + (1 << shift) - 1)
        tops.append(rho(min(ends))[1])
        floors.append(rho(max(ends))[0])
    tail_area = rho(tail_start)[1] << (tail_shift - shift + 2)
    height = _cell_height([*tops, tail_area])
    counts = np.array([_cells(top, height) for top in tops])
    column, level, is_crossed = _numbered(counts, np.array([floor // height for floor in floors]))
    return Layout(
        sigma=sigma,
        shift=shift,
        height=height,
        column=_table(column, np.int16),
        level=_table(level, np.int32),
        inner=len(column) - int(is_crossed.sum()),
        crossed=len(column),
        used=len(column) + _cells(tail_area, height),
        tail_start=tail_start,
        tail_shift=tail_shift,
    )


def _numbered(counts: IntArray, inner: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Column and level of every cell of the body, and whether ρ may cross it: those under ρ first."""
    half = len(counts) // 2
    column = np.repeat(np.arange(-half, half), counts)
    level = np.arange(len(column)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_crossed = level >= np.repeat(inner, counts)
    order = np.argsort(is_crossed, kind="stable")
    return column[order], level[order], is_crossed[order]


def _table(values: IntArray, dtype: type[np.int16] | type[np.int32]) -> Array:
    """One entry for each of 2¹⁴ cells, zero where there is none."""
    table = np.zeros(CELLS, dtype=dtype)
    table[: len(values)] = values
    return table


def _cells(top: int, height: int) -> int:
    """How many cells reach as high as ``top``."""
    return -(-top // height)


def _cell_height(tops: list[int]) -> int:
    """About the least height at which all tops are covered by 2¹⁴ cells; never too low."""
    low, high = sum(tops) // CELLS, sum(tops)
    while high - low > low >> 20:
        middle = (low + high) // 2
        enough = sum(_cells(top, middle) for top in tops) <= CELLS
        low, high = (low, middle) if enough else (middle, high)
    return high


# -------------------------------------------------------------------- the kernel


def _sample(
    words: WordArray,
    at: int,
    out: IntArray,
    filled: int,
    slack: float,
    column: npt.NDArray[np.int16],
    level: npt.NDArray[np.int32],
    inner: int,
    crossed: int,
    used: int,
    shift: int,
    tail_start: int,
    tail_shift: int,
    per_sigma: float,
    per_cell: float,
    per_stair: float,
) -> tuple[int, int, bool]:
    """Take proposals from ``words`` until ``out`` is full, words run out, or a decision is too close for doubles.

    Returns how many samples there are, where it stopped, and whether the four words before that are undecided.
    """
    # Places in arrays are unsigned: machine code asks of every other number whether it counts from the end.
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    cell_mask, place_shift, stair_shift = np.uint64(CELLS - 1), np.uint64(63 - shift), np.uint64(63 - tail_shift)
    first_crossed, first_of_tail, first_unused = np.uint64(inner), np.uint64(crossed), np.uint64(used)
    here, count, end, words_end = np.uint64(at), np.uint64(filled), np.uint64(len(out)), np.uint64(len(words))
    while count < end and here + three < words_end:
        word = words[here]
        cell = word & cell_mask
        x = (np.int64(column[cell]) << shift) + np.int64(word >> one >> place_shift)
        here += one
        if cell >= first_crossed:
            if cell >= first_unused:
                continue
            uniform = np.float64(words[here] >> np.uint64(11)) * 2.0**-53
            stairs, place = words[here + one], words[here + two]
            here += three
            if cell < first_of_tail:
                distance = x * per_sigma
                chance = math.exp(-0.5 * distance * distance) * per_cell - level[cell]
            else:
                if stairs == 0:
                    return int(count), int(here), True
                stair = 0
                while not (stairs >> np.uint64(stair)) & one:
                    stair += 1
                x = tail_start + (np.int64(stair) << tail_shift) + np.int64(place >> one >> stair_shift)
                if (word >> np.uint64(CELL_BITS)) & one:
                    x = -1 - x
                distance = x * per_sigma
                chance = math.exp(stair * math.log(2.0) - 0.5 * distance * distance) * per_stair
            if abs(chance - uniform) <= slack:
                return int(count), int(here), True
            if uniform >= chance:
                continue
        out[count] = x
        count += one
    return int(count), int(here), False
