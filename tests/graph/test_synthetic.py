from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.graph import csbm, scale_free
from tests.graph.helpers import assert_same


def rates(graph) -> tuple[float, float]:
    """Edge rates within and across the classes."""
    n = graph.num_nodes
    source, target = graph.edges()
    same = int((graph.labels[source] == graph.labels[target]).sum()) / 2
    ones = int(graph.labels.sum())
    within = ones * (ones - 1) / 2 + (n - ones) * (n - ones - 1) / 2
    return same / within, (graph.num_edges - same) / (ones * (n - ones))


@pytest.mark.parametrize("phi", [-1.0, -0.5, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("degree", [5.0, 20.0])
def test_edge_rates(phi, degree):
    n = 6000
    graph = csbm(n, 4, degree, phi, seed=1)
    strength = math.sqrt(4.25) * math.sin(phi * math.pi / 2)
    pairs = n * n / 4
    for seen, sign in zip(rates(graph), (1, -1), strict=True):
        rate = (degree + sign * strength * math.sqrt(degree)) / n
        assert abs(seen - rate) < 5 * math.sqrt(rate / pairs)
    assert abs(graph.in_degree().mean() - degree) < 0.3
    assert not graph.directed
    assert np.bincount(graph.labels).tolist() == [n // 2, n // 2]


@pytest.mark.parametrize("phi", [0.0, 0.5, -0.5, 1.0])
def test_features(phi):
    n, f = 20_000, 50
    graph = csbm(n, f, 10.0, phi, seed=2)
    sign = 2.0 * graph.labels - 1
    mean = (sign[:, None] * graph.features).mean(axis=0)
    mu = math.sqrt(n / f * 4.25) * math.cos(phi * math.pi / 2)
    # E‖mean‖² = (μ/n)‖u‖² + 1/n, and ‖u‖² is near 1
    assert float(mean @ mean) == pytest.approx(mu / n + 1 / n, rel=0.5, abs=1e-4)
    noise = graph.features - sign[:, None] * mean
    assert float(noise.std()) == pytest.approx(1 / math.sqrt(f), rel=0.01)
    assert graph.features.dtype == np.float32


def test_degrees_spread_evenly():
    """Uniform pairs: degrees are close to Poisson, and no node is favoured by the sampling."""
    degree = csbm(20_000, 1, 8.0, 0.0, epsilon=0.0, seed=3).in_degree()
    assert degree.var() == pytest.approx(degree.mean(), rel=0.05)
    halves = degree[:10_000].mean(), degree[10_000:].mean()
    assert halves[0] == pytest.approx(halves[1], rel=0.03)


def test_seeds():
    assert_same(csbm(seed=4), csbm(seed=4))
    assert (csbm(seed=4).labels != csbm(seed=5).labels).any()
    assert_same(scale_free(100, 300, seed=1), scale_free(100, 300, seed=1))


def test_defaults_carry_both_signals():
    """Linear probes: features alone beat chance, smoothing over the graph beats features alone."""
    alone, smoothed = [], []
    for seed in range(4):
        graph = csbm(seed=seed)
        order = np.random.default_rng(seed).permutation(graph.num_nodes)
        train, test = order[:1500], order[1500:]
        sign = 2.0 * graph.labels - 1
        rows = graph.features
        for scores in (alone, smoothed):
            weights, *_ = np.linalg.lstsq(rows[train], sign[train], rcond=None)
            scores.append(((rows[test] @ weights > 0) == (sign[test] > 0)).mean())
            rows = (graph.adjacency @ rows + rows) / (graph.in_degree() + 1)[:, None]
            rows = (graph.adjacency @ rows + rows) / (graph.in_degree() + 1)[:, None]
    assert np.mean(alone) > 0.62
    assert np.mean(smoothed) > np.mean(alone) + 0.1


def test_dense_and_tiny_graphs():
    assert csbm(20, 2, 20.0, 0.0).num_edges == 190  # every pair at rate 1
    assert csbm(2, 1, 1.0, 0.0).num_nodes == 2
    assert np.bincount(csbm(7, 1, 1.0, 0.0).labels).tolist() == [4, 3]
    assert csbm(60, 2, 40.0, 0.0, seed=0).num_edges == pytest.approx(40 * 59 / 2, rel=0.1)


def test_memory_grows_with_the_output_only():
    tracemalloc.start()
    graph = csbm(50_000, 8, 10.0, 0.5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    held = graph.features.nbytes + graph.indices.nbytes + graph.indptr.nbytes + graph.labels.nbytes
    assert peak < 6 * held  # an n × n matrix of bits alone would be 35 times as large


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"average_degree": 2.0, "phi": 1.0}, "too small for this phi"),
        ({"average_degree": 2.0, "phi": -1.0}, "too small for this phi"),
        ({"average_degree": 3000.0}, "too large for 2000 nodes"),
        ({"average_degree": 0.0}, "above 0"),
        ({"average_degree": float("nan")}, "a finite number"),
        ({"phi": 1.5}, "between -1 and 1"),
        ({"phi": float("nan")}, "a finite number"),
        ({"epsilon": -1.0}, "above -1"),
        ({"num_nodes": 1}, "at least 2"),
        ({"num_nodes": 2.5}, "num_nodes must be a whole number"),
        ({"num_features": 0}, "num_features must be a whole number"),
    ],
)
def test_csbm_refusals(change, message):
    with pytest.raises(ParameterError, match=message):
        csbm(**change)


def test_scale_free():
    graph = scale_free(5000, 40_000, 6, 4, homophily=0.8, seed=1)
    assert (graph.num_edges, graph.num_features, graph.num_classes) == (40_000, 6, 4)
    degree = np.sort(graph.in_degree())[::-1]
    assert degree[0] > 20 * degree.mean()
    source, target = graph.edges()
    assert (graph.labels[source] == graph.labels[target]).mean() > 0.7
    assert scale_free(10, 0).num_edges == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_edges": 10**6}, "quarter of all pairs"),
        ({"exponent": 2.0}, "above 2"),
        ({"homophily": 1.5}, "between 0 and 1"),
        ({"num_classes": 0}, "num_classes"),
    ],
)
def test_scale_free_refusals(change, message):
    with pytest.raises(ParameterError, match=message):
        scale_free(**({"num_nodes": 100, "num_edges": 10} | change))
