"""The checks that faults are held against, each on a subject, each giving what it found and how far it had to go."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from discreet.audit.fresh_process import fresh_process_faults
from discreet.audit.replay import ReplayReport, replay_broken_promises, replay_crowd, replay_pair
from discreet.audit.small_graphs import graph_at, small_graph, with_weights
from discreet.audit.statistical import audit_curator, audit_pipeline
from discreet.audit.subjects import cheap
from discreet.audit.worst_pairs import NODES, worst_pair
from discreet.errors import ParameterError, PrivateDataError
from discreet.methods.base import NodeClassifier
from discreet.methods.registry import find_method, load_method
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import Level, parse_level
from discreet.privacy.plan import Plan, Stage, make_plan
from discreet.queries.sampled_nodes import NodeSample
from discreet.queries.sampled_nodes import SampledNodes as SampledNodesQuery
from tests.effort import BLOCK, caught, replay_until
from tests.mechanisms.draws import given_stage

DELTA = 1e-3
ALPHA = 1e-6
"""How often a check finds something where nothing is: rare enough for a test suite that draws from entropy."""
REPLAY_PAIRS = 60
CURATOR_RUNS = 1000
FITS = 70
"""Hardly more than an audit of whole fits asks for."""


@dataclass(frozen=True)
class Found:
    """What a check found, and after how many pairs or runs."""

    violations: list[str]
    effort: str
    pairs: int = 0
    """Of those of :func:`replay`: how many it looked at."""


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

    @property
    def where(self) -> str:
        """What the table says."""
        return f"`{self.method}` at `{self.level}`"

    def estimator(self) -> NodeClassifier:
        """Made anew each time, so that a planted fault is in it."""
        estimator = load_method(find_method(self.method))(Privacy(parse_level(self.level), self.epsilon, DELTA))
        estimator.set_params(**dict(self.parameters))
        return cheap(estimator, kept=dict(self.parameters))


@dataclass(frozen=True)
class SampledNodes(Subject):
    """No method: a Gaussian stage after a Poisson sample of the nodes, as ``ops`` and ``privacy`` offer it."""

    rate: float = 0.05

    @property
    def where(self) -> str:
        """What the table says."""
        return "accounting"

    def plan(self) -> Plan:
        """The sample, then one Gaussian."""
        sampling = Stage.of("nodes", SampledNodesQuery(NodeSample(self.rate)))
        stages = [sampling, given_stage("sum", (4,))]
        return make_plan("sampled", Privacy(parse_level(self.level), self.epsilon, DELTA), NODES, stages, "weights")


@dataclass(frozen=True)
class SuiteTest(Subject):
    """No method: a test of the suite, as ``module:function`` with its arguments. ``method`` is its file."""

    arguments: tuple[Any, ...] = ()

    @property
    def where(self) -> str:
        """What the table says."""
        return f"what `{self.method}` tests"


def small(rng: np.random.Generator) -> Any:
    """Graphs of one size, so that one calibration does."""
    return small_graph(rng, num_nodes=NODES)


def kept_by(level: Level) -> Callable[[np.random.Generator], Any]:
    """Such graphs, within the promise of the level where it makes one."""
    if getattr(level, "edges", None) != "promised":
        return small
    return lambda rng: graph_at(level, rng, NODES)


def _found(planted: str | None) -> Callable[[ReplayReport], bool]:
    """Whether a report says what the planted fault was named for."""
    if planted is None:
        return caught
    from tests.soundness.faults.table import FAULTS

    says = FAULTS[planted].says
    return lambda report: any(says in violation for violation in report.violations)


def replay(subject: Subject, planted: str | None = None, most: int = REPLAY_PAIRS) -> Found:
    """Pairs, until what was planted is found, or anything where nothing was."""
    estimator, graphs = subject.estimator(), kept_by(parse_level(subject.level))
    report = replay_until(_found(planted), estimator, graphs, most=most, least=1)
    return Found(report.violations, f"{report.pairs} pairs", report.pairs)


def weights(subject: Subject, planted: str | None = None) -> Found:
    """Pairs of graphs whose edges have weights."""
    estimator, done = subject.estimator(), _found(planted)
    report = replay_until(done, estimator, lambda rng: with_weights(small(rng), rng), most=2 * BLOCK, least=1)
    return Found(report.violations, f"{report.pairs} pairs")


def crowd(subject: Subject, planted: str | None = None) -> Found:
    """A pair of many training nodes, in small portions and in one."""
    found = replay_crowd(subject.estimator(), ReplayReport())
    return Found(found.violations, f"{found.pairs} pairs")


def refusals(subject: Subject, planted: str | None = None) -> Found:
    """Pairs that are refused on both sides."""
    estimator, report = subject.estimator(), ReplayReport()
    replay_broken_promises(estimator, report)
    level, rng = parse_level(subject.level), np.random.default_rng(0)
    if level.kind == "local":
        for _ in range(BLOCK):
            graph = small(rng)
            with suppress(ParameterError):
                replay_pair(estimator, graph, level.neighbor(graph, rng), report=report)
    return Found(report.violations, "a few pairs")


def process(subject: Subject, planted: str | None = None) -> Found:
    """A fit after another, and the same in a fresh process, in which the fault is planted too."""
    estimator = subject.estimator()
    pair = worst_pair(estimator, tries=0)
    prepare = None if planted is None else partial(plant_in_this_process, planted)
    return Found(fresh_process_faults(estimator, pair.graph, pair.neighbor, prepare=prepare), "1 pair")


def plant_in_this_process(name: str) -> None:
    """In a process that a check started."""
    from tests.soundness.faults.table import FAULTS

    FAULTS[name].plant(pytest.MonkeyPatch())


def suite(subject: Subject, planted: str | None = None) -> Found:
    """One test of the suite."""
    assert isinstance(subject, SuiteTest)
    module, function = subject.level.split(":")
    try:
        getattr(importlib.import_module(module), function)(*subject.arguments)
    except (AssertionError, pytest.fail.Exception):
        return Found([f"{function} fails"], "1 run")
    return Found([], "1 run")


def curator(subject: Subject, planted: str | None = None) -> Found:
    """The curator at its declared worst: lower bound on ε, and the tests of noise."""
    return Found(
        audit_curator(subject.plan(), runs=subject.runs, alpha=ALPHA).violations, f"{subject.runs} runs per side"
    )


def fits(subject: Subject, planted: str | None = None) -> Found:
    """Whole fits on the worst of a few pairs."""
    estimator = subject.estimator()
    report = audit_pipeline(estimator, worst_pair(estimator, tries=3), runs=FITS, alpha=ALPHA)
    return Found(report.violations, f"{FITS} fits per side")


def guard(subject: Subject, planted: str | None = None) -> Found:
    """One fit beside a further graph, and its covered predictions: code that reaches for private data raises."""
    rng = np.random.default_rng(0)
    graph, further = small(rng), small(rng)
    estimator = subject.estimator()
    try:
        estimator.fit(graph, extra_graphs=[further]).predict_proba(graph, audience="owner")
    except PrivateDataError as error:
        return Found([str(error)], "1 fit")
    return Found([], "1 fit")


CHECKS: dict[str, Callable[[Subject, str | None], Found]] = {
    "guard": guard,
    "replay": replay,
    "refusals": refusals,
    "crowd": crowd,
    "weights": weights,
    "process": process,
    "curator": curator,
    "fits": fits,
    "suite": suite,
}
