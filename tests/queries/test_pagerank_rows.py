"""PageRank rows as they are asked: candidates without the own node, on the sampled graph, and how near the bound."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.graph.graph import Graph
from discreet.ops.ppr import appr_rows
from discreet.privacy.levels import NodeLevel
from discreet.privacy.moves import null_record, without_edges
from discreet.queries.pagerank_rows import PageRankRows, positions_of, without_own
from discreet.queries.sampled_nodes import NodeSample


def query_of(size, selection="em0", rows=None, clip=0.01, rho=1e-4, own_entry=False, **sample):
    return PageRankRows(
        NodeLevel(),
        selection,
        rows=size if rows is None else rows,
        candidates=size if own_entry else size - 1,
        picks=1,
        clip=clip,
        sample=NodeSample(**sample),
        alpha=0.25,
        rho=rho,
        gamma=1e-4,
        solver="ista",
        own_entry=own_entry,
    )


def test_own_columns_are_left_out():
    rows = sp.csr_array(np.arange(1.0, 13.0).reshape(3, 4))
    own = np.array([0, 2, 3])
    assert without_own(rows, own).toarray().tolist() == [[2, 3, 4], [5, 6, 8], [9, 10, 11]]
    found = positions_of(np.tile(np.arange(3), (3, 1)), own)
    assert found.tolist() == [[1, 2, 3], [0, 1, 3], [0, 1, 2]]


@pytest.mark.parametrize("own_entry", [False, True])
def test_scores_are_pagerank_among_training_nodes(own_entry):
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], np.eye(5), np.zeros(5), directed=False, num_classes=2)
    graph = graph.with_masks(np.arange(4), None, None)  # node 4 is not among them
    _, private = NodeLevel().split(graph)
    sources = np.array([2, 0])
    found = query_of(4, rows=2, clip=1.0, own_entry=own_entry).answer(private, sources=sources)
    exact = appr_rows(graph.adjacency[:4][:, :4], sources)
    assert np.array_equal(found.toarray(), (exact if own_entry else without_own(exact, sources)).toarray())


@pytest.mark.parametrize(("rows", "leaves", "least"), [(1, 100, 0.85), (1, 800, 0.94), (3, 800, 0.94)])
def test_gaussian_rows_come_near_their_bound_under_null_too(rows, leaves, least, record_property):
    """Sources with ``leaves`` neighbours each, and a hub beside all of those. With the hub a row stands on it (the
    neighbours have 1/√leaves of its norm), without it on the neighbours alone: nearly disjoint, all rows at once.
    """
    source = np.r_[np.repeat(np.arange(1, rows + 1), leaves), np.zeros(rows * leaves, dtype=int)]
    middle = rows + 1 + np.arange(rows * leaves)
    nodes = 1 + rows + rows * leaves
    graph = Graph.from_edges(
        source, np.r_[middle, middle], np.ones((nodes, 1)), np.zeros(nodes), directed=True, num_classes=2
    ).with_masks(np.arange(nodes), None, None)
    neighbor = without_edges(null_record(graph, 0), 0, both_ways=False)
    query = query_of(nodes, "gm", rows=rows, rho=1e-6)
    one, two = (query.answer(NodeLevel().split(side)[1], sources=np.arange(1, rows + 1)) for side in (graph, neighbor))
    ratio = float(np.sqrt((one - two).power(2).sum())) / query.bound().sensitivity
    record_property("ratio", ratio)
    assert least < ratio <= 1
