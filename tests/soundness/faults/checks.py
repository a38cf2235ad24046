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
from discreet.errors import PrivateDataError
from discreet.methods.base import NodeClassifier
from discreet.methods.registry import find_method, load_method
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level
from discreet.privacy.plan import Plan, Stage, make_plan
from discreet.queries.sampled_nodes import NodeSample
from discreet.queries.sampled_nodes import SampledNodes as SampledNodesQuery
from tests.mechanisms.draws import given_stage

DELTA = 1e-3
ALPHA = 1e-6
"""How often a check finds something where nothing is: rare enough for a test suite that draws from entropy."""
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
    runs: int = CURATOR_RUNS

    def plan(self) -> Plan:
        """What the curator is asked to run."""
        return self.estimator().plan(small(np.random.default_rng(0)).public)

    def estimator(self) -> NodeClassifier:
        """Made anew each time, so that a planted fault is in it."""
        estimator = load_method(find_method(self.method))(Privacy(parse_level(self.level), self.epsilon, DELTA))
        estimator.set_params(**dict(self.parameters))
        return cheap(estimator, kept=dict(self.parameters))


@dataclass(frozen=True)
class SampledNodes(Subject):
    """No method: a Gaussian stage after a Poisson sample of the nodes, as ``ops`` and ``privacy`` offer it."""

    rate: float = 0.05

    def plan(self) -> Plan:
        """The sample, then one Gaussian."""
        sampling = Stage.of("nodes", SampledNodesQuery(NodeSample(self.rate)))
        stages = [sampling, given_stage("sum", (4,))]
        return make_plan("sampled", Privacy(parse_level(self.level), self.epsilon, DELTA), NODES, stages, "weights")


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
    return Found(
        audit_curator(subject.plan(), runs=subject.runs, alpha=ALPHA).violations, f"{subject.runs} runs a side"
    )


def fits(subject: Subject) -> Found:
    """Whole fits on the worst of a few pairs."""
    estimator = subject.estimator()
    report = audit_pipeline(estimator, worst_pair(estimator, tries=3), runs=FITS, alpha=ALPHA)
    return Found(report.violations, f"{FITS} fits a side")


def guard(subject: Subject) -> Found:
    """One fit beside a further graph, and its covered predictions: code that reaches for private data raises."""
    rng = np.random.default_rng(0)
    graph, further = small(rng), small(rng)
    estimator = subject.estimator()
    try:
        estimator.fit(graph, extra_graphs=[further]).predict_proba(graph, audience="owner")
    except PrivateDataError as error:
        return Found([str(error)], "1 fit")
    return Found([], "1 fit")


CHECKS: dict[str, Callable[[Subject], Found]] = {"guard": guard, "replay": replay, "curator": curator, "fits": fits}
