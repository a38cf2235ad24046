"""The checks that faults are held against, each on a subject, each giving what it found and how far it had to go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.audit.statistical import audit_curator, audit_pipeline
from discreet.audit.subjects import cheap
from discreet.audit.worst_pairs import NODES, worst_pair
from discreet.methods.base import NodeClassifier
from discreet.methods.registry import find_method
from discreet.privacy.budget import Privacy
from discreet.privacy.level_specs import parse_level

DELTA = 1e-3
REPLAY_BLOCK, REPLAY_PAIRS = 5, 60
CURATOR_RUNS = 1000
FITS = 80


@dataclass(frozen=True)
class Found:
    """What a check found, and after how many pairs or runs."""

    violations: list[str]
    effort: str


@dataclass(frozen=True)
class Subject:
    """A method with parameters at a level."""

    method: str
    level: str
    epsilon: float = 1.0
    parameters: tuple[tuple[str, Any], ...] = ()

    def estimator(self) -> NodeClassifier:
        """Made anew each time, so that a planted fault is in it."""
        estimator = find_method(self.method).load()(Privacy(parse_level(self.level), self.epsilon, DELTA))
        estimator.set_params(**dict(self.parameters))
        return cheap(estimator, kept=dict(self.parameters))


def small(rng: np.random.Generator) -> Any:
    """Graphs of one size, so that one calibration does."""
    return small_graph(rng, num_nodes=NODES)


def replay(subject: Subject) -> Found:
    """Pairs in blocks, until something is found."""
    for block in range(REPLAY_PAIRS // REPLAY_BLOCK):
        report = replay_audit(subject.estimator(), small, pairs=REPLAY_BLOCK, seed=block)
        if report.violations:
            return Found(report.violations, f"{REPLAY_BLOCK * (block + 1)} pairs")
    return Found([], f"{REPLAY_PAIRS} pairs")


def curator(subject: Subject) -> Found:
    """The curator at its declared worst: lower bound on ε, and the tests of noise."""
    plan = subject.estimator().plan(small(np.random.default_rng(0)).public)
    return Found(audit_curator(plan, runs=CURATOR_RUNS).violations, f"{CURATOR_RUNS} runs a side")


def fits(subject: Subject) -> Found:
    """Whole fits on the worst of a few pairs."""
    estimator = subject.estimator()
    report = audit_pipeline(estimator, worst_pair(estimator, tries=3), runs=FITS)
    return Found(report.violations, f"{FITS} fits a side")


CHECKS: dict[str, Callable[[Subject], Found]] = {"replay": replay, "curator": curator, "fits": fits}
