"""Pairs of nodes to guess about: as many that are linked as are not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.arrays import BoolArray, FloatArray, IntArray
from discreet.errors import GraphError
from discreet.graph.graph import Graph

TINY = 1e-12
"""Under what is divided by, or has its logarithm taken: far below every probability that says something."""


class Pairs(NamedTuple):
    """Two ends by pair, and whether the graph has an edge between them in either direction."""

    first: IntArray
    second: IntArray
    linked: BoolArray


def undirected_keys(graph: Graph, among: IntArray | None = None) -> IntArray:
    """One number for each linked pair: smaller end times n, plus larger end; of nodes ``among`` these."""
    n = graph.num_nodes
    inside = np.ones(n, dtype=np.bool_) if among is None else np.isin(np.arange(n), among)
    source, target = graph.edges()
    kept = inside[source] & inside[target]
    return np.unique(np.minimum(source, target)[kept] * n + np.maximum(source, target)[kept])


def balanced_pairs(graph: Graph, wanted: int, rng: np.random.Generator, among: IntArray | None = None) -> Pairs:
    """``wanted`` linked pairs (all there are, if fewer) and as many that are not, of nodes ``among`` these."""
    return pairs_of(graph, undirected_keys(graph, among), wanted, rng, among)


def pairs_of(
    graph: Graph, links: IntArray, wanted: int, rng: np.random.Generator, among: IntArray | None = None
) -> Pairs:
    """``wanted`` of these ``links``, given as :func:`undirected_keys` does, and as many pairs that no edge links."""
    n = graph.num_nodes
    chosen = rng.permutation(links)[:wanted]
    if not len(chosen):
        raise GraphError("there is no edge to guess among these nodes")
    nodes = np.arange(n) if among is None else np.sort(among)
    others = _unlinked(nodes, n, undirected_keys(graph, among), len(chosen), rng)
    keys = np.concatenate([chosen, others])
    return Pairs(keys // n, keys % n, np.arange(len(keys)) < len(chosen))


def _unlinked(nodes: IntArray, n: int, edges: IntArray, wanted: int, rng: np.random.Generator) -> IntArray:
    found = np.empty(0, dtype=np.int64)
    for _ in range(100):
        ends = rng.choice(nodes, (4 * wanted + 16, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        keys = np.unique(ends.min(axis=1) * n + ends.max(axis=1))
        found = np.union1d(found, keys[~np.isin(keys, edges)])
        if len(found) >= wanted:
            return rng.permutation(found)[:wanted]
    raise GraphError("nearly all of these nodes are linked: there are too few unlinked pairs to compare with")


def is_linked(graph: Graph, nodes: IntArray) -> BoolArray:
    """The square table of links among ``nodes``, in either direction."""
    table = graph.adjacency[nodes][:, nodes].toarray() > 0
    both: BoolArray = table | table.T
    return both


def distances(one: FloatArray, two: FloatArray) -> FloatArray:
    """Eight distances between rows (He et al. 2021), one column each."""
    apart = np.abs(one - two)
    size = np.maximum(np.abs(one) + np.abs(two), TINY)
    centred = [side - side.mean(axis=1, keepdims=True) for side in (one, two)]
    return np.column_stack(
        [
            1 - _cosine(one, two),
            np.sqrt((apart**2).sum(axis=1)),
            1 - _cosine(*centred),
            apart.max(axis=1),
            apart.sum(axis=1) / np.maximum(np.abs(one + two).sum(axis=1), TINY),
            (apart / size).sum(axis=1),
            apart.sum(axis=1),
            (apart**2).sum(axis=1),
        ]
    )


def _cosine(one: FloatArray, two: FloatArray) -> FloatArray:
    product = (one * two).sum(axis=1)
    found: FloatArray = product / np.maximum(np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1), TINY)
    return found
