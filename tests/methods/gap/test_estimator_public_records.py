"""gap at edge level: what it caches, what it refuses, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.audit.small_graphs import small_graph
from discreet.errors import UncoveredReleaseError
from discreet.graph.graph import Graph
from discreet.graph.parts import GraphKeys
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.methods.gap.estimator import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from tests.data_root import DATA_ROOT, needs_data

EDGE = Privacy(EdgeLevel(), 2.0)


@pytest.fixture
def graph() -> Graph:
    return small_graph(np.random.default_rng(3))


def without_edges(graph: Graph) -> Graph:
    return graph.with_edges(np.empty(0, dtype=int), np.empty(0, dtype=int))


def test_prediction_reads_no_edge(graph: Graph) -> None:
    model = GAP(EDGE, epochs=2, hidden=4).fit(graph)
    assert np.array_equal(model.predict_proba(graph), model.predict_proba(without_edges(graph)))


def test_another_graph_needs_a_charged_aggregation(graph: Graph) -> None:
    other = small_graph(np.random.default_rng(4))
    model = GAP(EDGE, epochs=2, hidden=4).fit(graph)
    with pytest.raises(UncoveredReleaseError, match="no stage paid for"):
        model.predict(other)
    assert model.predict(other, uncovered=True).shape == (other.num_nodes,)

    charged = GAP(EDGE, epochs=2, hidden=4).fit(graph, extra_graphs=[other])
    assert [stage.name for stage in charged.plan_.stages] == ["hop 1", "extra graph 1 hop 1"]
    assert charged.plan_.stages[0].noise_std == pytest.approx(2**0.5 * model.plan_.stages[0].noise_std)
    assert np.array_equal(charged.predict_proba(other), charged.predict_proba(without_edges(other)))


def test_without_privacy_any_graph_may_be_read(graph: Graph) -> None:
    model = GAP(Privacy.none(), epochs=2, hidden=4).fit(graph)
    cached = model.predict_proba(graph)
    other = small_graph(np.random.default_rng(4))
    assert model.predict(other).shape == (other.num_nodes,)
    model.keys_ = GraphKeys([])  # as if the graph had not been seen: hops are read off its edges, not off a cache
    assert np.allclose(model.predict_proba(graph), cached, atol=1e-5)


def test_all_hops_share_one_calibration(graph: Graph) -> None:
    one = GAP(EDGE, hops=1).plan(graph.public)
    four = GAP(EDGE, hops=4).plan(graph.public)
    assert len(four.stages) == 4
    assert four.stages[0].noise_std == pytest.approx(2 * one.stages[0].noise_std)
    assert four.epsilon <= 2.0


def test_sparse_and_dense_features_agree(graph: Graph) -> None:
    dense = GAP(EDGE, epochs=3, hidden=4, insecure_noise_seed=1).fit(graph)
    sparse_graph = graph.with_features(sp.csr_array(graph.features))
    sparse = GAP(EDGE, epochs=3, hidden=4, insecure_noise_seed=1).fit(sparse_graph)
    assert np.allclose(dense.predict_proba(graph), sparse.predict_proba(sparse_graph), atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": None},
        {"batch_size": 3},
        {"layers": 1},
        {"layers": 3, "activation": "selu"},
        {"width": 9, "aggregation": "mean"},
        {"aggregation": "symmetric", "hops": 3},
        {"dropout": 0.0, "head_dropout": 0.0, "own_dropout": 0.0},
        {"random_state": None},
    ],
)
def test_options(graph: Graph, options: dict[str, object]) -> None:
    model = GAP(EDGE, epochs=2, hidden=4).set_params(**options).fit(graph)
    assert np.isfinite(model.predict_proba(graph)).all()


@pytest.mark.chance
def test_edges_pay_on_a_graph_with_structure() -> None:
    graph = split(csbm(num_nodes=1500, phi=0.6, average_degree=12), "75/10/15", 0)
    features = MLPClassifier(EDGE).fit(graph).score(graph)
    assert GAP(Privacy(EdgeLevel(), 4.0)).fit(graph).score(graph) > features + 0.05


@pytest.mark.chance
@needs_data
def test_cora() -> None:
    from discreet.graph.datasets import load

    graph = split(load("cora", DATA_ROOT), "75/10/15", 0)
    assert GAP(Privacy(EdgeLevel(), 4.0)).fit(graph).score(graph) > 0.75
    assert GAP(Privacy.none()).fit(graph).score(graph) > 0.82
