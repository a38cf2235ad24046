"""EdgeRand and LapGraph: a noisy graph, drawn exactly, in time and memory of its own edges.

Both speak of N cells, far too many to visit. What stands in for visiting them is a *sieve*: a set to which every cell
belongs independently with probability 1 − exp(−1/s). The gaps between its members are geometric numbers of scale s,
which :mod:`discreet.mechanisms.bits` draws exactly; so is the sieve, in time of its members.

**EdgeRand** flips every cell with probability p: the answer is the symmetric difference of the edges and a sieve with
p = 1 − exp(−1/s), 1/s ≥ ln(1 + e^−ε). Then p ≥ 1/(1 + e^ε), and (1 − p)/p ≤ e^ε: each cell is randomised response, and
one cell differs. 1/s is a double rounded up, taken as the rational that it is. No cell is treated apart, edge or not. ∎

**LapGraph.** T is the number of edges plus rounded Laplace noise, cut to 0 … N. Every cell (0, or 2²⁰ steps for an
edge) gets rounded Laplace noise; the answer is the T largest cells among those that reach a threshold t ≥ 1 step, ties
in random order. t is made of T, N and the scale, so all of this is a function of two Laplace answers. The noise of
empty cells is drawn where it reaches t and nowhere else: each does with probability ½·exp(−(t − ½)/s), independently,
and is then t plus a geometric number of scale s (no memory). Such cells are a sieve of slightly larger rate, each
member kept with the quotient of the two probabilities, a coin that rationals enclose as narrowly as it takes. Cells
that are edges have noise of their own, so the sieve's members among them are dropped. ∎
t is chosen so that the empty cells alone are expected to give more than T, with eight standard deviations to spare: the
answer has T edges, short of fewer where T comes near N/2.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from discreet.arrays import IntArray
from discreet.errors import ParameterError, PlanViolationError
from discreet.mechanisms.bits import ROUNDED_UP, BitStream, Bounds, Randomness, bits_of, exp_bounds
from discreet.mechanisms.laplace import GRID, rounded_laplace
from discreet.privacy import events
from discreet.privacy.plan import Stage
from discreet.queries.edge_cells import FlippedCells, LargestCells

MOST_EPSILON = 30.0
"""Of EdgeRand: beyond, not one cell in 10¹³ is flipped, and its sieve has no scale."""
_CHUNK = 1 << 18
"""Members that are drawn at once."""
_THINNED = 1 + 2.0**-40  # by which the sieve of LapGraph is wider than it must be


def release_flipped(value: sp.csr_array, stage: Stage, randomness: Randomness) -> sp.csr_array:
    """The edges with every cell flipped at random: see the module."""
    if not stage.is_private:
        return sp.csr_array(value)
    query = stage.query
    if not isinstance(query, FlippedCells):
        raise PlanViolationError(f"stage {stage.name!r} flips no cells")
    row = sp.csr_array(value)
    flipped = sieve(stage.shape[1], flip_scale(query.epsilon), bits_of(randomness))
    return _row(_symmetric_difference(row.indices, flipped), stage.shape[1])


def release_largest(value: sp.csr_array, stage: Stage, randomness: Randomness) -> sp.csr_array:
    """A noisy number of the largest noisy cells: see the module."""
    if not stage.is_private:
        return sp.csr_array(value)
    if not isinstance(stage.query, LargestCells):
        raise PlanViolationError(f"stage {stage.name!r} picks no cells")
    edges, bits, cells = np.sort(sp.csr_array(value).indices).astype(np.int64), bits_of(randomness), stage.shape[1]
    for_cells, for_count = (Fraction(leaf.noise_multiplier) for leaf, _ in events.leaves(stage.event))
    wanted = len(edges) + int(rounded_laplace(for_count, 1, bits)[0])
    wanted, scale = min(max(wanted, 0), cells), for_cells * GRID
    least = threshold(wanted, cells, scale)
    noisy = GRID + rounded_laplace(scale, len(edges), bits)
    empty = without(_reaching(cells, scale, least, bits), edges)
    places = np.concatenate([edges[noisy >= least], empty])
    values = np.concatenate([noisy[noisy >= least], least + bits.geometric(scale, len(empty))])
    order = bits.permutation(len(places))
    best = order[np.argsort(-values[order], kind="stable")][:wanted]
    return _row(np.sort(places[best]), cells)


# -------------------------------------------------------------------- the sieve


def flip_scale(epsilon: float) -> Fraction:
    """s with 1 − exp(−1/s) at least 1/(1 + e^ε), and no more above it than rounding takes."""
    if not 1e-9 <= epsilon <= MOST_EPSILON:
        raise ParameterError(f"EdgeRand needs an epsilon between 1e-9 and {MOST_EPSILON:g}, not {epsilon!r}")
    return 1 / Fraction(math.log1p(math.exp(-epsilon)) * ROUNDED_UP)


def sieve(cells: int, scale: Fraction, bits: BitStream) -> IntArray:
    """Members of 0 … cells − 1 in rising order, each in independently with probability 1 − exp(−1/scale), exactly."""
    expected = cells * -math.expm1(-1 / scale)
    chunk = int(min(_CHUNK, 1.1 * expected + 16))
    found, last, going = [], -1, True
    while going:
        places = last + np.cumsum(1 + bits.geometric(scale, chunk))
        inside = int(np.searchsorted(places, cells))
        found.append(places[:inside])
        last, going = int(places[-1]), inside == chunk
    return np.concatenate(found)


# -------------------------------------------------------------------- LapGraph


def threshold(wanted: int, cells: int, scale: Fraction) -> int:
    """The steps that empty cells must reach: with room, ``wanted`` of them do."""
    room = wanted + 8 * math.sqrt(wanted) + 64
    return max(1, math.floor(float(scale) * math.log(max(cells, 1) / (2 * room)) + 0.5))


def _reaching(cells: int, scale: Fraction, least: int, bits: BitStream) -> IntArray:
    """The cells whose noise reaches ``least`` ≥ 1 steps, if all were empty."""
    depth = (least - Fraction(1, 2)) / scale
    wider = 1 / Fraction(-math.log1p(-math.exp(-float(depth)) / 2) * _THINNED)
    found = sieve(cells, wider, bits)
    return found[bits.coins_within(_quotient(depth, wider), len(found))]


def _quotient(depth: Fraction, scale: Fraction) -> Bounds:
    """What encloses ½·exp(−depth)/(1 − exp(−1/scale))."""

    def bounds(bits: int) -> tuple[int, int]:
        precision = bits + 96
        (low, high), (less, more) = exp_bounds(depth, precision), exp_bounds(1 / scale, precision)
        one = 1 << precision
        return (low << bits) // (2 * (one - less)), -((-high << bits) // (2 * (one - more)))

    return bounds


# -------------------------------------------------------------------- sorted sets


def without(members: IntArray, gone: IntArray) -> IntArray:
    """Sorted ``members`` that are not among sorted ``gone``."""
    return np.delete(members, _places(members, gone)[1]) if len(members) else members


def _symmetric_difference(few: IntArray, many: IntArray) -> IntArray:
    """The sorted numbers that are in one of two sets alone; memory stays at a few copies of the larger."""
    few = np.sort(few).astype(np.int64)
    inside, at = _places(many, few)
    merged = np.concatenate([np.delete(many, at), few[~inside]])
    merged.sort(kind="stable")  # two runs: a merge
    return merged


def _places(members: IntArray, wanted: IntArray) -> tuple[np.ndarray, IntArray]:
    """Which of sorted ``wanted`` are members, and where those stand."""
    at = np.searchsorted(members, wanted)
    inside = at < len(members)
    inside[inside] = members[at[inside]] == wanted[inside]
    return inside, at[inside]


def _row(places: IntArray, cells: int) -> sp.csr_array:
    """A row of zeros and ones."""
    indices = places.astype(np.int32 if cells < 2**31 else np.int64)
    return sp.csr_array((np.ones(len(places), dtype=np.int8), indices, np.array([0, len(places)])), shape=(1, cells))
