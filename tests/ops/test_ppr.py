"""Approximate PageRank rows against power iteration, on graphs of many shapes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import GraphError, ParameterError
from discreet.ops.ppr import appr_rows

SOLVERS = ("ista", "push")


def random_graph(rng: np.random.Generator, n: int, density: float) -> sp.csr_array:
    upper = np.triu(rng.random((n, n)) < density, 1)
    return sp.csr_array((upper | upper.T).astype(float))


def exact_rows(adjacency: sp.csr_array, alpha: float) -> np.ndarray:
    """All rows by power iteration: a walk at an isolated node stays there."""
    degree = adjacency.sum(axis=1)
    walk = np.where(degree[:, None] > 0, adjacency.toarray() / np.maximum(degree, 1)[:, None], np.eye(len(degree)))
    rows = np.eye(len(degree))
    for _ in range(int(np.ceil(40 / alpha))):
        rows = alpha * np.eye(len(degree)) + (1 - alpha) * rows @ walk
    return rows


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.8])
def test_rows_are_below_power_iteration_by_at_most_rho_times_degree(solver, alpha, record_property):
    rng = np.random.default_rng(0)
    nearest = 0.0
    for density in (0.02, 0.1, 0.5):
        graph = random_graph(rng, 60, density)
        degree = graph.sum(axis=1)
        for rho in (1e-2, 1e-4, 1e-6):
            gap = (
                exact_rows(graph, alpha)
                - appr_rows(graph, np.arange(60), alpha=alpha, rho=rho, solver=solver).toarray()
            )
            assert gap.min() > -1e-12
            allowed = rho * (1 + 1e-4) * degree[None, :]
            assert (gap <= allowed + 1e-12).all()
            nearest = max(nearest, float((gap / np.where(allowed > 0, allowed, np.inf)).max()))
    record_property(f"ppr {solver} alpha {alpha}", nearest)
    assert nearest > 0.5


def test_ista_meets_the_optimality_conditions_of_its_problem():
    """0 ≤ −gradient ≤ ρα′√deg everywhere, with equality where q is positive."""
    rng = np.random.default_rng(1)
    graph, alpha, rho = random_graph(rng, 80, 0.08), 0.3, 1e-3
    lazy = alpha / (2 - alpha)
    degree = graph.sum(axis=1)
    p = appr_rows(graph, [3], alpha=alpha, rho=rho, gamma=1e-9).toarray()[0]
    source = np.eye(80)[3]
    residual = lazy * source - (1 + lazy) / 2 * p + (1 - lazy) / 2 * graph @ (p / np.maximum(degree, 1))
    assert residual[degree > 0].min() >= -1e-12
    assert (residual <= rho * lazy * degree * (1 + 1e-8))[degree > 0].all()
    assert residual[p > 0] == pytest.approx(rho * lazy * degree[p > 0], rel=1e-6)
    assert 3 < (p > 0).sum() < 80


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_isolated_source_keeps_its_mass_and_components_stay_apart(solver):
    graph = sp.csr_array((np.ones(4), ([0, 1, 2, 3], [1, 0, 3, 2])), shape=(5, 5))
    rows = appr_rows(graph, [4, 0], solver=solver, rho=1e-8).toarray()
    assert rows[0].tolist() == [0, 0, 0, 0, 1]
    assert rows[1, 2:].tolist() == [0, 0, 0]
    assert rows[1].sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_and_order_do_not_matter_and_loops_and_weights_play_no_part(solver):
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 50, 0.1)
    order = rng.permutation(50)
    plain = appr_rows(graph, order, solver=solver)
    assert plain.has_sorted_indices
    weighted = graph * 3.0 + sp.eye_array(50)
    for other in (
        appr_rows(graph, order, solver=solver, threads=3),
        appr_rows(weighted, order, solver=solver),
        appr_rows(graph, np.arange(50), solver=solver)[order],
    ):
        assert np.array_equal(plain.toarray(), other.toarray())
    assert appr_rows(graph, [], solver=solver).shape == (0, 50)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"alpha": 0.0}, "alpha must lie strictly between 0 and 1"),
        ({"rho": 1.0}, "rho must lie strictly"),
        ({"gamma": 0.0}, "gamma must lie in"),
        ({"solver": "power"}, "solver must be ista or push"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"sources": [7]}, "a source is not a node of a graph with 5 nodes"),
        ({"sources": [-1]}, "a source is not a node"),
    ],
)
def test_bad_input(changes, sentence):
    graph = random_graph(np.random.default_rng(0), 5, 0.5)
    with pytest.raises(ParameterError, match=sentence):
        appr_rows(graph, changes.pop("sources", [0]), **changes)


def test_a_directed_graph_is_refused():
    with pytest.raises(GraphError, match="to_undirected"):
        appr_rows(sp.csr_array(np.array([[0, 1.0], [0, 0]])), [0])
    with pytest.raises(GraphError, match="square"):
        appr_rows(sp.csr_array(np.ones((2, 3))), [0])
