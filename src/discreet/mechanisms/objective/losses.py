"""Convex losses on one score, with the suprema of their derivatives that objective perturbation pays for."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from discreet.arrays import FloatArray
from discreet.errors import ParameterError


@dataclass(frozen=True)
class ScalarLoss(ABC):
    """ℓ(x; y) for a score x and a target y in [0, 1]: convex and three times differentiable in x.

    Guarantee: |ℓ′| ≤ ``c1``, |ℓ″| ≤ ``c2`` and |ℓ‴| ≤ ``c3`` for every x and y (eq. 19 of the GCON paper). In double
    precision :meth:`slope` errs by at most 2⁻⁴⁷c₁. *Assumption*: the logistic function of the C library's exp errs by
    at most 2⁻⁴⁸ (it is good to 2⁻⁵²; tested); square roots are rounded correctly, as IEEE has it, so that the seven
    operations of the pseudo-Huber loss, none of which cancels, err by a relative 2⁻⁵⁰. The loss of a node is the sum
    over classes, so each class has a minimisation problem of its own.
    """

    classes: int

    @abstractmethod
    def value(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """ℓ, entry by entry."""

    @abstractmethod
    def slope(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """ℓ′, entry by entry."""

    @abstractmethod
    def curvature(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """ℓ″, entry by entry; never negative."""

    @property
    @abstractmethod
    def c1(self) -> float:
        """sup |ℓ′|."""

    @property
    @abstractmethod
    def c2(self) -> float:
        """sup |ℓ″|."""

    @property
    @abstractmethod
    def c3(self) -> float:
        """sup |ℓ‴|."""

    @property
    def slope_at_zero(self) -> float:
        """sup over y of |ℓ′(0; y)|; c₁ unless a loss knows better."""
        return self.c1

    def steepness(self, radius: float) -> float:
        """At least |ℓ′(x; y)| + radius·ℓ″(x; y) for every |x| ≤ radius; c₁ + c₂·radius unless a loss knows better."""
        return self.c1 + self.c2 * radius


@dataclass(frozen=True)
class SoftMargin(ScalarLoss):
    """MultiLabel Soft Margin: logistic loss of each class by itself, divided by the number of classes (eq. 27)."""

    def value(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(log(1 + eˣ) − xy)/c."""
        return np.asarray((np.logaddexp(0.0, x) - x * y) / self.classes)

    def slope(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(s(x) − y)/c with the logistic function s."""
        return np.asarray((expit(x) - y) / self.classes)

    def curvature(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """s(x)s(−x)/c."""
        return np.asarray(expit(x) * expit(-x) / self.classes)

    @property
    def c1(self) -> float:
        """1/c."""
        return 1 / self.classes

    @property
    def c2(self) -> float:
        """1/(4c)."""
        return 1 / (4 * self.classes)

    @property
    def c3(self) -> float:
        """1/(6√3·c)."""
        return 1 / (6 * math.sqrt(3) * self.classes)

    @property
    def slope_at_zero(self) -> float:
        """|s(0) − y|/c ≤ 1/(2c)."""
        return 1 / (2 * self.classes)

    def steepness(self, radius: float) -> float:
        """The largest s + radius·s(1−s) for s from 1/2 to s(radius), over c.

        By symmetry y = 0 and x ≥ 0 suffice: targets between 0 and 1 are mixtures, and −x with 1 − y mirrors x.
        The parabola in s peaks at (1 + 1/radius)/2, which may lie beyond s(radius).
        """
        top = float(expit(radius))
        s = top if radius == 0 else min(top, (1 + 1 / radius) / 2)
        return (s + radius * s * (1 - s)) / self.classes


@dataclass(frozen=True)
class PseudoHuber(ScalarLoss):
    """Quadratic near the target and linear beyond ``width`` of it, divided by the number of classes (eq. 28)."""

    width: float = 0.2

    def _root(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return np.sqrt(1 + ((x - y) / self.width) ** 2)

    def value(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(w²/c)(√(1 + (x−y)²/w²) − 1)."""
        # (x−y)²/(root + 1) rather than w²(root − 1): the same number without cancellation near the target.
        return np.asarray((x - y) ** 2 / (self._root(x, y) + 1) / self.classes)

    def slope(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """(x−y)/(c·root)."""
        return np.asarray((x - y) / (self._root(x, y) * self.classes))

    def curvature(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """1/(c·root³)."""
        return np.asarray(1 / (self._root(x, y) ** 3 * self.classes))

    @property
    def c1(self) -> float:
        """w/c."""
        return self.width / self.classes

    @property
    def c2(self) -> float:
        """1/c."""
        return 1 / self.classes

    @property
    def c3(self) -> float:
        """48√5/(125·c·w)."""
        return 48 * math.sqrt(5) / (125 * self.classes * self.width)


def loss_by_name(name: str, classes: int, width: float) -> ScalarLoss:
    """``soft-margin`` or ``pseudo-huber``."""
    if name == "soft-margin":
        return SoftMargin(classes)
    if name == "pseudo-huber":
        if not width > 0:
            raise ParameterError(f"the width of the pseudo-Huber loss must be positive, not {width}")
        return PseudoHuber(classes, float(width))
    raise ParameterError(f"loss must be soft-margin or pseudo-huber, not {name!r}")
