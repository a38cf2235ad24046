"""What every node reports of its own record, where topology is public and no curator is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from dp_accounting.dp_event import DpEvent

from discreet.arrays import FloatArray
from discreet.graph.parts import PrivatePart
from discreet.privacy import events
from discreet.privacy.query import PUBLISHED, Bound, Query

_WHY = "a report is made of one record alone, where that record lives, and nothing else of it leaves"
LABELS = "randomized-response"
PREFIX = "local "


@dataclass(frozen=True)
class Reports(Query):
    """One report per record. Guarantee: neighbours differ in one record, so one row of the value changes and one report
    with it; the encoder makes that report (ε, δ)-private. Whatever is computed from reports is post-processing.
    """

    epsilon: float
    noise: float

    def bound(self) -> Bound:
        """One row."""
        return Bound(1.0, "rows", _WHY)

    def event(self, share: float, runs: int) -> DpEvent:
        """What one report may reveal: fixed by its encoder, whatever the share."""
        return events.ApproximateDpEvent(self.epsilon, 0.0)

    def noise_std(self, event: DpEvent, sensitivity: float) -> float:
        """The largest standard deviation of an unbiased estimate from a report."""
        return self.noise


@dataclass(frozen=True)
class FeatureReports(Reports):
    """Every node's features, reported once by the encoder ``encoder`` over the public range [low, high]."""

    proof: ClassVar[str] = PUBLISHED

    encoder: str
    size: tuple[int, int]
    low: float
    high: float
    outside: str
    delta: float | None = None
    sampled: int | None = None

    @property
    def words(self) -> str:
        """What is asked."""
        return "what every node reports of its own features"

    @property
    def answered_by(self) -> str:
        """The encoder."""
        return PREFIX + self.encoder

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per node."""
        return self.size

    def event(self, share: float, runs: int) -> DpEvent:
        """(ε, δ) of the encoder."""
        return events.ApproximateDpEvent(self.epsilon, self.delta or 0.0)

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        found: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "low": self.low,
            "high": self.high,
            "outside": self.outside,
            "noise_std": self.noise,
        }
        return found if self.sampled is None else {**found, "sampled": self.sampled}

    def answer(self, private: PrivatePart, **inputs: Any) -> Any:
        """The records (or, where owners made them, the reports) as they are."""
        return private.graph.features


@dataclass(frozen=True)
class LabelReports(Reports):
    """The label of every training and validation id, reported once by randomised response.

    A node without a label reports too, so that having one stays private. Ids outside both masks are not asked: what
    stands in their place (``missing``) is dropped by whoever reads the reports.
    """

    count: int
    classes: int
    missing: int = -1
    mechanism: ClassVar[str] = LABELS
    proof: ClassVar[str] = PUBLISHED

    @property
    def words(self) -> str:
        """What is asked."""
        return "what every training and validation node reports of its own label"

    @property
    def shape(self) -> tuple[int, ...]:
        """One number per node."""
        return (self.count,)

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        return {"epsilon": self.epsilon, "classes": self.classes, "noise_std": self.noise}

    def answer(self, private: PrivatePart, **inputs: Any) -> FloatArray:
        """Labels of the ids that are asked."""
        graph = private.graph
        asked = graph.mask("train")
        if graph.val_mask is not None:
            asked = asked | graph.val_mask
        return np.where(asked, graph.labels, self.missing).astype(np.float64)
