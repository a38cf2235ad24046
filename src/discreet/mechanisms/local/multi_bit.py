"""The multi-bit mechanism: a record reports a few signs, drawn so that on average they tell the truth.

Of d features, m are chosen at random; each chosen one is reported as +1 or −1, and the more surely +1 the closer
it is to the upper end of the public range. All others are reported as 0 (Sajadmanesh and Gatica-Perez 2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Array, BoolArray, FloatArray, IntArray, SingleArray
from discreet.errors import ParameterError
from discreet.limits import REPORT_EPSILON
from discreet.mechanisms.bits import ROUNDED_UP, BitStream, Randomness, WordArray, bits_of
from discreet.mechanisms.local.feature_range import Outside, Range, checked_outside, clipped, refuse_outside
from discreet.mechanisms.local.randomized_response import MOST_EPSILON

_BLOCK = 1 << 22  # entries of a block of random numbers: 32 MB

# (1/m)·coth²(ε/2m) is least where sinh(ε/m) = 2ε/m.
BEST_SHARE = 2.1773189849653067


def best_sampled(epsilon: float, width: int) -> int:
    """How many features to report: the m that makes the variance least, comparing the two whole numbers around it."""
    ideal = epsilon / BEST_SHARE
    floor = min(max(1, math.floor(min(ideal, float(width)))), width)
    ceiling = min(floor + 1, width)
    return ceiling if _spread(epsilon, ceiling) < _spread(epsilon, floor) else floor


def _spread(epsilon: float, sampled: int) -> float:
    """The part of the variance that m decides: coth²(ε/2m)/m."""
    return 1 / (sampled * math.tanh(epsilon / (2 * sampled)) ** 2)


@dataclass(frozen=True)
class MultiBit:
    """The encoder that runs where a record lives, and the rectifier that runs where reports arrive.

    Parameters
    ----------
    epsilon
        Budget of one record.
    width
        d, the number of features.
    feature_range
        The public ends [α, β] that every feature lies between.
    sampled
        m, how many features a record reports on; by default the number with the least variance. With m = d this is
        the 1-bit mechanism, every feature at ε/d.

    Guarantee: a report is ε-differentially private for its record, whatever the record is changed to. Which m
    features are chosen does not depend on the record. Given the choice, signs are independent, and each has
    probability between 1/(e^{ε/m} + 1) and e^{ε/m}/(e^{ε/m} + 1), so that its ratio between two records is at most
    e^{ε/m}; m of them make e^ε. Attained between the records all-α and all-β, for every choice.
    """

    epsilon: float
    width: int
    feature_range: Range
    sampled: int = field(default=0)

    def __post_init__(self) -> None:
        """Settle m, and refuse settings outside their range."""
        REPORT_EPSILON.check("epsilon of a report", self.epsilon)
        if self.width < 1:
            raise ParameterError(f"a record needs at least one feature, not {self.width}")
        if self.sampled == 0:
            object.__setattr__(self, "sampled", best_sampled(self.epsilon, self.width))
        if not 1 <= self.sampled <= self.width:
            raise ParameterError(f"sampled must lie between 1 and {self.width}, not {self.sampled}")
        if self.epsilon / self.sampled > MOST_EPSILON:
            raise ParameterError(
                f"epsilon of a feature's report must be at most {MOST_EPSILON:g}, not {self.epsilon / self.sampled:g}; "
                "beyond that next to nothing is protected: use inf where no protection is meant"
            )

    # ---------------------------------------------------------------- where the record lives

    def chance_of_plus(self, values: Array) -> FloatArray:
        """The probability that a chosen feature with this value is reported as +1."""
        low, high = self.feature_range
        share = self.epsilon / self.sampled
        least = 1 / (math.exp(min(share, 700.0)) + 1)  # e⁷¹⁰ overflows
        return np.asarray(least + (values - low) / (high - low) * math.tanh(share / 2), dtype=np.float64)

    @property
    def least_chance(self) -> float:
        """Of the less likely sign, at an end of the range: 1/(e^{ε/m} + 1), rounded up.

        Guarantee: never below that number, for the ε and m given. *Proof.* In units of u = 2⁻⁵³: ε/m is at most 30, so
        its quotient is off by at most half a step, 2⁻⁴⁹ = 16u, and the exponential by a factor of at most e^{16u} for
        that and 1 + 2u for its own last place. Adding 1, dividing and multiplying round by u each. Together less than
        22u, and the factor 1 + 2⁻⁴⁸ makes up for 32u. ∎
        """
        return 1 / (math.exp(self.epsilon / self.sampled) + 1) * ROUNDED_UP

    def _draw_plus_signs(self, values: Array, bits: BitStream) -> BoolArray:
        """Signs of chosen features, True for +1: a coin is tossed for the less likely sign, whose chance is at most ½.

        Guarantee: that chance is the exact value of a double which is at least 1/(e^{ε/m} + 1), because it is rounded
        up; so the likelier sign has at most e^{ε/m} times as much, in the machine's arithmetic and for every value.
        """
        low, high = self.feature_range
        least, slope = self.least_chance, math.tanh(self.epsilon / self.sampled / 2)
        from_nearer_end = np.minimum(values - low, high - values) / (high - low)
        unlikely = np.clip(least + from_nearer_end * slope, least, 0.5)
        surprise = bits.coins(unlikely, values.shape)
        upper_half = values - low > high - values
        return np.asarray(upper_half ^ surprise)

    def encode(self, record: Array, randomness: Randomness, *, outside: Outside = "refuse") -> npt.NDArray[np.int8]:
        """The report of one record: −1, 0 or +1 for each feature. As a device runs it."""
        checked_outside(outside)
        if outside == "refuse":
            refuse_outside(record[None, :], self.feature_range)
        bits = bits_of(randomness)
        chosen = bits.choice_without_replacement(self.width, self.sampled)
        plus = self._draw_plus_signs(clipped(record[chosen], self.feature_range), bits)
        report = np.zeros(self.width, dtype=np.int8)
        report[chosen] = np.where(plus, 1, -1)
        return report

    def encode_rows(self, rows: Any, randomness: Randomness, *, outside: Outside = "refuse") -> Any:
        """The reports of many records at once, dense or CSR in; CSR out where few features are chosen.

        Guarantee: each row of the result has the distribution of :meth:`encode` on that row and is independent of
        all others. The random numbers drawn do not depend on the records, so with one generator state a change of
        one record changes one row of the result.
        """
        checked_outside(outside)
        if outside == "refuse":
            refuse_outside(rows, self.feature_range)
        count = rows.shape[0]
        bits = bits_of(randomness)
        chosen = _distinct(count, self.width, self.sampled, bits)
        values = np.asarray(rows[np.repeat(np.arange(count), self.sampled), chosen.ravel()], dtype=np.float64)
        plus = self._draw_plus_signs(clipped(values.ravel(), self.feature_range), bits)
        return self._assembled(chosen, np.where(plus, np.float32(1), np.float32(-1)).reshape(chosen.shape))

    def _assembled(self, chosen: IntArray, signs: SingleArray) -> Any:
        count = len(chosen)
        if 3 * self.sampled > self.width:
            dense = np.zeros((count, self.width), dtype=np.float32)
            np.put_along_axis(dense, chosen, signs, axis=1)
            return dense
        import scipy.sparse as sp

        starts = np.arange(count + 1, dtype=np.int64) * self.sampled
        return sp.csr_array((signs.ravel(), chosen.ravel(), starts), shape=(count, self.width))

    # ---------------------------------------------------------------- where reports arrive

    @property
    def scale(self) -> float:
        """What a reported sign stands for: (d/m)·((β − α)/2)·coth(ε/2m)."""
        low, high = self.feature_range
        return self.width / self.sampled * (high - low) / 2 / math.tanh(self.epsilon / (2 * self.sampled))

    @property
    def middle(self) -> float:
        """What a report of 0 stands for: (α + β)/2."""
        return sum(self.feature_range) / 2

    def rectify(self, reports: Array) -> FloatArray:
        """Unbiased features from reports: the mean over the mechanism's randomness is the record."""
        return np.asarray(self.scale * np.asarray(reports, dtype=np.float64) + self.middle)

    def variance(self, values: Array | float) -> FloatArray:
        """The variance of a rectified feature with this true value: (m/d)·scale² − (x − (α+β)/2)²."""
        centred = np.asarray(values, dtype=np.float64) - self.middle
        return np.asarray(self.sampled / self.width * self.scale**2 - centred**2)

    @property
    def noise_std(self) -> float:
        """The largest standard deviation of a rectified feature, at the middle of the range."""
        return float(np.sqrt(self.variance(self.middle)))

    def admits(self, reports: Any) -> bool:
        """Whether every row could be a report: m signs, zeros elsewhere."""
        if reports.shape[1] != self.width:
            return False
        dense = isinstance(reports, np.ndarray)
        data = reports if dense else reports.data
        if not np.isin(data, (-1, 0, 1)).all():
            return False
        counts = np.count_nonzero(reports, axis=1) if dense else np.asarray((reports != 0).sum(axis=1)).ravel()
        return bool((counts == self.sampled).all())


def _distinct(count: int, width: int, size: int, bits: BitStream) -> IntArray:
    """For each of ``count`` rows, ``size`` different columns in rising order, all subsets equally likely.

    (Up to two equal words of 64 bits in a row; no record enters here, so privacy does not rest on it.)
    """
    if size == width:
        return np.broadcast_to(np.arange(width, dtype=np.int64), (count, width)).copy()
    if size * size > width:
        parts = [_smallest(bits.words((last - first, width)), size) for first, last in _blocks(count, width)]
        return np.concatenate(parts) if parts else np.empty((0, size), dtype=np.int64)
    chosen = np.sort(bits.integers(width, (count, size)), axis=1)
    while True:  # a row that holds a column twice is drawn again as a whole: all subsets stay equally likely
        repeated = np.flatnonzero((np.diff(chosen, axis=1) == 0).any(axis=1))
        if len(repeated) == 0:
            return chosen
        chosen[repeated] = np.sort(bits.integers(width, (len(repeated), size)), axis=1)


def _smallest(draws: WordArray, size: int) -> IntArray:
    return np.sort(np.argpartition(draws, size - 1, axis=1)[:, :size], axis=1)


def _blocks(count: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, _BLOCK // width)
    for first in range(0, count, step):
        yield first, min(first + step, count)
