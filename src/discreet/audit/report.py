"""The whole audit: replay, then statistics, and a report that can be kept beside a certificate."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pickle import PicklingError
from typing import Any

import numpy as np
from sklearn.base import clone

from discreet.audit.fresh_process import fresh_process_faults
from discreet.audit.one_run import audit_one_run
from discreet.audit.replay import ReplayReport, replay_audit, replay_broken_promises, replay_crowd, replay_pair
from discreet.audit.small_graphs import graph_at, with_weights
from discreet.audit.statistical import ALPHA, SHARES, StatisticalReport, audit_curator, audit_pipeline
from discreet.audit.subjects import Subject
from discreet.audit.worst_pairs import NODES, shaped_pairs, worst_pair
from discreet.errors import GraphError, ParameterError, UnsupportedError
from discreet.files import check_free, to_json, write_whole
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.methods.parameters import stored
from discreet.privacy.certificate import AUDIT_SCHEMA, audit_digest
from discreet.privacy.levels import Level

Progress = Callable[[str, int, int], None]
LEAST_RUNS = 80
"""Half of them choose a test and half prove: see ``audit.bounds``."""
_MOST_ASKED = 2_000_000
"""Numbers that all runs of one plan may draw together, so that an audit ends in minutes."""
_CROWDED = 1e-3
"""Canaries times delta: above it the delta of so many canaries together hides what they would show."""
_LEAST_HIDDEN = 16
"""Units of a hidden layer: with fewer, the gradients of canaries overlap."""
CAVEAT = (
    "An audit falsifies; it does not prove. A bound on epsilon from below says what an attack achieved on small "
    "graphs, not what the best attack could."
)


_WEIGHTS_EVERY = 4
"""Beside so many pairs without weights of edges, one with."""


@dataclass(frozen=True)
class Effort:
    """How hard to try: pairs for replay, whole fits per side, runs of the curator per side, and pairs to search.

    With ``canaries`` one more fit is made, on a graph of that many canary nodes.
    """

    pairs: int = 100
    fits: int = 200
    samples: int = 20_000
    tries: int = 60
    canaries: int = 0
    workers: int = 0
    alpha: float = ALPHA
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse an effort that can show nothing."""
        for name in ("fits", "samples"):
            if getattr(self, name) and getattr(self, name) < LEAST_RUNS:
                raise ParameterError(f"{name} must be 0 (leave that part out) or at least {LEAST_RUNS}")
        if self.canaries and self.canaries < LEAST_RUNS:
            raise ParameterError(f"canaries must be 0 (leave that part out) or at least {LEAST_RUNS}")
        if not 0 < self.alpha < 0.5:
            raise ParameterError(f"alpha must lie between 0 and 0.5, not {self.alpha}")


@dataclass(frozen=True)
class AuditReport:
    """What both halves found."""

    subject: dict[str, Any]
    replay: ReplayReport
    statistical: StatisticalReport

    @property
    def violations(self) -> list[str]:
        """What contradicts the guarantee, replay first."""
        return [*_distinct(self.replay.violations), *self.statistical.violations]

    @property
    def passed(self) -> bool:
        """Whether nothing does."""
        return not self.violations

    def to_json(self) -> dict[str, Any]:
        """The report as plain values, with a digest of its own."""
        content = {
            "schema": AUDIT_SCHEMA,
            **self.subject,
            "passed": self.passed,
            "violations": self.violations,
            "replay": {"pairs": self.replay.pairs, "largest_ratio": self.replay.ratio},
            "statistics": self.statistical.to_json(),
            "caveat": CAVEAT,
        }
        written = to_json(content)
        return {**written, "digest": audit_digest(written)}

    def to_bytes(self) -> bytes:
        """The report as the content of a file."""
        return (json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n").encode()

    def rows(self) -> list[dict[str, str]]:
        """The report as a table."""
        found = self.statistical
        ratios = ", ".join(f"{name} {value:.4g}" for name, value in self.replay.ratio.items()) or "no stage"
        rows = [
            _row("replay", f"{self.replay.pairs} pairs", f"largest change over declared: {ratios}", self.replay.passed)
        ]
        for name, bound in (("curator", found.curator), ("pipeline", found.pipeline)):
            if bound is not None:
                smooth = bound.epsilon_if_gaussian
                also = "" if smooth is None else f"; {smooth:.3f} if Gaussian"
                result = f"epsilon at least {bound.epsilon:.3f} of {found.epsilon:g}{also}"
                rows.append(_row(name, f"{bound.judged} judged per side", result, bound.epsilon <= found.epsilon))
        if found.one_run is not None:
            one = found.one_run
            result = (
                f"epsilon at least {one.epsilon:.3f} of {found.epsilon:g}: {one.correct} of {one.guesses} guesses right"
            )
            rows.append(_row("one run", f"{one.canaries} canaries", result, one.epsilon <= found.epsilon))
        if found.checks:
            worst = min(found.checks, key=lambda check: check.p_value)
            result = f"least p-value {worst.p_value:.2g}: {worst.name}, {worst.stage}"
            rows.append(_row("noise", f"{len(found.checks)} tests", result, not found.unlikely and not found.faults))
        return rows


def _row(part: str, effort: str, result: str, passed: bool) -> dict[str, str]:
    return {"part": part, "effort": effort, "result": result, "": "ok" if passed else "VIOLATION"}


MOST_SENTENCES = 10
"""Violations that a report lists: one fault makes hundreds, and the first tell what it is."""


def _distinct(sentences: list[str]) -> list[str]:
    """Each sentence once, and not too many."""
    return list(dict.fromkeys(sentences))[:MOST_SENTENCES]


def run_audit(subject: Subject, effort: Effort, progress: Progress | None = None) -> AuditReport:
    """Replay over many pairs; then the curator at its declared worst, and whole fits on the worst pair found."""
    estimator = subject.fitted
    privacy = estimator.checked_privacy()
    graphs = partial(_graph, level=privacy.level)
    replay = replay_audit(estimator, graphs, pairs=effort.pairs, seed=effort.seed, progress=progress)
    _replay_weights(estimator, replay, pairs=-(-effort.pairs // _WEIGHTS_EVERY), seed=effort.seed)
    _replay_shapes(estimator, replay)
    replay_crowd(estimator, replay, seed=effort.seed)
    replay_broken_promises(estimator, replay)
    try:
        pair = worst_pair(estimator, tries=effort.tries, seed=effort.seed, progress=progress, report=replay)
    except UnsupportedError:
        if replay.passed:
            raise
        delta = privacy.resolve_delta(NODES)  # refuted already, and there is no pair to fit
        return AuditReport(_subject(subject, delta), replay, StatisticalReport(privacy.epsilon, delta, effort.alpha))
    plan = subject.planned.plan(pair.graph.public)
    found = StatisticalReport(privacy.epsilon, plan.delta, effort.alpha)
    try:
        replay.violations.extend(fresh_process_faults(estimator, pair.graph, pair.neighbor))
    except (PicklingError, AttributeError, ImportError, OSError):  # a process that ended is an error of the system too
        found.notes.append(
            "the method could not be fitted in another process: what a fit leaves in caches was not seen, nor were "
            "files that compiled code writes"
        )
    options: dict[str, Any] = {"alpha": effort.alpha, "workers": effort.workers, "progress": progress, "report": found}
    asked = max(1, sum(stage.runs for stage in plan.stages))
    if effort.samples:
        audit_curator(plan, runs=max(LEAST_RUNS, min(effort.samples, _MOST_ASKED // asked)), **options)
    if effort.fits:
        audit_pipeline(estimator, pair, runs=effort.fits, **options)
    if effort.canaries:
        share = effort.alpha * SHARES["one run"]
        if effort.canaries * plan.delta > _CROWDED:
            found.notes.append(
                f"delta {plan.delta:g} is too large for {effort.canaries} canaries to show much: take less"
            )
        found.one_run = audit_one_run(_wide(subject.planned), canaries=effort.canaries, alpha=share, seed=effort.seed)
    return AuditReport(_subject(subject, plan.delta), replay, found)


def _replay_weights(estimator: NodeClassifier, report: ReplayReport, *, pairs: int, seed: int) -> None:
    """Pairs of graphs whose edges have weights, where the method reads them; an edge with another weight is another."""
    level = estimator.checked_privacy().level

    def graphs(rng: np.random.Generator) -> Graph:
        return with_weights(graph_at(level, rng, NODES), rng)

    try:
        estimator.plan(graphs(np.random.default_rng(seed)).public)
    except UnsupportedError:  # from public facts; what refuses later, with the graph before it, is a fault
        return
    replay_audit(estimator, graphs, pairs=pairs, seed=seed, report=report)


def _replay_shapes(estimator: NodeClassifier, report: ReplayReport) -> None:
    """Pairs made by hand, where most of what one unit can do happens at once; a method may refuse some, both sides."""
    for number, pair in enumerate(shaped_pairs(estimator.checked_privacy().level)):
        with suppress(GraphError):
            replay_pair(estimator, *pair, seed=number, report=report)


def _wide(estimator: NodeClassifier) -> NodeClassifier:
    """Hidden layers in which the gradients of many canaries can be told apart."""
    found = clone(estimator)
    return found.set_params(hidden=max(_LEAST_HIDDEN, found.hidden)) if hasattr(found, "hidden") else found


def _graph(rng: np.random.Generator, *, level: Level) -> Graph:
    """Graphs of three sizes, for every size is another plan, and some plans take seconds to calibrate."""
    return graph_at(level, rng, int(rng.choice((5, NODES, 12))))


def _subject(subject: Subject, delta: float) -> dict[str, Any]:
    estimator = subject.planned
    privacy = estimator.checked_privacy()
    return {
        "method": estimator.method,
        "level": privacy.level.spec,
        "epsilon": privacy.epsilon,
        "delta": delta,
        "params": stored(estimator.get_params(deep=False)),
        "release": subject.release,
    }


def write_report(report: AuditReport, path: Path) -> None:
    """Write the report as JSON to a file that does not exist yet, whole or not at all."""
    check_free(path)
    write_whole(path, report.to_bytes())
