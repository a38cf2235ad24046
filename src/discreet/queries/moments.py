"""Moments of public rows and labels, one of the two propagated with restart: what a linear map is solved from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import FloatArray
from discreet.graph.parts import PrivatePart
from discreet.ops.moments import cross_moments, pack, packed_length
from discreet.ops.rows import cut_rows
from discreet.privacy.query import PUBLISHED, Bound
from discreet.queries.propagated import RestartQuery, cut_shares, row_norm_bound


@dataclass(frozen=True)
class Moments(RestartQuery):
    """Moments of public ``rows`` X (cut at norm 1 here) and public centred ``labels`` Y (cut at √(1 − 1/c) here).

    Both have one row per node; those of the nodes that enter are summed over.
    """

    width: int
    classes: int

    @property
    def words(self) -> str:
        """What is asked."""
        return "moments of embeddings and centred labels, one of the two propagated"

    def projected(self, rows: FloatArray, labels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows and labels within the norms that the bound is for."""
        return cut_rows(rows, 1.0), cut_rows(labels, centred_norm(self.classes))


@dataclass(frozen=True)
class SmoothedLabelMoments(Moments):
    """Xᵀ·R_m·Y, R_m averaged over the steps (width × classes).

    Guarantee. *Neighbours*: one undirected edge more or less. *Bound*: rows of Y have norm at most t = √(1 − 1/c), so
    rows of R_m Y move by δᵢ with Σ‖δᵢ‖ ≤ Ψt, and Xᵀ·R_m·Y by Σ xᵢδᵢᵀ, of norm at most Σ‖xᵢ‖‖δᵢ‖ ≤ Ψt, for every X
    and Y. *Reference*: Ψ of ``propagated.restart_sensitivity``.
    """

    proof: ClassVar[str] = PUBLISHED

    @property
    def shape(self) -> tuple[int, ...]:
        """One column per class."""
        return (self.width, self.classes)

    def bound(self) -> Bound:
        """Ψ·√(1 − 1/c)."""
        return self.bound_at(self.psi() * centred_norm(self.classes), "l2")

    def answer(self, private: PrivatePart, *, rows: FloatArray, labels: FloatArray, **inputs: Any) -> FloatArray:
        """Smooth the labels of all nodes; the nodes that enter are summed over."""
        embedded, centred = self.projected(rows, labels)
        blocks = self.spread(private, centred)
        smoothed = blocks.reshape(len(blocks), len(self.steps), -1).sum(axis=1)
        return cross_moments(embedded[self.nodes(private)], smoothed)


@dataclass(frozen=True)
class SmoothedFeatureMoments(Moments):
    """ZᵀUY beside w·ZᵀUZ for Z = R_m X, as ``ops.moments.pack`` lays them out (``width`` is that of Z).

    U holds public ``shares``, how much each row that enters counts, cut to [0, 1] here; 1 where none are given.

    Guarantee. *Neighbours*: one undirected edge more or less. *Bound*: :func:`packed_sensitivity`, for every X, Y and
    U: rows √u·z and √u·y are no longer than z and y, and move by no more.
    """

    proof: ClassVar[str] = PUBLISHED

    gram_weight: float

    @property
    def shape(self) -> tuple[int, ...]:
        """One vector."""
        return (packed_length(self.width, self.classes),)

    def bound(self) -> Bound:
        """Ψ·√(1 − 1/c + 4w²/s)."""
        target_norm = centred_norm(self.classes)
        found = packed_sensitivity(self.psi(), self.steps, target_norm=target_norm, gram_weight=self.gram_weight)
        return self.bound_at(found, "l2")

    def answer(
        self,
        private: PrivatePart,
        *,
        rows: FloatArray,
        labels: FloatArray,
        shares: FloatArray | None = None,
        **inputs: Any,
    ) -> FloatArray:
        """Smooth the rows of all nodes; the nodes that enter are summed over."""
        embedded, centred = self.projected(rows, labels)
        nodes = self.nodes(private)
        roots = np.sqrt(cut_shares(shares, len(nodes)))[:, None]
        return pack(self.spread(private, embedded) * roots, centred[nodes] * roots, self.gram_weight)


def centred_norm(classes: int) -> float:
    """‖y − 1/c‖ ≤ √(1 − 1/c) for y in the probability simplex, attained by one-hot labels."""
    return math.sqrt(1 - 1 / classes)


def packed_sensitivity(psi: float, steps: Sequence[float], *, target_norm: float, gram_weight: float) -> float:
    """How far ``ops.moments.pack`` moves in ℓ2: Ψ·√(t² + 4w²/s) for targets of norm at most t.

    Guarantee. *Neighbours*: Σᵢ‖zᵢ − z′ᵢ‖ ≤ Ψ with ‖zᵢ‖ ≤ 1/√s on both sides, targets alike. *Bound*: row i moves
    (zᵢyᵢᵀ, w·zᵢzᵢᵀ) by (δyᵢᵀ, w(mδᵀ + δmᵀ)) with δ = z′ᵢ − zᵢ and m their mean, of norm at most
    ‖δ‖·√(t² + 4w²‖m‖²), and norms add over rows. *Edge case*: attained as δ → 0 along m, which the tests
    brute-force.
    """
    return psi * math.sqrt(target_norm**2 + 4 * gram_weight**2 * row_norm_bound(steps) ** 2)
