"""The K largest entries of private rows: what is asked, and what clipping makes of it.

A stage asks for the K best of a public range of candidates in each of M rows of scores.
One unit may change *every* score of *every* row (a hub stands in all rows of PageRank). What bounds the loss is the
clip:

- ``em0``, ``em1`` (Gumbel noise): entries in [0, C] move by at most C each (ℓ∞), whatever changes. M rows are M events;
  with values (``em1``), each of the K values picked moves by at most C, which is M·K Laplace mechanisms.
- ``gm`` (Gaussian noise): rows of non-negative numbers with norm at most C are at most √2·C apart, not C and not 2C:
  ‖a − b‖² = ‖a‖² + ‖b‖² − 2a·b ≤ 2C², as a·b ≥ 0; it is met by rows on disjoint candidates. All M rows move together
  by at most √(2M)·C.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from dp_accounting.dp_event import DpEvent

from discreet.arrays import FloatArray
from discreet.errors import ParameterError
from discreet.graph.parts import PrivatePart
from discreet.limits import SCORE_CLIP
from discreet.privacy import events
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.query import NO_BOUND, Bound, Query

Selection = Literal["em0", "em1", "gm"]
GUMBEL, GAUSSIAN = "gumbel-top-k", "gaussian-top-k"


@dataclass(frozen=True)
class TopPicks(Query):
    """``picks`` of ``candidates`` in each of ``rows`` rows of scores, which are clipped at ``clip`` here.

    Guarantee: holds for any scores whatever (see the module), so it needs no bound on what one unit does to them.
    Shares: of the squared privacy loss μ² of the whole stage one pick of Gumbel scale λC counts 1/λ² (its ρ of zCDP is
    1/(2λ²)), and so does one Laplace value of scale λC; indices and values share it equally.
    """

    level: Level
    selection: Selection
    rows: int
    candidates: int
    picks: int
    clip: float

    def __post_init__(self) -> None:
        """Refuse what cannot be picked."""
        if not 1 <= self.picks <= self.candidates:
            raise ParameterError(
                f"top_k must lie between 1 and the number of candidates, {self.candidates}, not {self.picks}"
            )
        SCORE_CLIP.check("a clip bound", self.clip)

    @abstractmethod
    def scores(self, private: PrivatePart, *args: Any, **inputs: Any) -> sp.csr_array:
        """The rows of scores, (rows × candidates), before clipping."""

    @property
    def answered_by(self) -> str:
        """Gumbel or Gaussian noise."""
        return GAUSSIAN if self.selection == "gm" else GUMBEL

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows of scores."""
        return (self.rows, self.candidates)

    @property
    def answer_shape(self) -> tuple[int, ...]:
        """For every pick its candidate and its value."""
        return (self.rows, self.picks, 2)

    @property
    def with_values(self) -> bool:
        """Whether picks come with values, not indices alone."""
        return self.selection != "em0"

    def bound(self) -> Bound:
        """The clip, in the mechanism's own metric."""
        gaussian = self.selection == "gm"
        metric = "l2" if gaussian else "linf"
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, metric, NO_BOUND)
        if gaussian:
            why = f"one node can change all of {self.rows} rows, non-negative and of norm at most {self.clip:g}: "
            return Bound(math.sqrt(2 * self.rows) * self.clip, metric, why + "each by √2 times that")
        why = f"one node can change every entry of all {self.rows} rows, from 0 to {self.clip:g} or back"
        return Bound(self.clip, metric, why)

    def event(self, share: float, runs: int) -> DpEvent:
        """Noise at which the whole stage costs ``share``."""
        if self.selection == "gm":
            return events.GaussianDpEvent(1 / math.sqrt(share))
        if self.selection == "em0":
            return events.repeat(
                events.OneShotTopKDpEvent(math.sqrt(self.rows * self.picks / share), self.picks), self.rows
            )
        each = math.sqrt(2 * self.rows * self.picks / share)
        return gumbel_event(each, each, self.rows, self.picks)

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        return {"picks": self.picks, "clip": self.clip, "values": self.with_values}

    def answer(self, private: PrivatePart, **inputs: Any) -> sp.csr_array:
        """The scores, clipped."""
        return (clip_norms if self.selection == "gm" else clip_entries)(self.scores(private, **inputs), self.clip)


def gumbel_event(scale: float, value_scale: float | None, rows: int, picks: int) -> DpEvent:
    """Indices with Gumbel noise of scale·C, and values (unless None) with Laplace noise of value_scale·C."""
    indices = events.repeat(events.OneShotTopKDpEvent(scale, picks), rows)
    if value_scale is None:
        return indices
    return events.compose([indices, events.repeat(events.LaplaceDpEvent(value_scale), rows * picks)])


def clip_entries(rows: sp.csr_array, bound: float) -> sp.csr_array:
    """Every entry to [0, bound].

    Guarantee: between any two graphs no entry moves by more than ``bound`` (ℓ∞ over all rows).
    """
    clipped = sp.csr_array(rows, dtype=np.float64, copy=True)
    clipped.data = np.clip(_numbers(clipped.data), 0.0, bound)
    return clipped


def clip_norms(rows: sp.csr_array, bound: float) -> sp.csr_array:
    """Non-negative rows scaled down to an ℓ2 norm of at most ``bound``.

    Guarantee: between any two graphs a row moves by at most √2·bound, and M rows by √(2M)·bound (ℓ2).
    """
    clipped = sp.csr_array(rows, dtype=np.float64, copy=True)
    clipped.data = np.maximum(_numbers(clipped.data), 0.0)
    factor = bound / np.maximum(row_norms(clipped), bound)
    clipped.data *= np.repeat(factor, np.diff(clipped.indptr))
    return clipped


def _numbers(values: FloatArray) -> FloatArray:
    """Zero where a score is not a finite number: a refusal of it would tell."""
    return np.where(np.isfinite(values), values, 0.0)


def row_norms(rows: sp.csr_array) -> FloatArray:
    """The ℓ2 norm of every row; infinite where a square overflows."""
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    with np.errstate(over="ignore"):
        return np.sqrt(np.bincount(owner, weights=rows.data**2, minlength=rows.shape[0]))
