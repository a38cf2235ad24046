"""Which two neighbouring graphs are easiest to tell apart: shapes made by hand, and a search over many small ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import clone

from discreet.audit.replay import METRICS, RecordingCurator, replayed
from discreet.audit.small_graphs import audited_graph
from discreet.errors import GraphError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.mechanisms import dpsgd
from discreet.methods.base import NodeClassifier
from discreet.privacy.levels import EdgeLevel, Level, LocalLevel, NeighborLevel, NodeLevel
from discreet.privacy.moves import null_record, set_row, without_edges
from discreet.privacy.plan import Plan

NODES = 8
"""All pairs that are searched have this many nodes, so that one or two calibrations do for all of them."""


@dataclass(frozen=True)
class WorstPair:
    """Two neighbours and how much their answers differ: the sum over stages of (distance over σ)²."""

    graph: Graph
    neighbor: Graph
    score: float


def worst_pair(
    estimator: NodeClassifier,
    *,
    graphs: Callable[[np.random.Generator], Graph] | None = None,
    tries: int = 60,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> WorstPair:
    """The pair with the largest expected privacy loss among hand-made ones and ``tries`` random ones."""
    level = estimator._checked_privacy().level
    rng = np.random.default_rng(seed)
    if graphs is None:
        graphs = partial(audited_graph, directed=isinstance(level, EdgeLevel) and level.directed, num_nodes=NODES)
    best: WorstPair | None = None
    candidates = [*shaped_pairs(level), *_random_pairs(level, graphs, rng, tries)]
    for number, (graph, neighbor) in enumerate(candidates):
        found = _scored(estimator, level.view(graph), level.view(neighbor))
        if found is not None and (best is None or found.score > best.score):
            best = found
        if progress is not None:
            progress("search for the worst pair", number + 1, len(candidates))
    if best is None:
        raise UnsupportedError(f"{estimator.method} refuses every small graph that the audit knows")
    return best


def _random_pairs(
    level: Level, graphs: Callable[[np.random.Generator], Graph], rng: np.random.Generator, tries: int
) -> Iterator[tuple[Graph, Graph]]:
    for _ in range(tries):
        graph = level.view(graphs(rng))
        yield graph, level.neighbor(graph, rng)


def _scored(estimator: NodeClassifier, graph: Graph, neighbor: Graph) -> WorstPair | None:
    """None where the method refuses the graph, or its plan moves, which is for the replay audit to say."""
    try:
        plan = estimator.plan(graph.public)
        if plan != estimator.plan(neighbor.public):
            return None
        curators = replayed(clone(estimator), clone(estimator), [graph], [neighbor], plan)
    except GraphError:
        return None
    return WorstPair(graph, neighbor, expected_loss(plan, *curators))


def expected_loss(plan: Plan, one: RecordingCurator, two: RecordingCurator) -> float:
    """Σ (distance/σ)² over all stages; where a mechanism has no σ, the distance over what is declared."""
    total = 0.0
    for first, second in zip(one.records, two.records, strict=True):
        stage = plan.stage(first.stage)
        apart = (first.value - second.value).astype(np.float64)
        if stage.metric == dpsgd.METRIC:
            rate = stage.parameters["batch_size"] / stage.parameters["examples"]
            moved = rate * float(np.linalg.norm(apart.sum(axis=0))) / stage.noise_std
        elif stage.metric == "l2" and stage.noise_std > 0:
            moved = float(np.linalg.norm(apart)) / stage.noise_std
        else:
            moved = METRICS[stage.metric](first.value, second.value) / stage.sensitivity
        total += moved**2
    return total


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
    """A hub that reaches everyone: removed, or turned round with its edges kept or dropped."""
    bound = getattr(level, "max_degree", None) or getattr(level, "d_max", None) or NODES
    leaves = min(int(bound), NODES - 1)
    star = _graph([0] * leaves, list(range(1, leaves + 1)), np.arange(NODES) % 3, directed=False)
    star = level.view(star)
    both_ways = getattr(level, "edges", "promised") != "owned"
    if isinstance(level, NodeLevel) and level.change == "null":
        return [(star, without_edges(null_record(star, 0), 0, both_ways=both_ways))]
    turned = star.with_features(set_row(star.features, 0, -np.asarray(star.features)[0]))
    turned = turned.with_labels(np.where(np.arange(star.num_nodes) == 0, 1, star.labels))
    if not isinstance(level, NodeLevel):
        return [(star, turned)]
    return [(star, turned), (star, without_edges(turned, 0, both_ways=both_ways))]


def _graph(source: list[int], target: list[int], side: np.ndarray, directed: bool) -> Graph:
    """Features that point one way for each side, and labels that say which."""
    basis = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    graph = Graph.from_edges(source, target, basis[side], side, directed=directed, num_classes=3)
    return graph.with_masks(np.arange(len(side)), None, None)
