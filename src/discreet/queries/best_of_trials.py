"""A search as one stage of a certificate: the best of a secret number of trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dp_accounting.dp_event import DpEvent

from discreet.errors import PlanViolationError
from discreet.graph.parts import PrivatePart
from discreet.privacy.query import PUBLISHED, Bound, Query


@dataclass(frozen=True)
class BestOfTrials(Query):
    """The trial with the best score, and nothing of the others.

    Guarantee: that of ``privacy.events.selection``, for trials each of which is bounded by its own stages.
    """

    expected_trials: float
    distribution: str
    candidates: int
    score_noise: float
    mechanism: ClassVar[str] = "repeat-and-select"
    proof: ClassVar[str] = PUBLISHED

    @property
    def words(self) -> str:
        """What is asked."""
        trials = f"({self.distribution}, {self.expected_trials:g} expected)"
        return f"the best of a secret number of trials {trials}, {self.candidates} settings"

    @property
    def shape(self) -> tuple[int, ...]:
        """Nothing is handed over but the winner."""
        return ()

    def bound(self) -> Bound:
        """Events of trials are normalised."""
        return Bound(1.0, "l2", "each trial is bounded by its own stages (trial_stages); their events are normalised")

    def noise_std(self, event: DpEvent, sensitivity: float) -> float:
        """No noise beside that of the trials."""
        return 0.0

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        return {
            "expected_trials": self.expected_trials,
            "distribution": self.distribution,
            "candidates": self.candidates,
            "score_noise": self.score_noise,
        }

    def answer(self, private: PrivatePart, **inputs: Any) -> Any:
        """Trials ask for themselves."""
        raise PlanViolationError("a search is run by its trials, not asked")
