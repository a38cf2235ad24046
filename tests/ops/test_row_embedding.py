"""A·W, and a public W. How far the product moves between neighbours: ``tests/queries/test_adjacency_rows.py``."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.audit.small_graphs import small_graph
from discreet.ops.row_embedding import embed_rows, hashed_rows

KEY = bytes(range(16))


@pytest.mark.parametrize(("width", "nonzeros"), [(1, 4), (3, 4), (16, 4), (16, 1), (50, 7)])
def test_hashed_rows_have_the_norm_asked_for(width: int, nonzeros: int) -> None:
    rows = hashed_rows(500, width, KEY, row_norm=2.5, nonzeros=nonzeros)
    norms = np.linalg.norm(rows.toarray(), axis=1)
    assert rows.nnz == 500 * min(width, nonzeros)
    assert (norms <= 2.5).all()
    assert norms.min() > 2.5 * (1 - 1e-5)


def test_hashed_rows_depend_on_key_and_node_alone() -> None:
    few, many = (hashed_rows(n, 16, KEY).toarray() for n in (10, 1000))
    assert np.array_equal(few, many[:10])
    assert not np.array_equal(few, hashed_rows(10, 16, KEY[::-1]).toarray())
    assert abs(many.mean(axis=0)).max() < 0.1  # signs and places are balanced
    products = many @ many.T
    assert abs(products[np.triu_indices(1000, 1)].mean()) < 0.01


def test_dense_and_sparse_weights_give_the_same_product() -> None:
    graph, rng = small_graph(np.random.default_rng(3)), np.random.default_rng(0)
    weight = rng.standard_normal((graph.num_nodes, 3))
    expected = graph.adjacency.toarray() @ weight
    assert np.allclose(embed_rows(graph.adjacency, weight), expected, atol=1e-12)
    assert np.allclose(embed_rows(graph.adjacency, sp.csr_array(weight)), expected, atol=1e-12)
    assert (np.linalg.norm(embed_rows(graph.adjacency, weight, 0.5), axis=1) <= 0.5).all()
