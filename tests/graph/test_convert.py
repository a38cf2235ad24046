from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData

from discreet.errors import GraphError, UnsupportedError
from discreet.graph import (
    Graph,
    convert,
    from_networkx,
    from_pandas,
    from_pyg,
    from_scipy,
    to_networkx,
    to_pandas,
    to_pyg,
    to_scipy,
)
from discreet.graph.convert import as_graph
from discreet.graph.splits import split
from tests.graph.helpers import assert_same, dense


@pytest.fixture(params=["directed", "undirected"])
def either(request, small):
    return small if request.param == "directed" else small.to_undirected()


class TestPyG:
    def test_round_trip(self, either):
        back = from_pyg(to_pyg(either))
        assert_same(back, either)
        assert sp.issparse(back.features) == sp.issparse(either.features)

    def test_flow_is_source_to_target(self):
        data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0], [1, 2]]))
        graph = from_pyg(data, directed=True)
        assert graph.directed
        assert graph.in_degree().tolist() == [0, 1, 1]
        assert to_pyg(graph).edge_index.tolist() == [[0, 0], [1, 2]]

    def test_edges_are_not_looked_at_for_their_direction(self):
        data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0], [1, 2]]))
        assert not from_pyg(data).directed
        assert from_pyg(data).in_degree().tolist() == [2, 1, 1]
        assert from_pyg(data).inferred == {"classes"}
        assert not from_pyg(data, num_classes=2).inferred

    def test_does_not_share_memory(self):
        data = Data(x=torch.eye(3), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1, 0]))
        graph = from_pyg(data)
        data.x[:] = 5
        data.y[:] = 1
        np.testing.assert_array_equal(graph.features, np.eye(3))
        assert graph.labels.tolist() == [0, 1, 0]
        to_pyg(graph).x[:] = 5
        np.testing.assert_array_equal(graph.features, np.eye(3))

    @pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr"])
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_sparse_features(self, layout):
        data = Data(x=getattr(torch.eye(3), layout)(), edge_index=torch.tensor([[0], [1]]))
        assert sp.issparse(from_pyg(data).features)
        np.testing.assert_array_equal(dense(from_pyg(data)), np.eye(3))

    def test_several_masks_become_named_splits(self):
        train = torch.tensor([[True, False], [False, True], [False, False]])
        data = Data(x=torch.eye(3), edge_index=torch.tensor([[0], [1]]), train_mask=train, test_mask=~train)
        graph = from_pyg(data)
        assert graph.train_mask is None
        assert [split.name for split in graph.named_splits] == ["mask:0", "mask:1"]
        assert graph.named_splits[1].part.tolist() == [3, 1, 3]

    def test_column_of_labels(self):
        data = Data(x=torch.eye(3), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([[0], [1], [2]]))
        assert from_pyg(data).labels.tolist() == [0, 1, 2]
        assert from_pyg(data, num_classes=5).num_classes == 5

    def test_refusals(self):
        edges = torch.tensor([[0], [1]])
        with pytest.raises(UnsupportedError, match="HeteroData"):
            from_pyg(HeteroData())
        with pytest.raises(UnsupportedError, match="not int"):
            from_pyg(3)
        with pytest.raises(GraphError, match=r"data\.x is missing"):
            from_pyg(Data(edge_index=edges))
        with pytest.raises(GraphError, match=r"data\.edge_index is missing"):
            from_pyg(Data(x=torch.eye(2)))
        with pytest.raises(UnsupportedError, match="several labels"):
            from_pyg(Data(x=torch.eye(2), edge_index=edges, y=torch.eye(2)))
        weighted = Data(x=torch.eye(2), edge_index=edges, edge_weight=torch.tensor([2.0]))
        with pytest.raises(GraphError, match="edge_weight holds weights of edges"):
            from_pyg(weighted)
        assert from_pyg(weighted, weights="ignore").num_edges == 1
        with pytest.raises(GraphError, match="refuse"):
            from_pyg(weighted, weights="drop")
        told = Data(x=torch.eye(2), edge_index=edges, edge_attr=torch.ones(1, 4) / 2)
        with pytest.raises(GraphError, match="edge_attr holds features of edges"):
            from_pyg(told)
        assert from_pyg(told, weights="ignore").num_edges == 1
        with pytest.raises(GraphError, match=r"two rows, of sources and of targets, not shape \(3, 2\)"):
            from_pyg(Data(x=torch.eye(2), edge_index=torch.zeros(3, 2, dtype=torch.long)))

    def test_data_can_be_split(self):
        """By share, or by one of several columns of masks, as the refusal of data without a mask says."""
        data = Data(x=torch.eye(10), edge_index=torch.tensor([[0], [1]]), y=torch.arange(10) % 2)
        assert split(data, "80/10/10").train_mask.sum() == 8
        masks = torch.eye(10, dtype=torch.bool)
        several = Data(x=data.x, edge_index=data.edge_index, y=data.y, train_mask=masks[:, :4], test_mask=masks[:, 4:8])
        with pytest.raises(GraphError, match='"mask:0"'):
            as_graph(several).mask("train")
        assert split(several, "mask:0").train_mask.tolist() == masks[0].tolist()

    def test_missing_library_is_named(self, monkeypatch, small):
        monkeypatch.setattr("importlib.import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
        with pytest.raises(UnsupportedError, match="needs torch"):
            convert.to_pyg(small)


class TestNetworkX:
    def test_round_trip(self, either):
        assert_same(from_networkx(to_networkx(either)), either)

    def test_any_ids_and_several_attributes(self):
        graph = nx.Graph()
        graph.add_node("x", age=1, size=2.0, kind="b")
        graph.add_node((1, 2), age=3, size=4.0, kind="a")
        graph.add_node(5, age=0, size=0.0)
        graph.add_edge("x", (1, 2))
        made = from_networkx(graph, features=["age", "size"], label="kind")
        assert made.node_ids.tolist() == ["x", (1, 2), 5]
        assert made.features.tolist() == [[1, 2], [3, 4], [0, 0]]
        assert made.class_names == ("a", "b")
        assert made.labels.tolist() == [1, 0, -1]
        assert made.num_edges == 1
        assert not made.directed

    def test_parallel_edges_become_one(self):
        graph = nx.MultiDiGraph()
        graph.add_nodes_from([0, 1], x=[1.0])
        graph.add_edges_from([(0, 1), (0, 1), (1, 1)])
        made = from_networkx(graph, label=None)
        assert made.num_edges == 1
        assert made.directed
        assert made.in_degree().tolist() == [0, 1]

    def test_refusals(self):
        graph = nx.Graph()
        with pytest.raises(GraphError, match="no nodes"):
            from_networkx(graph)
        graph.add_node("a", x=[1.0])
        graph.add_node("b")
        with pytest.raises(GraphError, match="'b' has no feature attribute 'x'"):
            from_networkx(graph)
        graph.nodes["b"]["x"] = [1.0, 2.0]
        with pytest.raises(GraphError, match="differ in length"):
            from_networkx(graph)
        graph.nodes["b"]["x"] = [1.0]
        graph.add_edge("a", "b", weight=0.5)
        with pytest.raises(GraphError, match=r"weight 0\.5"):
            from_networkx(graph)
        assert from_networkx(graph, weights="ignore").num_edges == 1


class TestSciPy:
    def test_round_trip(self, either):
        made = from_scipy(
            to_scipy(either),
            either.features,
            either.labels,
            directed=either.directed,
            class_names=either.class_names,
            node_ids=either.node_ids,
            train_mask=either.train_mask,
            val_mask=either.val_mask,
            test_mask=either.test_mask,
        )
        assert_same(made, either)

    def test_rows_are_senders(self):
        adjacency = sp.csr_matrix(np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]]))
        graph = from_scipy(adjacency, np.eye(3), directed=True)
        assert graph.in_degree().tolist() == [0, 1, 1]
        np.testing.assert_array_equal(to_scipy(graph).toarray(), adjacency.toarray())

    def test_stored_zeros_are_no_edges(self):
        adjacency = sp.coo_array((np.array([0.0, 1.0]), ([0, 1], [1, 2])), shape=(3, 3))
        assert from_scipy(adjacency, np.eye(3)).num_edges == 1

    def test_refusals(self):
        weighted = sp.csr_array(np.array([[0, 2.5], [0, 0]]))
        with pytest.raises(GraphError, match=r"holds 2\.5"):
            from_scipy(weighted, np.eye(2))
        assert from_scipy(weighted, np.eye(2), weights="ignore").num_edges == 1
        with pytest.raises(GraphError, match="square"):
            from_scipy(sp.csr_array((2, 3)), np.eye(2))
        with pytest.raises(GraphError, match="square"):
            from_scipy(np.eye(2), np.eye(2))
        with pytest.raises(GraphError, match="2 rows and the features have 3"):
            from_scipy(sp.csr_array((2, 2)), np.eye(3))


class TestPandas:
    edges = pd.DataFrame({"from": ["u", "v"], "to": ["v", "w"]})
    nodes = pd.DataFrame({"node": ["w", "v", "u"], "a": [1, 2, 3], "class": ["x", None, "y"], "b": [0.5, 0, 0]})

    def test_round_trip(self, either):
        edges, nodes = to_pandas(either)
        back = from_pandas(edges, nodes, directed=either.directed)
        assert_same(back, either)
        assert sp.issparse(back.features) == sp.issparse(either.features)

    def test_missing_values_of_every_kind(self):
        """None, NaN, and the NA of pandas' own types."""
        for kind in (object, "string"):
            nodes = self.nodes.astype({"class": kind}).assign(a=pd.array([1, None, 3], dtype="Int64"))
            graph = from_pandas(self.edges, nodes)
            assert graph.labels.tolist() == [0, -1, 1]
            assert "a (missing)" in graph.feature_names

    def test_defaults(self):
        graph = from_pandas(self.edges, self.nodes)
        assert graph.node_ids.tolist() == ["w", "v", "u"]
        np.testing.assert_allclose(graph.features, [[-1, 1], [0, -1], [1, -1]], atol=0.05)
        assert graph.feature_names == ("a", "b")
        assert graph.class_names == ("x", "y")
        assert graph.labels.tolist() == [0, -1, 1]
        assert not graph.directed
        assert graph.in_degree().tolist() == [1, 2, 1]
        assert graph.train_mask is None
        assert graph.inferred == {"classes"}

    def test_public_class_list(self):
        graph = from_pandas(self.edges, self.nodes, classes=["z", "y", "x"])
        assert graph.labels.tolist() == [2, -1, 1]
        assert graph.num_classes == 3
        with pytest.raises(GraphError, match="'y' is not in the class list"):
            from_pandas(self.edges, self.nodes, classes=["x"])
        with pytest.raises(GraphError, match="each class once"):
            from_pandas(self.edges, self.nodes, classes=["x", "x"])

    @pytest.mark.parametrize("kind", ["int64", "uint64", "Int64", "float64", "str", "object"])
    def test_ids_of_different_types_match(self, kind):
        nodes = pd.DataFrame({"id": [10, 2, 3], "a": [1.0, 2, 3]})
        edges = pd.DataFrame({"s": [10, 2], "t": [2, 3]}).astype(kind)
        for left, right in ((edges, nodes), (edges, nodes.astype({"id": "str"}))):
            graph = from_pandas(left, right, directed=True)
            assert graph.node_ids.tolist() == [10, 2, 3]
            assert list(zip(*graph.edges(), strict=True)) == [(0, 1), (1, 2)]

    def test_ids_keep_their_spelling(self):
        nodes = pd.DataFrame({"id": ["007", "7", str(2**70)], "a": [1.0, 2, 3]})
        edges = pd.DataFrame({"s": ["007", str(2**70)], "t": ["7", "7"]})
        graph = from_pandas(edges, nodes)
        assert graph.node_ids.tolist() == ["007", "7", str(2**70)]
        assert from_pandas(edges.assign(s=[7, 7], t=[7, 7]), nodes).num_edges == 0

    def test_numeric_classes_in_numeric_order(self):
        nodes = self.nodes.assign(**{"class": [10.0, np.nan, 9.0]})
        graph = from_pandas(self.edges, nodes)
        assert graph.class_names == ("9", "10")
        assert graph.labels.tolist() == [1, -1, 0]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"source": "nope"}, "edge table has no column 'nope'"),
            ({"label": "nope"}, "node table has no column 'nope'"),
            ({"features": ["a", "nope"]}, "node table has no column 'nope'"),
            ({"features": ["class"]}, "'class' of the node table has another role"),
            ({"features": []}, "no feature columns"),
            ({"nodes": nodes.assign(node=["w", "v", "z"])}, "names node 'u'"),
            ({"nodes": nodes.assign(node=["w", "w", "u"])}, "'w' stands more than once"),
            ({"nodes": nodes.assign(node=["w", None, "u"])}, "row 1 of the node table has no id"),
            ({"nodes": nodes.assign(split=["train", "", "later"])}, "row 2 of the split is 'later'"),
            ({"nodes": nodes.assign(a=[1, np.inf, 2])}, "infinite in row 1"),
            ({"nodes": nodes.assign(node=["w", 1, "u"])}, "are of two types"),
            (
                {"nodes": nodes.assign(**{"class": [0.25, 1.5, None]})},
                r"holds numbers such as .*, which are no classes",
            ),
            ({"nodes": nodes.assign(day=pd.Timestamp("2024-01-01"))}, "'day' of the node table holds dates"),
            ({"nodes": pd.DataFrame()}, "no columns"),
            ({"edges": edges.assign(to=["v", None])}, "row 1 of the edge table has no 'to'"),
            ({"edges": edges[["from"]]}, "two columns of endpoints"),
            ({"edges": edges.assign(weight=[1, 2])}, "weights in column 'weight'"),
            ({"weights": "drop"}, "refuse"),
            ({"nodes": pd.concat([nodes, nodes[["a"]]], axis=1)}, "node table has more than one column 'a'"),
        ],
    )
    def test_refusals(self, change, message):
        given = {"edges": self.edges, "nodes": self.nodes} | change
        with pytest.raises(GraphError, match=message):
            from_pandas(**given)

    def test_chosen_columns(self):
        edges = self.edges.assign(weight=[1, 2])[["weight", "to", "from"]]
        given = {"source": "from", "target": "to", "features": "a", "weights": "ignore", "directed": True}
        graph = from_pandas(edges, self.nodes, **given)
        assert graph.features.shape == (3, 1)
        assert graph.schema.ignored == ("b",)
        assert graph.schema.edges_ignored == ("weight",)
        assert graph.in_degree().tolist() == [1, 1, 0]

    def test_undirected_on_request(self):
        assert from_pandas(self.edges, self.nodes, directed=False).num_edges == 2
        assert isinstance(from_pandas(self.edges, self.nodes, directed=False), Graph)
