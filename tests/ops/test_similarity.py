"""Similar nodes: the sparse way gives what the algorithms of the paper say, dense, on small graphs."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.graph.synthetic import csbm, scale_free
from discreet.ops.rows import unit_rows
from discreet.ops.similarity import WalkCounts, distance_for, nearest_within, spread_of


def dense_share(adjacency: np.ndarray, steps: int) -> np.ndarray:
    """Algorithm 2 as it is written."""
    total = sum(np.linalg.matrix_power(adjacency, k) for k in range(1, steps + 1))
    return np.divide(total, total.sum(axis=1, keepdims=True), out=np.zeros_like(total), where=total > 0)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 5, 30])
def test_walk_counts_are_algorithm_2(steps: int, directed: bool) -> None:
    rng = np.random.default_rng(steps)
    for _ in range(20):
        graph = small_graph(rng, directed=directed)
        adjacency = graph.adjacency.toarray().astype(np.float64)
        share = dense_share(adjacency, steps)
        for threshold in (0.03, 0.1, 0.15, 0.4):
            found = WalkCounts(graph, steps).above(threshold).toarray()
            clear = np.abs(share - threshold) > 1e-9  # ties are rounding
            assert np.array_equal((found > 0)[clear], ((share > threshold) | (adjacency == 1))[clear])


def test_columns_that_are_left_early_would_not_have_passed() -> None:
    """A graph with a hub, where most columns are dropped after a few steps."""
    graph = scale_free(300, 900, num_features=2, seed=0)
    share = dense_share(graph.adjacency.toarray().astype(np.float64), 12)
    for threshold in (0.01, 0.05):
        found = WalkCounts(graph, 12).above(threshold).toarray()
        assert np.array_equal(found > 0, (share > threshold) | (graph.adjacency.toarray() == 1))


def test_the_largest_share_never_rises() -> None:
    """What the early leaving rests on, over random graphs."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        adjacency = small_graph(rng, directed=bool(rng.integers(2))).adjacency.toarray().astype(np.float64)
        before = np.full(len(adjacency), np.inf)
        power = np.eye(len(adjacency))
        for _ in range(8):
            power = adjacency @ power
            ends = power.sum(axis=1, keepdims=True)
            largest = np.divide(power, ends, out=np.zeros_like(power), where=ends > 0).max(axis=0)
            assert (largest <= before + 1e-12).all()
            before = largest


def test_distances_are_algorithms_3_and_4() -> None:
    points = unit_rows(np.random.default_rng(0).standard_normal((200, 6)).astype(np.float32))
    exact = np.linalg.norm(points[:, None].astype(np.float64) - points, axis=2)
    assert spread_of(points) == pytest.approx(np.linalg.norm(exact), rel=1e-6)
    for threshold in (0.002, 0.004):
        near = exact / np.linalg.norm(exact) < threshold
        assert np.array_equal(nearest_within(points, threshold * spread_of(points), 1000).toarray() > 0, near)
    assert np.array_equal(nearest_within(points, np.sqrt(2 - 2 * 0.7), 1000).toarray() > 0, points @ points.T > 0.7)


def test_a_node_is_similar_to_itself_and_the_nearest_are_kept() -> None:
    points = np.random.default_rng(1).standard_normal((50, 3)).astype(np.float32)
    assert np.array_equal(nearest_within(points, 1e-9, 10).toarray(), np.eye(50))
    few = nearest_within(points, 100.0, 5)
    assert (np.diff(few.indptr) == 5).all()
    exact = np.linalg.norm(points[:, None] - points, axis=2)
    for row in range(50):
        assert set(few.indices[few.indptr[row] : few.indptr[row + 1]]) == set(np.argsort(exact[row])[:5])


@pytest.mark.parametrize("similar", [3, 10, 40])
def test_thresholds_meet_their_target(similar: int) -> None:
    graph = csbm(num_nodes=400, num_features=8, average_degree=8.0)
    points = np.asarray(graph.features)
    found = nearest_within(points, distance_for(points, similar, 0), 1000)
    assert found.nnz / 400 - 1 == pytest.approx(similar, rel=0.05)
    counts = WalkCounts(graph, 3)
    share = dense_share(graph.adjacency.toarray().astype(np.float64), 3)
    assert (share > counts.threshold_for(similar, 0)).sum() / 400 == pytest.approx(similar, rel=0.05)
