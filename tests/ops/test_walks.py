"""Walks follow edges with the stated weights; embeddings bring together what meets."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.graph.graph import Graph
from discreet.graph.synthetic import csbm
from discreet.ops.walks import Walker, embed, meetings


def triangle_with_tail() -> Graph:
    """0–1–2–0 and a tail 2–3–4; node 5 is alone."""
    return Graph.from_edges([0, 1, 2, 2, 3], [1, 2, 0, 3, 4], np.ones((6, 1)), directed=False)


def test_walks_follow_edges_and_stay_at_lonely_nodes() -> None:
    graph = triangle_with_tail()
    path = Walker(graph, p=0.5, q=3.0).walk(np.tile(np.arange(6), 50), 20, np.random.default_rng(0))
    for here, there in zip(path[:, :-1].ravel(), path[:, 1:].ravel(), strict=True):
        assert here == there == 5 or graph.adjacency[here, there] == 1


def test_edgeless_graphs() -> None:
    graph = Graph.from_edges([], [], np.ones((3, 1)), directed=False)
    assert (Walker(graph, p=0.5, q=3.0).walk(np.arange(3), 4, np.random.default_rng(0)) == np.arange(3)[:, None]).all()


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.5, 3.0), (4.0, 0.25)])
def test_second_steps_have_the_stated_weights(p: float, q: float) -> None:
    """From 2, having come from 0: back to 0 has weight 1/p, to 1 (joined to 0) 1, to 3 (not joined) 1/q."""
    path = Walker(triangle_with_tail(), p=p, q=q).walk(np.zeros(60_000, np.int64), 3, np.random.default_rng(1))
    third = path[path[:, 1] == 2, 2]
    weights = np.array([1 / p, 1.0, 1 / q])
    exact = weights / weights.sum()
    frequency = np.array([(third == node).mean() for node in (0, 1, 3)])
    assert (np.abs(frequency - exact) < 5 * np.sqrt(exact * (1 - exact) / len(third))).all()


def test_meetings_count_pairs_within_the_window() -> None:
    """On a single edge every step is a meeting at offset 1, every second one comes home."""
    graph = Graph.from_edges([0], [1], np.ones((2, 1)), directed=False)
    counts = meetings(Walker(graph), 2, walks=3, length=5, window=2, seed=0)
    assert counts.toarray().tolist() == [[0, 24], [24, 0]]


def test_embeddings_bring_classes_together() -> None:
    graph = csbm(num_nodes=300, num_features=5, average_degree=12.0, phi=1.0, epsilon=7.0)
    counts = meetings(Walker(graph), 300, walks=5, length=20, window=5, seed=0)
    points = embed(counts, 8, 0)
    assert points.shape == (300, 8)
    assert np.array_equal(points, embed(counts, 8, 0))
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    same = graph.labels[:, None] == graph.labels
    cosine = points @ points.T
    assert cosine[same].mean() > cosine[~same].mean() + 0.2
