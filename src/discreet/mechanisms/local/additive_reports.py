"""Reports by added noise, to compare with the multi-bit mechanism: Laplace and Gaussian, exact on a public grid."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays import Array, FloatArray, SingleArray
from discreet.errors import ParameterError
from discreet.limits import REPORT_EPSILON
from discreet.mechanisms import laplace
from discreet.mechanisms.bits import ROUNDED_UP, BitStream, Randomness, bits_of
from discreet.mechanisms.gaussian import Grid
from discreet.mechanisms.local.feature_range import (
    Outside,
    Range,
    checked_outside,
    checked_range,
    clipped,
    refuse_outside,
)

_BLOCK = 1 << 22
"""Numbers at once, so that memory does not grow with the table."""


@dataclass(frozen=True)
class AdditiveReports(ABC):
    """A record reports each feature, clipped to the public range, plus noise."""

    epsilon: float
    width: int
    feature_range: Range

    def __post_init__(self) -> None:
        """Refuse settings outside their range."""
        REPORT_EPSILON.check("epsilon of a report", self.epsilon)
        checked_range(self.feature_range)

    scale = 1.0
    """What one unit of a report stands for: itself."""

    @property
    def middle(self) -> float:
        """Reports are centred: 0 stands for the middle of the range."""
        return sum(self.feature_range) / 2

    @property
    @abstractmethod
    def noise_std(self) -> float:
        """Standard deviation of the noise on a feature."""

    @abstractmethod
    def _noisy(self, values: FloatArray, bits: BitStream) -> FloatArray:
        """Values in the range with noise on each of them; records lie along the last axis."""

    def encode(self, record: Array, randomness: Randomness, *, outside: Outside = "refuse") -> SingleArray:
        """The report of one record: features less the middle of the range, with noise."""
        checked_outside(outside)
        if outside == "refuse":
            refuse_outside(record[None, :], self.feature_range)
        noisy = self._noisy(clipped(record, self.feature_range), bits_of(randomness))
        return (noisy - self.middle).astype(np.float32)

    def encode_rows(self, rows: Any, randomness: Randomness, *, outside: Outside = "refuse") -> SingleArray:
        """The reports of many records, in blocks of rows; always dense, as noise is.

        Guarantee: as for one record; the random numbers drawn do not depend on the records.
        """
        checked_outside(outside)
        if outside == "refuse":
            refuse_outside(rows, self.feature_range)
        found, bits = np.empty(rows.shape, dtype=np.float32), bits_of(randomness)
        step = max(1, _BLOCK // self.width)
        for first in range(0, rows.shape[0], step):
            part = rows[first : first + step]
            dense = np.asarray(part if isinstance(part, np.ndarray) else part.toarray())
            found[first : first + step] = self._noisy(clipped(dense, self.feature_range), bits) - self.middle
        return found

    def rectify(self, reports: Array) -> FloatArray:
        """Unbiased features from reports."""
        return np.asarray(np.asarray(reports, dtype=np.float64) + self.middle)

    def admits(self, reports: Any) -> bool:
        """Whether every row could be a report: finite numbers."""
        data = reports if isinstance(reports, np.ndarray) else reports.data
        return bool(reports.shape[1] == self.width and np.isfinite(data).all())


@dataclass(frozen=True)
class LaplaceReports(AdditiveReports):
    """Laplace noise of scale d(β − α)/ε on every feature.

    Guarantee: two records differ by at most d(β − α) in ℓ1, so a report is ε-differentially private.
    """

    @property
    def laplace_scale(self) -> float:
        """The scale of the noise."""
        low, high = self.feature_range
        return self.width * (high - low) / self.epsilon

    @property
    def noise_std(self) -> float:
        """√2 times the scale."""
        return math.sqrt(2) * self.laplace_scale

    def _noisy(self, values: FloatArray, bits: BitStream) -> FloatArray:
        low, high = (Fraction(end) for end in self.feature_range)
        return laplace.release_real(values, high - low, self.width * (high - low) / Fraction(self.epsilon), bits)


@dataclass(frozen=True)
class GaussianReports(AdditiveReports):
    """Gaussian noise, calibrated exactly: σ = √d(β − α)/μ(ε, δ).

    Guarantee: two records differ by at most √d(β − α) in ℓ2, so a report is (ε, δ)-differentially private by the
    closed form of Balle and Wang (2018).
    """

    delta: float = 0.0

    def __post_init__(self) -> None:
        """A Gaussian has no pure ε."""
        super().__post_init__()
        if not 0 < self.delta < 1:
            raise ParameterError(
                f"gaussian reports need a delta between 0 and 1, not {self.delta!r}: give one, or use a pure mechanism "
                "(multi-bit, one-bit, laplace)"
            )

    @property
    def noise_std(self) -> float:
        """σ."""
        from discreet.privacy.events.gaussian import gaussian_mu

        low, high = self.feature_range
        return math.sqrt(self.width) * (high - low) / gaussian_mu(self.epsilon, self.delta)

    def _noisy(self, values: FloatArray, bits: BitStream) -> FloatArray:
        return self._grid.add(values, self._grid.sampler.draw(bits, values.shape))

    @cached_property
    def _grid(self) -> Grid:
        """Of one record, whose features move by at most √d(β − α) together, rounded up."""
        from discreet.privacy.events.gaussian import gaussian_mu

        low, high = self.feature_range
        moved = math.sqrt(self.width) * (high - low) * ROUNDED_UP
        return Grid.for_release(moved, 1 / gaussian_mu(self.epsilon, self.delta), self.width)
