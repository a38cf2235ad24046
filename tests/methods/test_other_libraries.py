"""Graphs of torch_geometric go in as they are, and names are matched, whatever the method."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import discreet
from discreet.errors import GraphError, ParameterError, UnsupportedError
from discreet.graph import Graph, csbm, from_pandas, split, to_pyg
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.methods.gap.estimator import GAP
from discreet.methods.gcon.moments import GCONSSP
from discreet.methods.hop_bayes.estimator import HopBayes
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, NodeLevel
from tests.graph.test_parts import EDGES, NODES

EDGE = Privacy(EdgeLevel(), 4.0)
QUICK = {"epochs": 2, "hidden": 8}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return split(csbm(num_nodes=200), "75/10/15", 0)


@pytest.mark.parametrize(
    "method", [GAP(EDGE, **QUICK), MLPClassifier(EDGE, **QUICK), GCONSSP(EDGE), HopBayes(EDGE)], ids=lambda m: m.method
)
def test_data_of_pyg_goes_in_as_it_is(graph: Graph, method: GAP) -> None:
    data = to_pyg(graph)
    seeded = method.set_params(insecure_noise_seed=1)
    ours = seeded.fit(graph).predict_proba(graph, audience="owner")
    theirs = seeded.fit(data).predict_proba(data, audience="owner")
    np.testing.assert_array_equal(ours, theirs)
    assert seeded.predict(data, audience="owner").shape == (200,)
    assert seeded.score(data) == seeded.score(graph)
    seeded.plan_for(data)


@pytest.mark.parametrize("method", [GAP(EDGE, **QUICK), GCONSSP(EDGE), HopBayes(EDGE)], ids=lambda m: m.method)
def test_predicting_needs_no_labels(graph: Graph, method: GAP) -> None:
    fitted = method.fit(graph)
    bare = Graph.from_edges(*graph.edges(), graph.features, directed=False)
    assert bare.num_classes == 0
    assert fitted.predict_proba(bare, uncovered=True).shape == (200, 2)
    data = Data(x=torch.from_numpy(np.array(graph.features)), edge_index=torch.from_numpy(np.stack(graph.edges())))
    assert fitted.predict(data, uncovered=True).shape == (200,)


def test_private_labels_need_declared_classes_in_pyg_too(graph: Graph) -> None:
    with pytest.raises(ValueError, match="num_classes"):
        GAP(Privacy(NodeLevel(5), 4.0), **QUICK).fit(to_pyg(graph))


def test_what_is_no_graph() -> None:
    with pytest.raises(UnsupportedError, match="not dict"):
        GAP(EDGE).fit({})  # type: ignore[arg-type]


def test_features_are_matched_by_name() -> None:
    nodes, edges = NODES.assign(label=["p", "q", "p"]), EDGES
    graph = from_pandas(edges, nodes).with_masks([0, 1], [2], None)
    model = MLPClassifier(EDGE, **QUICK).fit(graph)
    order = [2, 0, 1]
    moved = graph.with_features(np.asarray(graph.features)[:, order])
    moved = moved._derive(feature_names=tuple(graph.feature_names[place] for place in order))
    np.testing.assert_array_equal(model.predict_proba(graph), model.predict_proba(moved))
    other = graph._derive(feature_names=("age", "town=x", "town=z"))
    with pytest.raises(ParameterError, match="lacks town=y; it has town=z"):
        model.predict(other)


def test_a_table_that_was_measured_anew_is_refused() -> None:
    graph = from_pandas(EDGES, NODES).with_masks([0, 1], [2], None)
    model = MLPClassifier(EDGE, **QUICK).fit(graph)
    later = NODES.assign(age=[10.0, 20.0, 90.0])
    with pytest.raises(ParameterError, match="schema=model"):
        model.predict(from_pandas(EDGES, later))
    model.predict(from_pandas(EDGES, later, schema=model.schema_))


def test_a_mark_for_unlabelled_nodes_is_no_class(graph: Graph) -> None:
    data = to_pyg(graph)
    data.y[::7] = 255
    with pytest.raises(GraphError, match="only 3 of these 256 classes occur"):
        GAP(EDGE, **QUICK).fit(data)
    with pytest.raises(GraphError, match="only 3 of these 256 classes occur"):
        GAP(EDGE, **QUICK).plan(data)
    fitted = GAP(EDGE, **QUICK).fit(graph)
    assert fitted.predict_proba(data).shape == (200, 2)  # predicting needs no labels, whatever they are


def test_labels_of_data_that_are_words() -> None:
    data = discreet.to_pyg(discreet.split(csbm(num_nodes=60, seed=0), "60/20/20", seed=0))
    data.y = [("cat", "dog")[label] for label in data.y.tolist()]
    model = discreet.MLPClassifier(discreet.Privacy(discreet.EdgeLevel(), 1.0), epochs=1).fit(data)
    assert model.classes_.tolist() == ["cat", "dog"]
    assert set(model.predict(data)) <= {"cat", "dog"}
    data.class_names = ["dog", "cat", "cow"]
    assert discreet.from_pyg(data).class_names == ("dog", "cat", "cow")
    data.y = torch.eye(2)[torch.zeros(60, dtype=torch.long)]
    with pytest.raises(UnsupportedError, match=r"argmax\(dim=1\)"):
        discreet.from_pyg(data)


def test_text_in_an_attribute_of_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_node("a", age=3, sex="f")
    with pytest.raises(GraphError, match="attribute 'sex' of node 'a' is the text 'f'"):
        discreet.from_networkx(graph, features=["age", "sex"])
