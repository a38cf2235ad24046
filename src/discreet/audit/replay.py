"""The replay audit: conditioned on the same outputs, does every stage move as little as its plan says?

A method is fitted on a graph while everything that enters and leaves each stage is recorded; then on a
neighbour, with the curator *replaying* the recorded outputs. At each stage the two inputs must be within
the declared sensitivity, in the mechanism's own metric, and everything public must be identical. That is
what adaptive composition asks of each stage, and it needs no statistics.

Replay falsifies; it does not prove. It cannot see the scale, reuse or dependence of noise: the tests of the
noise source and the statistical audit do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from discreet.arrays import Array, IntArray
from discreet.audit.compare import differences, release_faults
from discreet.audit.refusals import OneSidedRefusalError, PastTheRefusalError, check_refusals, refusal
from discreet.errors import CertificateError, GraphError, PlanViolationError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart, PublicPart
from discreet.mechanisms import dpsgd
from discreet.mechanisms.curator import MECHANISMS, Curator, Terms
from discreet.mechanisms.local import stages as local_stages
from discreet.mechanisms.noise import NoiseSource
from discreet.methods.base import NodeClassifier
from discreet.privacy.levels import NoPrivacy
from discreet.privacy.plan import Plan, Stage
from discreet.queries.gradients import METRIC

_T = TypeVar("_T")
Adversary = Callable[[Array, np.random.Generator], Array]

# Float32 sums of a few hundred unit rows carry rounding of this relative size.
TOLERANCE = 1e-5
_PATIENCE = 50
_EXTRA_EVERY = 4
"""Every so many pairs a further graph is fitted beside the first."""

METRICS: dict[str, Callable[[Array, Array], float]] = {
    "l2": lambda a, b: float(np.linalg.norm((a - b).astype(np.float64).ravel())),
    "l1": lambda a, b: float(np.abs(a - b).astype(np.float64).sum()),
    "linf": lambda a, b: float(np.abs(a - b).max(initial=0.0)),
    "rows-l2-sum": lambda a, b: float(np.linalg.norm((a - b).astype(np.float64), axis=1).sum()),
    "rows": lambda a, b: float((a != b).reshape(len(a), -1).any(axis=1).sum()),
}

# What an adversary might have made the noise come out as: the bound must hold after any of these.
ADVERSARIES: dict[str, Adversary] = {
    "own": lambda value, rng: value,
    "zeros": lambda value, rng: np.zeros_like(value),
    "huge": lambda value, rng: value * np.float32(1e6),
    "sign-flipped": lambda value, rng: -value,
    "random": lambda value, rng: rng.standard_normal(value.shape).astype(value.dtype),
}


@dataclass
class Record:
    """What was seen at one run of one stage."""

    stage: str
    run: int
    value: Array
    answer: Array
    public_state: Mapping[str, Array]


class RecordingCurator(Curator):
    """Runs the plan as usual, through an adversary, and keeps what it saw."""

    def __init__(
        self,
        plan: Plan,
        noise: NoiseSource,
        private: Sequence[PrivatePart],
        adversary: Adversary,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(plan, noise, private)
        self.records: list[Record] = []
        self.batches: list[IntArray] = []
        self.keys: list[bytes] = []
        self.faults: list[str] = []
        self._adversary = adversary
        self._rng = rng

    def _answer(self, stage: Stage, run: int, value: Any) -> Array:
        state, value = self._watched_state(), dense(value)
        honest = dense(super()._answer(stage, run, value))
        answer = local_stages.in_alphabet(self._adversary(honest, self._rng), stage)
        self.records.append(Record(stage.name, run, value.copy(), answer.copy(), dict(state)))
        return answer

    def _batch(self, stage: Stage, run: int) -> IntArray:
        self.batches.append(super()._batch(stage, run))
        self.faults.extend(batch_faults(stage, self.batches[-1]))
        return self.batches[-1]

    def _draw_key(self, name: str, run: int) -> bytes:
        self.keys.append(super()._draw_key(name, run))
        return self.keys[-1]

    def _answer_step(self, stage: Stage, run: int, batch: IntArray, value: Array, terms: Terms) -> Array:
        """Record the clipped terms of *all* examples, whichever the batch holds, and check that they are its sum."""
        state, every_term = self._watched_state(), self._every_term(stage, batch, value, terms)
        answer = self._adversary(super()._answer_step(stage, run, batch, value, terms), self._rng)
        self.records.append(Record(stage.name, run, every_term, answer.copy(), dict(state)))
        return answer

    def _every_term(self, stage: Stage, batch: IntArray, value: Array, terms: Terms) -> Array:
        found = terms().astype(np.float64)
        allowed = TOLERANCE * (1 + len(batch)) * dpsgd.steps_of(stage).clip_norm
        if np.linalg.norm(found[batch].sum(axis=0) - value) > allowed:
            self.faults.append(f"what stage {stage.name!r} adds is not the sum of the terms of its batch")
        return found


class ReplayingCurator(RecordingCurator):
    """Hands out recorded answers, batches and keys instead of fresh ones."""

    def __init__(
        self, plan: Plan, noise: NoiseSource, private: Sequence[PrivatePart], recorded: RecordingCurator
    ) -> None:
        super().__init__(plan, noise, private, ADVERSARIES["own"], np.random.default_rng(0))
        self._recorded = recorded

    def _answer(self, stage: Stage, run: int, value: Any) -> Array:
        return self._replay(stage, run, dense(value))

    def _answer_step(self, stage: Stage, run: int, batch: IntArray, value: Array, terms: Terms) -> Array:
        return self._replay(stage, run, self._every_term(stage, batch, value, terms))

    def _replay(self, stage: Stage, run: int, value: Array) -> Array:
        answer = _next(self._recorded.records, self.records).answer.copy()
        self.records.append(Record(stage.name, run, value.copy(), answer.copy(), dict(self._watched_state())))
        return answer

    def _batch(self, stage: Stage, run: int) -> IntArray:
        self.batches.append(_next(self._recorded.batches, self.batches))
        return self.batches[-1]

    def _draw_key(self, name: str, run: int) -> bytes:
        self.keys.append(_next(self._recorded.keys, self.keys))
        return self.keys[-1]


def _next(recorded: list[_T], replayed: list[_T]) -> _T:
    if len(replayed) == len(recorded):
        raise PastTheRefusalError
    return recorded[len(replayed)]


def batch_faults(stage: Stage, batch: IntArray) -> list[str]:
    """What no batch may be, however it was drawn: an example twice, or one that does not exist."""
    if len(np.unique(batch)) < len(batch):
        return [f"a batch of stage {stage.name!r} holds an example twice"]
    if len(batch) and not 0 <= batch.min() <= batch.max() < dpsgd.steps_of(stage).num_examples:
        return [f"a batch of stage {stage.name!r} holds an example that does not exist"]
    return []


@dataclass
class ReplayReport:
    """What the audit found. ``ratio`` is the largest change over declared sensitivity, by stage."""

    pairs: int = 0
    ratio: dict[str, float] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing contradicted the plan."""
        return not self.violations

    @property
    def tightness(self) -> float:
        """The largest ratio seen at any stage."""
        return max(self.ratio.values(), default=0.0)


def replay_pair(
    estimator: NodeClassifier,
    graph: Graph,
    neighbor: Graph,
    *,
    extra: tuple[Graph, Graph] | None = None,
    adversary: str = "own",
    seed: int = 0,
    report: ReplayReport | None = None,
) -> ReplayReport:
    """Audit one pair of neighbouring graphs and add what is found to the report.

    ``extra`` is a further pair of neighbours, fitted beside them as one of ``extra_graphs``. That the method refuses
    one side is a violation; where it refuses both, its error is raised and the pair does not count.
    """
    report = ReplayReport() if report is None else report
    try:
        _replay_pair(estimator, graph, neighbor, extra, adversary, seed, report)
    except OneSidedRefusalError as error:
        report.violations.append(str(error))
    report.pairs += 1
    return report


def _replay_pair(
    estimator: NodeClassifier,
    graph: Graph,
    neighbor: Graph,
    extra: tuple[Graph, Graph] | None,
    adversary: str,
    seed: int,
    report: ReplayReport,
) -> None:
    level = _level_of(estimator)
    pairs = [(graph, neighbor)] if extra is None else [(graph, neighbor), extra]
    graphs, neighbors = ([level.view(pair[side]) for pair in pairs] for side in (0, 1))
    first, second = clone(estimator), clone(estimator)
    plan = common_plan(estimator, graphs, neighbors)
    if plan is None:
        report.violations.append("the two plans differ, so the plan depends on private data")
        return
    try:
        recorder, player = replayed(first, second, graphs, neighbors, plan, adversary=adversary, seed=seed)
    except (PlanViolationError, CertificateError) as error:
        report.violations.append(f"the fit left its plan: {error}")
        return
    report.violations.extend([*recorder.faults, *player.faults])
    _compare_stages(plan, recorder.records, player.records, report)
    report.violations.extend(release_faults(first, second, graphs, neighbors))


def common_plan(estimator: NodeClassifier, graphs: Sequence[Graph], neighbors: Sequence[Graph]) -> Plan | None:
    """The plan of both sides, or None where theirs differ; refusals as in :func:`replayed`."""
    plans: list[Plan] = []
    refused = []
    for sides in (graphs, neighbors):
        public, *extra = [graph.public for graph in sides]
        refused.append(refusal(lambda: plans.append(estimator.plan(public, extra))))  # noqa: B023  (called at once)
    check_refusals(*refused)
    return plans[0] if plans[0] == plans[1] else None


def replayed(
    first: NodeClassifier,
    second: NodeClassifier,
    graphs: Sequence[Graph],
    neighbors: Sequence[Graph],
    plan: Plan,
    *,
    adversary: str = "own",
    seed: int = 0,
) -> tuple[RecordingCurator, ReplayingCurator]:
    """Fit the first on the graphs and the second on their neighbours with the same answers; what both curators saw.

    Raises :class:`OneSidedRefusalError` where one is refused, and the method's own error where both are.
    """
    rng = np.random.default_rng(seed)
    (parts, private), (other_parts, other_private) = (split_all(first, side) for side in (graphs, neighbors))
    recorder = RecordingCurator(plan, NoiseSource(insecure_seed=seed), private, ADVERSARIES[adversary], rng)
    refused = refusal(lambda: first._fit_with(parts, recorder))
    player = ReplayingCurator(plan, NoiseSource(insecure_seed=seed + 1), other_private, recorder)
    check_refusals(refused, refusal(lambda: second._fit_with(other_parts, player)))
    return recorder, player


def split_all(estimator: NodeClassifier, graphs: Sequence[Graph]) -> tuple[list[PublicPart], list[PrivatePart]]:
    """The public and the private parts of graphs, as the estimator's level splits them."""
    level = estimator._checked_privacy().level
    split = [level.split(graph) for graph in graphs]
    return [public for public, _ in split], [private for _, private in split]


def replay_audit(
    estimator: NodeClassifier,
    graphs: Callable[[np.random.Generator], Graph],
    *,
    pairs: int,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> ReplayReport:
    """Audit many pairs: graphs from a sampler, neighbours from the level, outputs from every adversary.

    Pairs of which the method refuses both sides are left out.
    """
    report = ReplayReport()
    rng = np.random.default_rng(seed)
    level = _level_of(estimator)
    names = list(ADVERSARIES)
    for number in range(pairs):
        pair = _draw_pair(level, graphs, rng)
        extra = _draw_extra(estimator, pair, graphs, rng) if number % _EXTRA_EVERY == _EXTRA_EVERY - 1 else None
        name = names[number % len(names)]
        with suppress(GraphError):
            replay_pair(estimator, *pair, extra=extra, adversary=name, seed=number, report=report)
        if progress is not None:
            progress("replay", number + 1, pairs)
    if pairs and not report.pairs:
        raise UnsupportedError(f"{estimator.method} refuses every small graph that the audit drew")
    return report


def _draw_pair(level: Any, graphs: Callable[[np.random.Generator], Graph], rng: np.random.Generator) -> Any:
    graph = level.view(graphs(rng))
    neighbor = level.neighbor(graph, rng)
    return (graph, neighbor) if rng.integers(2) else (neighbor, graph)


def _draw_extra(
    estimator: NodeClassifier,
    pair: tuple[Graph, Graph],
    graphs: Callable[[np.random.Generator], Graph],
    rng: np.random.Generator,
) -> tuple[Graph, Graph] | None:
    """A further pair, its nodes named so that nothing takes it for the first; None where a method takes no extra.

    One of the same public facts is waited for, so that no plan has to be calibrated for it alone.
    """
    for _ in range(_PATIENCE):
        one, two = _draw_pair(_level_of(estimator), graphs, rng)
        if one.public == pair[0].public:
            break
    names = np.array([f"further {node}" for node in range(one.num_nodes)])
    try:
        estimator.plan(pair[0].public, [one.public])
    except UnsupportedError:
        return None
    return replace(one, node_ids=names), replace(two, node_ids=names)


def _level_of(estimator: NodeClassifier) -> Any:
    level = estimator._checked_privacy().level
    if isinstance(level, NoPrivacy):
        raise UnsupportedError("level none promises nothing, so there is nothing to audit")
    return level


def _compare_stages(plan: Plan, first: list[Record], second: list[Record], report: ReplayReport) -> None:
    if [(r.stage, r.run) for r in first] != [(r.stage, r.run) for r in second]:
        report.violations.append("the two fits ran different stages")
        return
    stages = {stage.name: stage for stage in plan.stages}
    for one, two in zip(first, second, strict=True):
        stage = stages[one.stage]
        ratio, fault = _distance(stage, one.value, two.value)
        report.ratio[stage.name] = max(report.ratio.get(stage.name, 0.0), ratio)
        if fault is not None:
            report.violations.append(fault)
        for name in differences(one.public_state, two.public_state):
            report.violations.append(f"{name} differs at the entry of stage {stage.name!r}")


def _distance(stage: Stage, one: Array, two: Array) -> tuple[float, str | None]:
    """How far two inputs are apart, over what is declared, and what is wrong with that, or None."""
    if stage.metric == METRIC:
        return dpsgd.term_distance(stage, one, two, TOLERANCE)
    if local_stages.is_local(stage) and not _sees_one_record(stage, one, two):
        return np.inf, f"a report of stage {stage.name!r} moved with another node's record"
    ratio = METRICS[stage.metric](dense(one), dense(two)) / stage.sensitivity
    if ratio > 1 + TOLERANCE:
        return ratio, f"stage {stage.name!r} moved by {ratio:.6g} times its declared sensitivity"
    return ratio, None


def _sees_one_record(stage: Stage, one: Array, two: Array) -> bool:
    """With the same random numbers, no report but that of the changed record may move."""
    first, second = (dense(MECHANISMS[stage.mechanism](value, stage, np.random.default_rng(0))) for value in (one, two))
    moved, changed = ((a != b).reshape(len(a), -1).any(axis=1) for a, b in ((first, second), (one, two)))
    return not (moved & ~changed).any()


def dense(value: Any) -> Array:
    """The graphs of an audit are small: sparse records and reports are compared as arrays."""
    return np.asarray(value if isinstance(value, np.ndarray) else value.toarray())
