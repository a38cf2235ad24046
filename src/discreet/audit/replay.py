"""The replay audit: conditioned on the same outputs, does every stage move as little as its plan says?

A method is fitted on a graph while everything that enters and leaves each stage is recorded; then on a
neighbour, with the curator *replaying* the recorded outputs. At each stage the two inputs must be within
the declared sensitivity, in the mechanism's own metric, and everything public must be identical. That is
what adaptive composition asks of each stage, and it needs no statistics.

Replay falsifies; it does not prove. It cannot see the scale, reuse or dependence of noise: the tests of the
noise source and the statistical audit do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from discreet.arrays import Array
from discreet.audit.compare import differences, fitted_attributes, public_graph_faults, release_faults, words_faults
from discreet.audit.left_behind import watched
from discreet.audit.recording import (
    ADVERSARIES,
    TOLERANCE,
    OtherSecretsCurator,
    Record,
    RecordingCurator,
    ReplayingCurator,
    dense,
)
from discreet.audit.refusals import OneSidedRefusalError, check_refusals, refusal
from discreet.audit.small_graphs import graph_at, star
from discreet.audit.streams import stream_faults
from discreet.errors import CertificateError, GraphError, ParameterError, PlanViolationError, UnsupportedError
from discreet.graph.convert import as_graph
from discreet.graph.given import as_generator
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart, PublicPart
from discreet.limits import SAMPLES, shown
from discreet.mechanisms import dpsgd
from discreet.mechanisms.bits import NoiseSource, registered_streams
from discreet.mechanisms.curator import MECHANISMS
from discreet.mechanisms.local import stages as local_stages
from discreet.methods.base import NodeClassifier
from discreet.privacy.levels import NoPrivacy
from discreet.privacy.plan import Plan, Stage
from discreet.queries.gradients import LEAST_AT_ONCE, METRIC, MOST_AT_ONCE

_PATIENCE = 50
"""Draws until one has the public facts of the first pair; without any, a plan is calibrated for it."""
_EXTRA_EVERY = 4
"""Every so many pairs a further graph is fitted beside the first."""
CROWD = 100
"""Nodes of a pair with more training nodes than one portion holds."""
_SECRETS_EVERY = 5
"""Every so many pairs the first graph is fitted again with other batches and keys."""

METRICS: dict[str, Callable[[Array, Array], float]] = {
    "l2": lambda a, b: float(np.linalg.norm((a - b).astype(np.float64).ravel())),
    "l1": lambda a, b: float(np.abs(a - b).astype(np.float64).sum()),
    "linf": lambda a, b: float(np.abs(a - b).max(initial=0.0)),
    "rows-l2-sum": lambda a, b: float(np.linalg.norm((a - b).astype(np.float64), axis=1).sum()),
    "rows": lambda a, b: float((a != b).reshape(len(a), -1).any(axis=1).sum()),
}


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
    micro_batch: int | None = None,
    other_secrets: bool = False,
    report: ReplayReport | None = None,
) -> ReplayReport:
    """Audit one pair of neighbouring graphs and add what is found to the report.

    ``extra`` is a further pair of neighbours, fitted beside them as one of ``extra_graphs``. ``micro_batch`` forces the
    portions in which steps are computed; ``other_secrets`` fits the graph once more, with the same answers and other
    batches and keys. That the method refuses one side is a violation, and so are two refusals in different words;
    where it refuses both alike, its error is raised and the pair does not count.
    """
    report = ReplayReport() if report is None else report
    options = {"adversary": adversary, "seed": seed, "micro_batch": micro_batch}
    try:
        _replay_pair(estimator, graph, neighbor, extra, options, other_secrets, report)
    except OneSidedRefusalError as error:
        report.violations.append(str(error))
    report.pairs += 1
    return report


def _replay_pair(
    estimator: NodeClassifier,
    graph: Graph,
    neighbor: Graph,
    extra: tuple[Graph, Graph] | None,
    options: dict[str, Any],
    other_secrets: bool,
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
        recorder, player = replayed(first, second, graphs, neighbors, plan, **options)
        if other_secrets and (recorder.batches or recorder.keys):
            report.violations.extend(_secret_faults(first, graphs, recorder, options["seed"]))
    except (PlanViolationError, CertificateError) as error:
        report.violations.append(f"the fit left its plan: {error}")
        return
    report.violations.extend([*recorder.faults, *player.faults, *words_faults(recorder.words, player.words)])
    _compare_stages(plan, recorder.records, player.records, report)
    report.violations.extend(release_faults(first, second, graphs, neighbors))
    if other_secrets:
        report.violations.extend(public_graph_faults(first, second, graph))


def _secret_faults(first: NodeClassifier, graphs: Sequence[Graph], recorder: RecordingCurator, seed: int) -> list[str]:
    """What follows a secret batch or key though the answers were the same."""
    again = clone(first)
    parts, private = split_all(again, graphs)
    player = OtherSecretsCurator(recorder.plan, NoiseSource(insecure_seed=seed + 2), private, recorder)
    refused = refusal(lambda: _fit(again, parts, player))
    if refused is not None:
        return [f"whether a graph is refused depends on a secret batch or key: {refused}"]
    found = [
        f"{name} at the entry of stage {one.stage!r}"
        for one, two in zip(recorder.records, player.records, strict=True)
        for name in differences(one.public_state, two.public_state)
    ]
    found += [f"{name} of the release" for name in differences(first._state(), again._state())]
    found += [
        f"attribute {name} of the estimator" for name in differences(fitted_attributes(first), fitted_attributes(again))
    ]
    found += ["what is said"] if words_faults(recorder.words, player.words) else []
    return [f"{what} follows a secret batch or key" for what in found]


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
    micro_batch: int | None = None,
) -> tuple[RecordingCurator, ReplayingCurator]:
    """Fit the first on the graphs and the second on their neighbours with the same answers; what both curators saw.

    Raises :class:`OneSidedRefusalError` where one is refused, and the method's own error where both are.
    """
    rng = np.random.default_rng(seed)
    (parts, private), (other_parts, other_private) = (split_all(first, side) for side in (graphs, neighbors))
    recorder = RecordingCurator(plan, NoiseSource(insecure_seed=seed), private, ADVERSARIES[adversary], rng)
    recorder.micro_batch = micro_batch
    refused = refusal(lambda: _fit(first, parts, recorder))
    player = ReplayingCurator(plan, NoiseSource(insecure_seed=seed + 1), other_private, recorder)
    player.micro_batch = micro_batch
    check_refusals(refused, refusal(lambda: _fit(second, other_parts, player)))
    return recorder, player


def _fit(estimator: NodeClassifier, parts: Sequence[PublicPart], curator: RecordingCurator) -> None:
    """Fit, and note what was said, progress included, and what was left behind."""
    replays, queries = isinstance(curator, ReplayingCurator), [stage.query for stage in curator.plan.stages]
    told: list[str] = []
    with registered_streams() as streams, watched("fit", estimator, again=replays, queries=queries) as seen:
        estimator._fit_with(parts, curator, lambda *step: told.append(f"progress {step}"))
    curator.words = [*seen.words, *told]
    curator.faults.extend(seen.faults)
    if not replays:
        curator.faults.extend(stream_faults(curator.plan, streams))


def split_all(estimator: NodeClassifier, graphs: Sequence[Graph]) -> tuple[list[PublicPart], list[PrivatePart]]:
    """The public and the private parts of graphs, as the estimator's level splits them."""
    level = estimator.checked_privacy().level
    split = [level.split(graph) for graph in graphs]
    return [public for public, _ in split], [private for _, private in split]


def replay_audit(
    estimator: NodeClassifier,
    graphs: Callable[[np.random.Generator], Graph],
    *,
    pairs: int,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
    report: ReplayReport | None = None,
) -> ReplayReport:
    """Audit many pairs: graphs from a sampler, neighbours from the level, outputs from every adversary.

    Pairs of which the method refuses both sides are left out. What is found is added to ``report``, where one is given.
    """
    if not isinstance(estimator, NodeClassifier):
        raise ParameterError(f"an audit takes an estimator such as GAP(privacy), not {shown(estimator)}")
    if not callable(graphs):
        raise ParameterError(f"graphs must be a function that draws a graph with a generator, not {shown(graphs)}")
    SAMPLES.check("pairs", pairs)
    report = ReplayReport() if report is None else report
    rng = as_generator(seed)
    level = _level_of(estimator)
    names = list(ADVERSARIES)
    for number in range(pairs):
        pair = _draw_pair(level, graphs, rng)
        extra = _draw_extra(estimator, pair, graphs, rng) if number % _EXTRA_EVERY == _EXTRA_EVERY - 1 else None
        name = names[number % len(names)]
        with suppress(GraphError):
            secrets = number % _SECRETS_EVERY == 0
            replay_pair(
                estimator, *pair, extra=extra, adversary=name, seed=number, other_secrets=secrets, report=report
            )
        if progress is not None:
            progress("replay", number + 1, pairs)
    if pairs and not report.pairs:
        raise UnsupportedError(f"{estimator.method} refuses every small graph that the audit drew")
    return report


def replay_crowd(estimator: NodeClassifier, report: ReplayReport, *, seed: int = 0) -> ReplayReport:
    """A pair with more training nodes than one portion of a step holds, in small portions and in one.

    For methods that take noisy steps: what a portion does with its terms shows only where there are several, or many.
    """
    level, rng = _level_of(estimator), np.random.default_rng(seed)
    graph = level.view(graph_at(level, rng, CROWD))
    pair = graph, level.neighbor(graph, rng)
    if any(stage.metric == METRIC for stage in estimator.plan(graph.public).stages):
        for micro_batch in (LEAST_AT_ONCE, MOST_AT_ONCE):
            with suppress(GraphError):
                replay_pair(estimator, *pair, micro_batch=micro_batch, seed=seed, report=report)
    return report


def replay_broken_promises(estimator: NodeClassifier, report: ReplayReport) -> ReplayReport:
    """Two neighbours that both break the promise of their level: both are refused, and must be in the same words."""
    level = _level_of(estimator)
    bound = {"promised": "max_degree", "thinned": "d_max"}.get(getattr(level, "edges", ""))
    most = getattr(level, bound) if bound else None
    if most is None:
        return report
    for hub, leaves in ((0, most + 2), (1, most + 1)):
        graph = star(most + 4, hub=0, leaves=most + 1)
        with suppress(GraphError):
            replay_pair(estimator, graph, star(most + 4, hub=hub, leaves=leaves), report=report)
    return report


def _draw_pair(level: Any, graphs: Callable[[np.random.Generator], Graph], rng: np.random.Generator) -> Any:
    graph = level.view(as_graph(graphs(rng)))
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
    level = estimator.checked_privacy().level
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
        if one.form != two.form:
            report.violations.append(
                f"what stage {stage.name!r} is asked is {one.form} on one side and {two.form} on the other"
            )
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
