"""Which nodes take part: coins of the key and the id alone, and nothing handed out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import PlanViolationError
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.privacy import events
from discreet.privacy.levels import NodeLevel
from discreet.queries.sampled_nodes import SAMPLE, NodeSample, Participants, SampledNodes, checked_positions


@pytest.fixture(scope="module")
def graph():
    return split(csbm(num_nodes=120, num_features=20, average_degree=8, seed=0), "80/20:inductive", 0)


def taken(graph, sample, key=bytes(16)):
    _, private = NodeLevel().split(graph)
    if sample.needs_key:
        private.entrust(SAMPLE, key)
    return sample.take(private)


def test_coins_follow_the_key_and_the_rate(graph):
    sample = NodeSample(0.3)
    alive = [taken(graph, sample, bytes([i] * 16)).alive.mean() for i in range(60)]
    assert np.mean(alive) == pytest.approx(0.3, abs=0.03)
    one, two = (taken(graph, sample) for _ in range(2))
    assert np.array_equal(one.alive, two.alive)
    assert np.array_equal(one.ids, np.flatnonzero(graph.train_mask))
    assert taken(graph, NodeSample()).alive.all()


def test_a_sample_of_fixed_size_hides_its_range(graph):
    one, two = (taken(graph, NodeSample(0.5, 10), bytes([i] * 16)) for i in range(2))
    for found in (one, two):
        assert len(found.ids) == 10
        assert found.alive.all()
        assert graph.train_mask[found.ids].all()
    assert not np.array_equal(one.ids, two.ids)


def test_who_lost_has_no_edge_no_feature_and_no_label(graph):
    found = taken(graph, NodeSample(0.5))
    lost = ~found.alive
    assert 0 < lost.sum() < len(lost)
    edges = found.edges(graph).toarray()
    assert not edges[lost].any()
    assert not edges[:, lost].any()
    both = np.ix_(found.ids[found.alive], found.ids[found.alive])
    assert np.array_equal(edges[np.ix_(found.alive, found.alive)], graph.adjacency.toarray()[both])
    assert (found.labels(graph)[lost] == -1).all()
    assert np.array_equal(found.labels(graph)[~lost], graph.labels[found.ids[~lost]])
    dense = found.features(graph)
    assert not dense[lost].any()
    assert np.array_equal(dense[~lost], graph.features[found.ids[~lost]])


def test_sparse_features_stay_sparse():
    from discreet.graph.graph import Graph

    graph = Graph.from_edges([], [], sp.csr_array(np.eye(4)), np.zeros(4), num_classes=2)
    found = Participants(np.array([0, 2, 3]), np.array([True, False, True])).features(graph)
    assert sp.issparse(found)
    assert found.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


def test_nothing_is_handed_out_and_only_coins_are_charged(graph):
    _, private = NodeLevel().split(graph)
    with pytest.raises(PlanViolationError, match="draw_key"):
        SampledNodes(NodeSample(0.3)).answer(private)
    assert SampledNodes(NodeSample(0.3)).event(1.0, 1) == events.SampledNodesDpEvent(0.3)
    assert SampledNodes(NodeSample(0.3, 10)).event(1.0, 1) == events.NoOpDpEvent()
    assert SampledNodes(NodeSample(0.3)).parameters() == {"noise_std": 0.0, "probability": 0.3}


@pytest.mark.parametrize("bad", [[0, 0], [0, 5], [-1, 0], [0], [0.0, 1.0], [[0, 1]]])
def test_sources_are_different_positions(bad):
    assert checked_positions(np.array([4, 0]), 2, 5).tolist() == [4, 0]
    with pytest.raises(PlanViolationError, match="sources must be"):
        checked_positions(np.array(bad), 2, 5)
