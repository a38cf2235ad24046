"""Which two neighbouring graphs are easiest to tell apart: shapes made by hand, and a search over many small ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import clone

from discreet.arrays import FloatArray
from discreet.audit.recording import RecordingCurator
from discreet.audit.refusals import OneSidedRefusalError
from discreet.audit.replay import METRICS, ReplayReport, common_plan, replayed
from discreet.audit.small_graphs import graph_at
from discreet.errors import GraphError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.mechanisms import topk
from discreet.methods.base import NodeClassifier
from discreet.privacy.events.table import split_sampling
from discreet.privacy.levels import EdgeLevel, Level, LocalLevel, NeighborLevel, NodeLevel
from discreet.privacy.moves import null_record, set_row, toggle, without_edges
from discreet.privacy.plan import Plan, Stage
from discreet.queries.gradients import GradientSteps

NODES = 8
"""All pairs that are searched have this many nodes, so that one or two calibrations do for all of them."""
_COINS = 4
"""Draws of the sample of nodes in which a pair is tried; the worst counts."""


@dataclass(frozen=True)
class WorstPair:
    """Two neighbours and how much their answers differ: the sum over stages of (distance over σ)².

    ``reached`` is the number of stages whose input moves at all.
    """

    graph: Graph
    neighbor: Graph
    score: float
    reached: int = 0


def worst_pair(
    estimator: NodeClassifier,
    *,
    graphs: Callable[[np.random.Generator], Graph] | None = None,
    tries: int,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
    report: ReplayReport | None = None,
) -> WorstPair:
    """The pair with the largest expected privacy loss among hand-made ones and ``tries`` random ones.

    Of pairs with at least half of that loss, those that reach most stages come first: a fault shows only in a stage
    that moves. A pair of which one side alone is refused cannot be scored: it is a violation, which goes to the report.
    """
    level = estimator.checked_privacy().level
    rng = np.random.default_rng(seed)
    if graphs is None:
        graphs = partial(_graph_of, level)
    scored: list[WorstPair] = []
    candidates = [*shaped_pairs(level), *_random_pairs(level, graphs, rng, tries)]
    for number, (graph, neighbor) in enumerate(candidates):
        try:
            found = _scored(estimator, level.view(graph), level.view(neighbor))
            scored.extend([] if found is None else [found])
        except OneSidedRefusalError as error:
            if report is not None:
                report.violations.append(str(error))
        if progress is not None:
            progress("search for the worst pair", number + 1, len(candidates))
    if not scored:
        raise UnsupportedError(f"{estimator.method} refuses every small graph that the audit knows")
    enough = max(pair.score for pair in scored) / 2
    return max((pair for pair in scored if pair.score >= enough), key=lambda pair: (pair.reached, pair.score))


def _graph_of(level: Level, rng: np.random.Generator) -> Graph:
    return graph_at(level, rng, NODES)


def _random_pairs(
    level: Level, graphs: Callable[[np.random.Generator], Graph], rng: np.random.Generator, tries: int
) -> Iterator[tuple[Graph, Graph]]:
    for _ in range(tries):
        graph = level.view(graphs(rng))
        yield graph, level.neighbor(graph, rng)


def _scored(estimator: NodeClassifier, graph: Graph, neighbor: Graph) -> WorstPair | None:
    """None where the method refuses both graphs, or its plan moves, which is for the replay audit to say."""
    try:
        plan = common_plan(estimator, [graph], [neighbor])
        if plan is None:
            return None
        # where nodes are sampled, a pair shows what it can do only if the coin of its unit wins
        draws = range(_COINS if split_sampling(plan.event())[0] < 1 else 1)
        found = [replayed(clone(estimator), clone(estimator), [graph], [neighbor], plan, seed=draw) for draw in draws]
    except GraphError:
        return None
    losses = [expected_losses(plan, *curators) for curators in found]
    worst = max(losses, key=lambda by_stage: sum(by_stage.values()))
    return WorstPair(graph, neighbor, sum(worst.values()), sum(loss > 0 for loss in worst.values()))


def expected_losses(plan: Plan, one: RecordingCurator, two: RecordingCurator) -> dict[str, float]:
    """Σ (distance/σ)² by stage; where a mechanism has no σ, the distance over what is declared."""
    total = dict.fromkeys((record.stage for record in one.records), 0.0)
    for first, second in zip(one.records, two.records, strict=True):
        stage = plan.stage(first.stage)
        apart = (first.value - second.value).astype(np.float64)
        if isinstance(stage.query, GradientSteps):
            rate = stage.query.batch_size / stage.query.num_examples
            moved = rate * float(np.linalg.norm(apart.sum(axis=0))) / stage.noise_std
        elif stage.mechanism == topk.GUMBEL:
            moved = _moved_picks(stage, apart)
        elif stage.metric == "l2" and stage.noise_std > 0:
            moved = float(np.linalg.norm(apart)) / stage.noise_std
        else:
            moved = METRICS[stage.metric](first.value, second.value) / stage.sensitivity
        total[stage.name] += moved**2
    return total


def _moved_picks(stage: Stage, apart: FloatArray) -> float:
    """The loss of all picks: η²/4 (squared) for one whose scores, in units of its noise, move within a range of η."""
    ranges = np.ptp(apart, axis=1) / topk.gumbel_scales(stage)[0]
    return float(np.sqrt(topk.picks_of(stage).picks * np.square(ranges).sum() / 4))


# -------------------------------------------------------------------- by hand


def shaped_pairs(level: Level) -> list[tuple[Graph, Graph]]:
    """The pairs of the soundness notes: what each level's relation can do worst."""
    if isinstance(level, EdgeLevel):
        return [_edge_pair(leaves, level.directed) for leaves in (0, NODES // 2 - 1)]
    if isinstance(level, NodeLevel | NeighborLevel | LocalLevel):
        return _node_pairs(level)
    return []


def _edge_pair(leaves: int, directed: bool) -> tuple[Graph, Graph]:
    """Two nodes, or two stars, whose features are opposite, and the edge between their hubs."""
    source, target = [0] * leaves + [1] * leaves, list(range(2, 2 + 2 * leaves))
    others = NODES - 2 - 2 * leaves
    side = np.array([0, 1] + [0] * leaves + [1] * leaves + [2] * others)
    pair = [_graph(source + more, target + to, side, directed) for more, to in (([], []), ([0], [1]))]
    return pair[0], pair[1]


def _node_pairs(level: Level) -> list[tuple[Graph, Graph]]:
    """A hub that reaches as many as its bound admits, or half of all nodes: where it reaches everyone, picks among
    them all move alike, which shows nothing. On the owned basis also by edges that nobody else has (and beyond its
    bound, which cuts there, and refuses nothing).
    """
    bound = min(int(getattr(level, "max_degree", None) or getattr(level, "d_max", None) or NODES), NODES - 1)
    both_ways = {bound, min(bound, NODES // 2)}
    pairs = [pair for leaves in sorted(both_ways) for pair in _hub_pairs(level, leaves, one_way=False)]
    if _owned(level):
        pairs += [pair for leaves in (NODES // 2, NODES - 1) for pair in _hub_pairs(level, leaves, one_way=True)]
    return pairs


def _owned(level: Level) -> bool:
    return getattr(level, "edges", None) == "owned"


def _hub_pairs(level: Level, leaves: int, one_way: bool) -> list[tuple[Graph, Graph]]:
    """The hub removed, or turned round with its edges kept, dropped, or moved to others; as many as the level says."""
    star = level.view(_graph([0] * leaves, list(range(1, leaves + 1)), np.arange(NODES) % 3, directed=one_way))
    both_ways = not _owned(level)
    if isinstance(level, NodeLevel) and level.change == "null":
        return [(star, without_edges(null_record(star, 0), 0, both_ways=both_ways))]
    turned = star.with_features(set_row(star.features, 0, -np.asarray(star.features)[0]))
    turned = turned.with_labels(np.where(np.arange(star.num_nodes) == 0, 1, star.labels))
    if isinstance(level, LocalLevel) and level.protects != "both":  # the rest is public, and stays
        turned = turned.with_labels(star.labels) if level.protects == "features" else star.with_labels(turned.labels)
    if isinstance(level, NeighborLevel):
        return _few_edges_moved(level, star, turned, leaves, one_way=one_way)
    if not isinstance(level, NodeLevel):
        return [(star, turned)]
    bare = without_edges(turned, 0, both_ways=both_ways)
    moved = toggle(bare, 0, np.arange(max(1, NODES - leaves), NODES), both_ways=both_ways)
    return [(star, turned), (star, bare), (star, moved)]


def _few_edges_moved(
    level: NeighborLevel, star: Graph, turned: Graph, leaves: int, *, one_way: bool
) -> list[tuple[Graph, Graph]]:
    """The hub turned round, and k of its edges gone too. Where it owns edges that nobody else has, k new ones come (or
    go, if all are there): under a bound, each can take the place of another.
    """
    if one_way:
        return [(star, toggle(turned, 0, np.arange(max(1, NODES - level.k), NODES), both_ways=False))]
    if _owned(level):
        return [(star, turned)]
    gone = np.arange(1, min(level.k, leaves) + 1)
    return [(star, turned), (star, toggle(turned, 0, gone, both_ways=True))]


def _graph(source: list[int], target: list[int], side: np.ndarray, directed: bool) -> Graph:
    """Features that point one way for each side, and labels that say which."""
    basis = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    graph = Graph.from_edges(source, target, basis[side], side, directed=directed, num_classes=3)
    return graph.with_masks(np.arange(len(side)), None, None)
