"""One hop against dense algebra. How far it moves: ``tests/queries/test_sums.py``."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from discreet.audit.small_graphs import small_graph
from discreet.errors import UnsupportedError
from discreet.graph.graph import Graph
from discreet.ops.sparse import Aggregation, SparseMatrix, hop_matrix
from tests.plain_graphs import dense_hop


@pytest.mark.parametrize("aggregation", ["sum", "mean", "symmetric"])
@pytest.mark.parametrize("self_loops", [False, True])
def test_matches_dense_algebra(aggregation: Aggregation, self_loops: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        graph = small_graph(rng)
        adjacency = graph.adjacency.toarray() + (np.eye(graph.num_nodes) if self_loops else 0)
        x = torch.tensor(rng.standard_normal((graph.num_nodes, 3)), dtype=torch.float32)
        found = hop_matrix(graph, aggregation, self_loops=self_loops) @ x
        assert np.allclose(found, dense_hop(adjacency, aggregation) @ x.numpy(), atol=1e-5)


def test_directed_edges_flow_from_source_to_target() -> None:
    graph = Graph.from_edges([0], [1], np.eye(2), directed=True)
    assert (hop_matrix(graph, "sum") @ torch.eye(2)).tolist() == [[0, 0], [1, 0]]


def test_gradient_is_the_transposed_product() -> None:
    graph = small_graph(np.random.default_rng(4), directed=True)
    x = torch.randn(graph.num_nodes, 2, requires_grad=True)
    weight = torch.randn(graph.num_nodes, 2)
    (gradient,) = torch.autograd.grad(((hop_matrix(graph, "mean") @ x) * weight).sum(), [x])
    expected = dense_hop(graph.adjacency.toarray(), "mean").T @ weight.numpy()
    assert np.allclose(gradient, expected, atol=1e-5)


def test_symmetric_needs_symmetry() -> None:
    with pytest.raises(UnsupportedError, match="undirected"):
        hop_matrix(Graph.from_edges([0], [1], np.eye(2), directed=True), "symmetric")


def test_a_matrix_written_out_holds_the_same() -> None:
    """Entries that stand twice are added up, and what is empty is zero."""
    twice = sp.csr_array((np.array([1.5, 2.0, 3.0], np.float32), np.array([1, 1, 0]), np.array([0, 2, 2, 3])), (3, 4))
    for given in (twice, sp.csr_array((5, 0), dtype=np.float32), sp.csr_array((2, 3), dtype=np.float32)):
        found = SparseMatrix(given).to_dense()
        assert found.dtype == torch.float32
        assert np.array_equal(found.numpy(), given.toarray())
