"""Small graphs on which audits run: random ones, and the shapes that make sensitivities worst."""

from __future__ import annotations

import numpy as np

from discreet.graph.graph import Graph
from discreet.privacy.levels import EdgeLevel, Level


def small_graph(
    rng: np.random.Generator,
    *,
    directed: bool = False,
    num_features: int = 4,
    num_classes: int = 3,
    num_nodes: int | None = None,
) -> Graph:
    """A graph of 4 to 12 nodes (or as many as given): sparse or dense at random, a star, a double star, a path, or
    edgeless. Few features and classes are enough for rows and classes to differ, and quick.
    """
    n = int(rng.integers(4, 13)) if num_nodes is None else num_nodes
    shape = ("sparse", "dense", "star", "double star", "path", "edgeless")[int(rng.integers(6))]
    source, target = _edges(shape, n, rng)
    if directed:
        keep = rng.random(2 * len(source)) < 0.7
        source, target = np.concatenate([source, target])[keep], np.concatenate([target, source])[keep]
    labels = np.concatenate([np.arange(num_classes), rng.integers(0, num_classes, max(0, n - num_classes))])[:n]
    graph = Graph.from_edges(
        source,
        target,
        rng.standard_normal((n, num_features)),
        rng.permutation(labels),
        directed=directed,
        num_classes=num_classes,
        name=shape,
    )
    # one of each class comes first: some methods refuse a class without a training label
    first = [np.flatnonzero(graph.labels == label)[0] for label in np.unique(graph.labels)]
    mixed = rng.permutation(n)
    order = np.concatenate([first, mixed[~np.isin(mixed, first)]])
    cut = max(len(first), int(0.7 * n))
    return graph.with_masks(order[:cut], None, order[cut:])


def audited_graph(rng: np.random.Generator, *, directed: bool = False, num_nodes: int | None = None) -> Graph:
    """A small graph some of whose ids are for validation, so that stages that read those run too."""
    graph = small_graph(rng, directed=directed, num_nodes=num_nodes)
    rest = np.flatnonzero(graph.mask("test"))
    cut = (len(rest) + 1) // 2
    return graph.with_masks(graph.train_mask, rest[:cut], rest[cut:])


def graph_at(level: Level, rng: np.random.Generator, num_nodes: int) -> Graph:
    """A small graph of the kind that the level speaks of: entries one way where it reads those, promises kept."""
    graph = audited_graph(rng, directed=reads_entries(level, rng), num_nodes=num_nodes)
    edges = getattr(level, "edges", None)
    bound = {"promised": getattr(level, "max_degree", None), "thinned": getattr(level, "d_max", None)}.get(edges or "")
    return graph if bound is None else _keep_degrees_within(graph, bound)


def with_weights(graph: Graph, rng: np.random.Generator) -> Graph:
    """The same edges with weights: none at all, hardly any, all, or anything between."""
    source, target = graph.edges()
    kinds = np.stack([np.zeros(len(source)), np.full(len(source), 1e-3), np.ones(len(source)), rng.random(len(source))])
    return graph.with_edges(source, target, kinds[rng.integers(4, size=len(source)), np.arange(len(source))])


def _keep_degrees_within(graph: Graph, bound: int) -> Graph:
    """The edges, one after the other, that leave every degree within the bound."""
    degree = np.zeros(graph.num_nodes, dtype=np.int64)
    kept = []
    for source, target in zip(*graph.edges(), strict=True):
        if (graph.directed or source < target) and max(degree[source], degree[target]) < bound:
            degree[[source, target]] += 1
            kept.append((source, target))
    ends = np.array(kept, dtype=np.int64).reshape(-1, 2)
    return graph.with_edges(ends[:, 0], ends[:, 1])


def star(num_nodes: int, *, hub: int, leaves: int) -> Graph:
    """One node with so many neighbours, among others without any."""
    others = np.delete(np.arange(num_nodes), hub)[:leaves]
    features, labels = np.eye(num_nodes, 4), np.arange(num_nodes) % 3
    graph = Graph.from_edges(np.full(leaves, hub), others, features, labels, directed=False, num_classes=3)
    return graph.with_masks(np.arange(num_nodes), None, None)


def reads_entries(level: Level, rng: np.random.Generator) -> bool:
    """Whether edges of the next small graph stand one way each: always where a level needs it, half the time where
    it allows it.

    On the owned basis an undirected edge stands in two units. Where one is removed, the other's entry is still there,
    and what reads edges both ways does not move at all: only edges of one owner show what a unit can do.
    """
    if isinstance(level, EdgeLevel):
        return level.directed
    return getattr(level, "edges", None) == "owned" and bool(rng.integers(2))


def _edges(shape: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if shape == "edgeless":
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if shape == "path":
        return np.arange(n - 1), np.arange(1, n)
    if shape == "star":
        return np.zeros(n - 1, dtype=np.int64), np.arange(1, n)
    if shape == "double star":
        half = n // 2
        hubs = np.concatenate([np.zeros(half - 1, dtype=np.int64), np.full(n - half - 1, half)])
        return hubs, np.concatenate([np.arange(1, half), np.arange(half + 1, n)])
    upper = np.triu_indices(n, k=1)
    keep = rng.random(len(upper[0])) < (0.2 if shape == "sparse" else 0.7)
    return upper[0][keep], upper[1][keep]
