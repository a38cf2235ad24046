"""Every graph of four nodes beside itself without one edge."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.privacy.levels import EdgeLevel


def graph_of(edges: list[tuple[int, int]], directed: bool) -> Graph:
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Graph.from_edges(ends[:, 0], ends[:, 1], np.eye(4), directed=directed)


def private_of(graph: Graph) -> PrivatePart:
    return EdgeLevel(graph.directed).split(graph)[1]


def neighbours(directed: bool) -> Iterator[tuple[PrivatePart, PrivatePart, tuple[int, int]]]:
    """Two neighbours and the edge in which they differ; sampled if directed."""
    rng = np.random.default_rng(0)
    pairs = list((itertools.permutations if directed else itertools.combinations)(range(4), 2))
    for number in range(300 if directed else 64):
        present = rng.integers(0, 2, len(pairs)) if directed else [number >> i & 1 for i in range(len(pairs))]
        chosen = [pair for pair, on in zip(pairs, present, strict=True) if on]
        for gone in chosen:
            without = [pair for pair in chosen if pair != gone]
            yield private_of(graph_of(chosen, directed)), private_of(graph_of(without, directed)), gone
