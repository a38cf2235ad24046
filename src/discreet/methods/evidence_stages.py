"""The names of hop-bayes's queries, and how a stage takes its share of one calibration."""

from __future__ import annotations

import math

from discreet.privacy import events
from discreet.privacy.plan import Stage

LINKS = "links between classes"
EVIDENCE = "evidence"
SECOND = "second evidence"
NODE_MODEL, WEIGHTS = "node model", "weights"


def evidence_name(number: int) -> str:
    """``evidence`` on the graph itself, ``extra graph 1 evidence`` on a further one."""
    return EVIDENCE if number == 0 else f"extra graph {number} {EVIDENCE}"


def second_name(number: int) -> str:
    """The same for the second half."""
    return evidence_name(number).replace(EVIDENCE, SECOND)


def gaussian_stage(name: str, query: str, sensitivity: float, why: str, share: float, shape: tuple[int, ...]) -> Stage:
    """One Gaussian query that takes this share of the budget, in units of 1/σ²."""
    return Stage(name, query, "gaussian", sensitivity, "l2", why, events.GaussianDpEvent(share**-0.5), shape)


def taking(stage: Stage, share: float) -> Stage:
    """A stage of repeated Gaussian steps with the noise that makes all of them together take this share."""
    assert isinstance(stage.event, events.GaussianDpEvent)
    return stage.scaled(math.sqrt(stage.runs / share) / stage.event.noise_multiplier)
