"""Propagation with restart: the operation against its definition."""

import math

import numpy as np
import pytest
import torch

from discreet.errors import UnsupportedError
from discreet.graph.synthetic import csbm
from discreet.ops import restart, sparse
from discreet.ops.rows import unit_rows
from tests.ops.restart_by_hand import INF, graph_of, matrix


@pytest.mark.parametrize("m", [0, 1, 2, 7, INF])
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_propagate_is_r_m_by_definition(alpha, m):
    rng = np.random.default_rng(0)
    edges = {(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)}
    x = unit_rows(rng.standard_normal((6, 4)))
    z = restart.propagate(restart.transition(graph_of(6, edges)), x, alpha, [m])
    np.testing.assert_allclose(z, matrix(6, edges, alpha, m) @ x, atol=1e-13)


def test_concatenation_is_weighted_by_the_number_of_steps():
    x = unit_rows(np.random.default_rng(1).standard_normal((4, 3)))
    walk = restart.transition(graph_of(4, {(0, 1), (1, 2)}))
    parts = [restart.propagate(walk, x, 0.3, [m]) for m in (0, 2, INF)]
    both = restart.propagate(walk, x, 0.3, [0, 2, INF])
    np.testing.assert_allclose(both, np.hstack(parts) / 3)
    assert np.linalg.norm(both, axis=1).max() <= 1 / math.sqrt(3) + 1e-15


def test_isolated_nodes_keep_their_row_and_zero_rows_stay_zero():
    x = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]]))
    z = restart.propagate(restart.transition(graph_of(3, {(1, 2)})), x, 0.5, [INF])
    np.testing.assert_allclose(z[0], x[0])
    assert np.isfinite(z).all()


def test_own_hop_reads_only_the_nodes_own_edges():
    rng = np.random.default_rng(2)
    x = unit_rows(rng.standard_normal((5, 3)))
    one = restart.own_hop(restart.transition(graph_of(5, {(0, 1), (1, 2), (3, 4)})), x, 0.2, [0, 2])
    two = restart.own_hop(restart.transition(graph_of(5, {(0, 1), (1, 2), (2, 4)})), x, 0.2, [0, 2])
    np.testing.assert_array_equal(one[:2], two[:2])
    assert not np.allclose(one[2:], two[2:])


def test_directed_graphs_are_refused():
    with pytest.raises(UnsupportedError, match="to_undirected"):
        restart.transition(graph_of(3, {(0, 1)}, directed=True))


@pytest.mark.parametrize("width", [2, 4, 7, 16])
@pytest.mark.parametrize("threads", [1, 3])
def test_lanes_have_the_bits_of_plain_steps(width, threads, monkeypatch):
    """Whatever the threads: a few columns at a time through all steps, or all columns step by step."""
    graph = csbm(500, 4, average_degree=9.0)
    x = unit_rows(np.random.default_rng(3).standard_normal((500, width)))
    walk = restart.Walk(graph)
    assert not walk.goes_by_lanes(x)
    plain = restart.propagate(walk, x, 0.3, [0, 2, INF])
    monkeypatch.setattr(sparse, "_FEW_NUMBERS", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert walk.goes_by_lanes(x)
    np.testing.assert_array_equal(restart.propagate(walk, x, 0.3, [0, 2, INF]), plain)
    np.testing.assert_array_equal(restart.propagate(walk, x, 0.3, [0]), x)
