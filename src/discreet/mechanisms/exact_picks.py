"""The K largest of scores under Gumbel noise, in order: drawn exactly, without drawing the noise.

The indices of the K largest scores under Gumbel noise of scale b have the law of K picks in turn, each of what is left
and with P(j) ∝ exp(s_j/b) (Durfee and Rogers 2019, lemma 4.2). That is what is drawn here. Candidates that are not
stored score zero, so that they are one group, whose weight is their number times that of one; within the group a pick
is uniform.

**One pick.** Weights w_j = exp(−(best − s_j)/b) lie in (0, 1]; that of the best that is left is 1. Let W_j be their
sums up to j and T their total; the pick is the first j with U < W_j/T, for a uniform number U. Its first 64 binary
places are one random word. Where doubles can tell on which side of every W_j/T it lies, they decide; where they cannot,
:func:`_decide` encloses the sums by rationals and draws further places of U until it is certain. So every pick has
exactly the law of the theorem, for the very doubles that scores and b are.

*How far doubles are trusted.* With u = 2⁻⁵³ exponents γ = (best − s)/b have a relative error of 2u, exponentials
one of 4u more (twice what libraries promise). That makes an error of at most (2γ + 4)u·e^−γ ≤ 5u for a stored weight.
For the group it is (2γ + 5)u of its weight up to γ = 100, and beyond that a group of 10⁹ weighs less than u. m weights
are summed with an error of mu·T, and the word as a double and the quotients take 3u. As T ≥ 1, all of this is below
(6m + 2⁹)u; :func:`_slack` is more. ∎
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from discreet.arrays import FloatArray, IntArray
from discreet.mechanisms.bits import BitStream, exp_bounds


def exponential_picks(scores: sp.csr_array, picks: int, scale: float, bits: BitStream) -> tuple[IntArray, FloatArray]:
    """Candidates and scores of ``picks`` picks out of each row, in turn: see the module."""
    rows, width = scores.shape
    chosen, true = np.empty((rows, picks), dtype=np.int64), np.zeros((rows, picks))
    words = bits.words((rows, picks))
    for row in range(rows):
        part = slice(scores.indptr[row], scores.indptr[row + 1])
        stored, values = scores.indices[part].astype(np.int64), scores.data[part].astype(np.float64)
        places = _places(values, width - len(stored), scale, words[row], bits)
        from_group = places == len(stored)
        chosen[row, from_group] = _others(stored, width, int(from_group.sum()), bits)
        chosen[row, ~from_group] = stored[places[~from_group]]
        true[row, ~from_group] = values[places[~from_group]]
    return chosen, true


def _places(values: FloatArray, others: int, scale: float, words: Sequence[int], bits: BitStream) -> IntArray:
    """Which of one row's scores is picked, in turn; the number of scores stands for one of the ``others`` (zeros)."""
    left, found = np.append(values, 0.0), np.empty(len(words), dtype=np.int64)
    copies = np.append(np.ones(len(values)), float(others))
    for turn, word in enumerate(words):
        place = _pick(left, copies, scale, int(word), bits)
        copies[place] -= 1
        found[turn] = place
    return found


def _pick(scores: FloatArray, copies: FloatArray, scale: float, word: int, bits: BitStream) -> int:
    """One pick among scores that stand for so many candidates each."""
    best = scores[copies > 0].max()
    sums = np.cumsum(copies * np.exp(np.minimum(scores - best, 0.0) / scale))
    uniform, sums = word * 2.0**-64, sums / sums[-1]
    if np.abs(sums[:-1] - uniform).min(initial=1.0) <= _slack(len(sums)) or uniform >= 1 - _slack(len(sums)):
        return _decide(scores, copies, best, scale, word, bits)
    return int(np.searchsorted(sums, uniform, side="right"))


def _slack(count: int) -> float:
    """Further than this from all sums, doubles decide."""
    return (count + 128) * 2.0**-50


def _decide(scores: FloatArray, copies: FloatArray, best: float, scale: float, word: int, bits: BitStream) -> int:
    """The first j with U < W_j/T, by whole numbers alone; U begins with ``word``.

    *Proof.* W_j/T = W_j/(W_j + R_j) with R_j the rest; it rises with W_j and falls with R_j, so enclosures of both
    enclose it. U lies in [word, word + 1)/2^places. Every place of U that is drawn is kept for all comparisons. ∎
    """
    gaps = [max(Fraction(float(best)) - Fraction(float(score)), Fraction(0)) / Fraction(scale) for score in scores]
    places = 64
    while True:
        ends = [exp_bounds(gap, places + 32) for gap in gaps]
        low, high = ([int(count) * end[side] for count, end in zip(copies, ends, strict=True)] for side in (0, 1))
        least, most, least_rest, most_rest = 0, 0, sum(low), sum(high)
        for place, (lower, upper) in enumerate(zip(low, high, strict=True)):
            least, most, least_rest, most_rest = least + lower, most + upper, least_rest - lower, most_rest - upper
            if least and (word + 1) * (least + most_rest) <= least << places:
                return place
            if word * (most + least_rest) < most << places:
                break  # neither below nor above for certain
        word, places = word << 64 | bits.word(), places + 64


def _others(stored: IntArray, width: int, count: int, bits: BitStream) -> IntArray:
    """``count`` different candidates that are not stored, uniformly and in random order."""
    if not count:
        return np.empty(0, dtype=np.int64)
    if 2 * (len(stored) + count) > width:
        free = np.setdiff1d(np.arange(width), stored)
        return free[bits.permutation(len(free))[:count]]
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:  # at least half of all candidates are free
        drawn = bits.integers(width, 2 * count + 8)
        drawn = drawn[~np.isin(drawn, stored) & ~np.isin(drawn, found)]
        _, first = np.unique(drawn, return_index=True)
        found = np.concatenate([found, drawn[np.sort(first)]])
    return found[:count]
