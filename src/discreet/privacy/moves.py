"""Moves that turn a graph into a neighbour: one edge toggled or weighed anew, one record removed or replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet.arrays import Array, IntArray
from discreet.graph.graph import Graph


def all_but(node: int, n: int) -> IntArray:
    """Every node but one."""
    return np.delete(np.arange(n, dtype=np.int64), node)


def pick_node(graph: Graph, rng: np.random.Generator) -> int:
    """A random node, or the one whose data reaches most others."""
    if rng.integers(2):
        return int(rng.integers(graph.num_nodes))
    source, _ = graph.edges()
    return int(np.bincount(source, minlength=graph.num_nodes).argmax())


def random_pair(n: int, rng: np.random.Generator) -> tuple[int, int]:
    """Two different nodes."""
    u, v = rng.choice(n, size=2, replace=False)
    return int(u), int(v)


def pair_at(node: int, n: int, rng: np.random.Generator) -> tuple[int, int]:
    """A node and any other."""
    return node, int(rng.choice(all_but(node, n)))


def existing_pair(source: IntArray, target: IntArray, rng: np.random.Generator) -> tuple[int, int]:
    """The ends of an edge that is there."""
    at = int(rng.integers(len(source)))
    return int(source[at]), int(target[at])


def within_degree(graph: Graph, node: int, toggled: IntArray, bound: int) -> IntArray:
    """Those of the toggles, removals first, that leave every degree within the bound."""
    n = graph.num_nodes
    source, target = graph.edges()
    degree = np.maximum(np.bincount(source, minlength=n), np.bincount(target, minlength=n))
    present = np.isin(toggled, target[source == node]) | np.isin(toggled, source[target == node])
    removed, added = toggled[present], toggled[~present]
    room = max(0, bound - int(degree[node]) + len(removed))
    return np.concatenate([removed, added[degree[added] < bound][:room]])


def toggle(graph: Graph, node: int, others: IntArray, *, both_ways: bool) -> Graph:
    """Add the entries node → other that are missing and remove those that are there."""
    n = graph.num_nodes
    source, target = graph.edges()
    keys = source * n + target
    flips = node * n + others
    if both_ways:
        flips = np.union1d(flips, others * n + node)
    result = np.setxor1d(keys, flips)
    return graph.with_edges(result // n, result % n)


def change_one_edge(graph: Graph, rng: np.random.Generator, *, both_ways: bool) -> Graph:
    """Toggle one edge: any pair, an existing edge, at the hub, or at a node of least degree; or give one that is there
    another weight, half of the time where edges have weights.
    """
    n = graph.num_nodes
    source, target = graph.edges()
    degree = np.bincount(target, minlength=n) + np.bincount(source, minlength=n)
    picks: list[Callable[[], tuple[int, int]]] = [
        lambda: random_pair(n, rng),
        lambda: pair_at(int(degree.argmax()), n, rng),
        lambda: pair_at(int(degree.argmin()), n, rng),
    ]
    if len(source):
        picks.append(lambda: existing_pair(source, target, rng))
    if graph.edge_weights is not None and len(source) and rng.integers(2):
        u, v = existing_pair(source, target, rng)
        return reweigh(graph, u, np.array([v]), rng, both_ways=both_ways)
    u, v = picks[int(rng.integers(len(picks)))]()
    return toggle(graph, u, np.array([v], dtype=np.int64), both_ways=both_ways)


def with_new_edges(bare: Graph, node: int, rng: np.random.Generator, bound: int | None) -> Graph:
    """Give a node without edges fresh ones: outgoing entries to anybody, or (``bound``) edges that keep all degrees
    within the bound.
    """
    others = all_but(node, bare.num_nodes)
    size = len(others) if bound is None else min(bound, len(others))
    chosen = rng.choice(others, size=int(rng.integers(size + 1)), replace=False)
    if bound is not None:
        _, target = bare.edges()
        full = np.bincount(target, minlength=bare.num_nodes) >= bound
        chosen = chosen[~full[chosen]]
    return toggle(bare, node, chosen, both_ways=bound is not None and not bare.directed)


def reweigh(graph: Graph, node: int, others: IntArray, rng: np.random.Generator, *, both_ways: bool) -> Graph:
    """Give the entries node → other, where there are such, other weights: 0, 1, or anything between."""
    assert graph.edge_weights is not None
    source, target = graph.edges()
    chosen = (source == node) & np.isin(target, others)
    if both_ways:
        chosen |= (target == node) & np.isin(source, others)
    drawn = np.stack([np.zeros(graph.num_nodes), np.ones(graph.num_nodes), rng.random(graph.num_nodes)])
    by_other = drawn[rng.integers(3, size=graph.num_nodes), np.arange(graph.num_nodes)]
    far_end = np.where(source == node, target, source)
    weights = np.where(chosen, by_other[far_end], graph.edge_weights)
    return graph.with_edges(source, target, weights)


def without_edges(graph: Graph, node: int, *, both_ways: bool) -> Graph:
    """The graph without the node's outgoing edges, or without all of them."""
    source, target = graph.edges()
    keep = source != node
    if both_ways:
        keep &= target != node
    return graph.with_edges(source[keep], target[keep])


def set_row(features: Any, node: int, row: Array) -> Any:
    """The features with one row replaced, dense or CSR as they were: products of the two differ in last bits."""
    dense = np.array(features if isinstance(features, np.ndarray) else features.toarray(), dtype=np.float32)
    dense[node] = row
    return dense if isinstance(features, np.ndarray) else sp.csr_array(dense)


def null_record(graph: Graph, node: int) -> Graph:
    """Features zero, label unknown."""
    labels = graph.labels.copy()
    labels[node] = -1
    return graph.with_features(set_row(graph.features, node, np.zeros(1))).with_labels(labels)


def replace_record(graph: Graph, node: int, rng: np.random.Generator) -> Graph:
    """Another label, and features negated (the far side of any clip), rescaled, drawn afresh, or extreme."""
    width = graph.features.shape[1]
    old = graph.features[[node]]
    old = np.asarray(old if isinstance(old, np.ndarray) else old.toarray()).ravel()
    drawn = rng.standard_normal(width)
    # Up to the largest feature that a graph may hold, and down to where squares vanish in single precision.
    candidates = (-old, 100 * old, drawn, -np.ones(width), 1e12 * np.sign(drawn), 1e-23 * drawn)
    row = np.clip(candidates[int(rng.integers(len(candidates)))], -1e12, 1e12)
    labels = graph.labels.copy()
    labels[node] = rng.integers(-1, graph.num_classes)
    return graph.with_features(set_row(graph.features, node, row)).with_labels(labels)
