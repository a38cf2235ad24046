"""Generalised randomised response: a label that is reported truly with a known probability, else another at random."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, FloatArray, IntArray
from discreet.errors import ParameterError
from discreet.limits import CLASSES, REPORT_EPSILON
from discreet.mechanisms.bits import ROUNDED_UP, Randomness, bits_of

MOST_EPSILON = 30.0
"""Of one coin: a lie is then one in 10¹³, and no protection is left to speak of."""


@dataclass(frozen=True)
class RandomizedResponse:
    """Reports of labels among ``num_classes``.

    Guarantee: a report is ε-differentially private for its label. The true class is reported with probability
    e^ε/(e^ε + c − 1), every other with 1/(e^ε + c − 1): the largest ratio is e^ε, attained. A record without a
    label (−1) reports any class with probability 1/c, which lies between the two within a factor of e^ε, so that a
    report does not give away whether there was a label at all.
    """

    epsilon: float
    num_classes: int

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        REPORT_EPSILON.check("epsilon of a label's report", self.epsilon)
        if self.epsilon > MOST_EPSILON:
            raise ParameterError(
                f"epsilon of a label's report must be at most {MOST_EPSILON:g}, not {self.epsilon!r}; "
                "beyond that next to nothing is protected: use inf where no protection is meant"
            )
        if self.num_classes < 2:
            raise ParameterError(f"randomised response needs at least two classes, not {self.num_classes}")
        CLASSES.check("the number of classes", self.num_classes)

    @property
    def keep(self) -> float:
        """The probability of telling the truth."""
        return 1 / (1 + (self.num_classes - 1) * math.exp(-self.epsilon))

    @property
    def other(self) -> float:
        """The probability of each other class."""
        return 1 / (math.exp(min(self.epsilon, 700.0)) + self.num_classes - 1)  # e⁷¹⁰ overflows

    @property
    def noise_std(self) -> float:
        """The largest standard deviation of an unbiased one-hot estimate of a label."""
        spread = max(self.keep * (1 - self.keep), self.other * (1 - self.other))
        return math.sqrt(spread) / (self.keep - self.other)

    def confusion(self) -> FloatArray:
        """The probability of each report (column), given the label (row)."""
        matrix = np.full((self.num_classes, self.num_classes), self.other)
        np.fill_diagonal(matrix, self.keep)
        return matrix

    @property
    def lie(self) -> float:
        """The probability of not telling the truth, rounded up, but never so far that a lie beats the truth.

        The coin is tossed for this and not for ``keep``: near 1 doubles are too coarse to tell large budgets apart.
        At (c − 1)/c, rounded down, all classes are equally likely but for 10⁻¹² with the most classes there may be,
        far less than the least ε: so truth, lie and no label stay within a factor of e^ε of each other.
        """
        others = self.num_classes - 1
        even = math.nextafter(others / self.num_classes, 0.0)
        return min(others / (math.exp(min(self.epsilon, 700.0)) + others) * ROUNDED_UP, even)  # e⁷¹⁰ overflows

    def encode(self, label: int, randomness: Randomness) -> int:
        """The report of one label, as a device runs it."""
        return int(self.encode_rows(np.asarray([label]), randomness)[0])

    def encode_rows(self, labels: Array, randomness: Randomness) -> IntArray:
        """The reports of many labels, each as by :meth:`encode`; what is drawn does not depend on the labels."""
        given = np.asarray(labels)
        self._check(given)
        bits = bits_of(randomness)
        lies = bits.coins(self.lie, len(given))
        step = 1 + bits.integers(self.num_classes - 1, len(given))
        anything = bits.integers(self.num_classes, len(given))
        whole = given.astype(np.int64)
        return np.where(whole < 0, anything, np.where(lies, (whole + step) % self.num_classes, whole))

    def admits(self, reports: Array) -> bool:
        """Whether every entry could be a report."""
        return bool(np.isin(reports, np.arange(self.num_classes)).all())

    def _check(self, labels: Array) -> None:
        if not np.isin(labels, np.arange(-1, self.num_classes)).all():
            raise ParameterError(
                f"a label is no class: classes run from 0 to {self.num_classes - 1}, and -1 is no label"
            )
