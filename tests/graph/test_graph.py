from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import GraphError
from discreet.graph import Graph, NamedSplit, PublicFacts
from discreet.graph.io import save_npz
from discreet.graph.synthetic import csbm

X = np.eye(4, dtype=np.float32)


def build(sources=(0, 1), targets=(1, 2), features=X, labels=(0, 1, 0, -1), **rest) -> Graph:
    return Graph.from_edges(sources, targets, features, labels, **rest)


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(node, node), max_size=30))


class TestFromEdges:
    @given(edge_lists(), st.sampled_from([True, False, None]))
    @settings(max_examples=150, deadline=None)
    def test_canonical_form(self, case, directed):
        n, edges = case
        ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
        graph = Graph.from_edges(ends[:, 0], ends[:, 1], np.zeros((n, 1)), directed=directed)
        wanted = {(a, b) for a, b in edges if a != b}
        if directed is False:
            wanted |= {(b, a) for a, b in wanted}
        source, target = graph.edges()
        held = list(zip(source.tolist(), target.tolist(), strict=True))
        assert len(held) == len(set(held))
        assert set(held) == wanted
        assert held == sorted(held, key=lambda edge: (edge[1], edge[0]))
        symmetric = wanted == {(b, a) for a, b in wanted}
        assert graph.directed == (directed if directed is not None else not symmetric)
        assert graph.directed or symmetric
        again = Graph(graph.indptr, graph.indices, graph.features, graph.labels, 0, graph.directed)
        assert again.num_edges == graph.num_edges

    def test_rows_are_receivers(self):
        graph = build([0, 1], [2, 2], directed=True)
        assert graph.indices[graph.indptr[2] : graph.indptr[3]].tolist() == [0, 1]
        assert graph.in_degree().tolist() == [0, 0, 2, 0]
        assert graph.out_degree().tolist() == [1, 1, 0, 0]
        assert graph.adjacency.toarray()[2].tolist() == [1, 1, 0, 0]
        np.testing.assert_array_equal((graph.adjacency @ graph.features)[2], X[0] + X[1])

    def test_counts(self):
        assert build(directed=False).num_edges == 2
        assert build(directed=False).num_entries == 4
        assert build(directed=True).num_edges == build(directed=True).num_entries == 2
        assert build([], []).num_edges == 0

    def test_num_classes_is_public_knowledge(self):
        assert build(num_classes=5).num_classes == 5
        assert build(labels=None).num_classes == 0

    def test_public_facts_hide_the_edges(self):
        graph = build(train_mask=[0, 1], directed=False)
        assert graph.public == PublicFacts(4, 4, 2, 2, False)
        assert graph.public == graph.with_edges([], []).public

    def test_float_labels_with_nan(self):
        assert build(labels=[0.0, np.nan, 1.0, -1.0]).labels.tolist() == [0, -1, 1, -1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sources": [0, 9]}, "names node 9"),
        ({"sources": [0, -1]}, "names node -1"),
        ({"sources": [0]}, "two endpoint arrays"),
        ({"sources": [0.0, 1.0]}, "whole numbers"),
        ({"sources": ["a", "b"]}, "whole numbers"),
        ({"features": [[0.0], [1.0], [np.nan], [2.0]]}, "first in row 2"),
        ({"features": [[0.0], [1.0], [2.0], [np.inf]]}, "first in row 3"),
        ({"features": sp.csr_array([[0.0], [np.nan], [0.0], [1.0]])}, "first in row 1"),
        ({"features": [[1e300], [0.0], [0.0], [0.0]]}, "infinite"),
        ({"features": [1.0, 2.0, 3.0, 4.0]}, "one row per node"),
        ({"features": [["a"], ["b"], ["c"], ["d"]]}, "real numbers"),
        ({"features": [[1.0], [1.0, 2.0], [1.0], [1.0]]}, "cannot be read as an array"),
        ({"features": X * 1j}, "real numbers"),
        ({"features": sp.csr_array(X * 1j)}, "real numbers"),
        ({"features": np.zeros((0, 3)), "labels": [], "sources": [], "targets": []}, "no nodes"),
        ({"labels": [0, 1]}, "labels have shape"),
        ({"labels": ["a", "b", "c", "d"]}, "whole numbers from 0"),
        ({"labels": [0.5, 0, 0, 0]}, "whole numbers from 0"),
        ({"labels": [np.inf, 0, 0, 0]}, "whole numbers from 0"),
        ({"labels": [-2, 0, 0, 0]}, "label -2 is out of range"),
        ({"num_classes": 1}, "label 1 is out of range"),
        ({"class_names": ("one",)}, "1 class names for 2"),
        ({"node_ids": ["a", "b"]}, "2 node ids for 4"),
        ({"node_ids": ["a", "b", "c", "a"]}, "'a' is given to more than one"),
        ({"train_mask": [True, False]}, "train mask has shape"),
        ({"train_mask": [4]}, "node indices from 0 to 3"),
        ({"train_mask": [0.5]}, "node indices from 0 to 3"),
        ({"train_mask": [0], "test_mask": [0]}, "shares 1 nodes"),
        ({"named_splits": (("public", [0, 1]),)}, "'public' must hold"),
        ({"named_splits": (("public", [0, 1, 4, 0]),)}, "'public' must hold"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(GraphError, match=message):
        build(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": [0, 1]}, "indptr must rise"),
        ({"indptr": [0, 2, 1, 2, 2]}, "indptr must rise"),
        ({"indptr": [0.0, 1, 2, 2, 2]}, "flat array of whole numbers"),
        ({"indices": [9, 0]}, "names node 9"),
        ({"indices": [0, 1]}, "self-loops"),
        ({"indptr": [0, 2, 2, 2, 2], "indices": [2, 1]}, "must be sorted"),
        ({"indptr": [0, 2, 2, 2, 2], "indices": [1, 1]}, "duplicates"),
        ({"indptr": [0, 1, 1, 1, 1], "indices": [1]}, "lacks its reverse"),
        ({"features": X * np.nan}, "NaN"),
    ],
)
def test_plain_constructor_checks(change, message):
    fields = {"indptr": [0, 1, 2, 2, 2], "indices": [1, 0], "features": X, "labels": [0, 0, 0, 0]}
    assert Graph(**fields, num_classes=1, directed=False).num_edges == 1
    with pytest.raises(GraphError, match=message):
        Graph(**(fields | change), num_classes=1, directed=False)


class TestImmutable:
    def arrays(self, graph):
        features = graph.features
        parts = [features] if isinstance(features, np.ndarray) else [features.data, features.indices]
        named = [split.part for split in graph.named_splits]
        masks = [graph.train_mask, graph.val_mask, graph.test_mask, graph.node_ids]
        matrix = [graph.adjacency.data, graph.adjacency.indices, graph.adjacency.indptr]
        return [graph.indptr, graph.indices, graph.labels, *parts, *named, *masks, *matrix]

    @pytest.mark.parametrize("remake", [lambda g: g, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
    def test_arrays_are_read_only(self, small, remake):
        for array in self.arrays(remake(small)):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[0]

    def test_fields_cannot_be_set(self, small):
        with pytest.raises(dataclasses.FrozenInstanceError):
            small.directed = False

    def test_shares_nothing_with_the_caller(self):
        features, labels, mask = X.copy(), np.zeros(4, dtype=np.int64), np.array([True, False, False, False])
        ids = np.arange(4)
        made = [
            Graph.from_edges([0], [1], features, labels, directed=True, train_mask=mask, node_ids=ids),
            Graph(np.array([0, 1, 2, 2, 2]), np.array([1, 0]), features, labels, 1, False, train_mask=mask),
        ]
        features[:], labels[:], mask[:], ids[:] = 7, 7, True, 7
        for graph in made:
            np.testing.assert_array_equal(graph.features, X)
            assert graph.labels.max() == 0
            assert graph.public.num_train == 1
        assert made[0].node_ids.tolist() == [0, 1, 2, 3]

    def test_frozen_features_are_not_copied(self):
        features = X.copy()
        features.flags.writeable = False
        assert Graph.from_edges([0], [1], features).features is features
        view = X.copy()[:, :]
        view.flags.writeable = False  # its base can still be written to
        assert Graph.from_edges([0], [1], view).features is not view


class TestDerived:
    def test_with_methods(self, small):
        assert small.with_edges([5], [0]).num_edges == 1
        assert small.with_features(np.zeros((6, 9))).num_features == 9
        assert small.with_labels([2, 2, 2, 2, 2, -1]).labels.tolist() == [2, 2, 2, 2, 2, -1]
        assert small.with_masks([5], None, None).mask("train").tolist() == [False] * 5 + [True]
        assert small.to_undirected().directed is False
        assert small.to_undirected().num_edges == 5

    def test_with_methods_check(self, small):
        with pytest.raises(GraphError, match="9 rows"):
            small.with_features(np.zeros((9, 1)))
        with pytest.raises(GraphError, match="label 3"):
            small.with_labels([3, 0, 0, 0, 0, 0])
        with pytest.raises(GraphError, match="names node 6"):
            small.with_edges([6], [0])
        with pytest.raises(GraphError, match="shares"):
            small.with_masks([1], [1], None)

    def test_masks_by_name(self, small):
        assert small.mask("val").tolist() == [False, False, True, False, False, False]
        with pytest.raises(GraphError, match="must be one of"):
            small.mask("dev")
        with pytest.raises(GraphError, match="split it first"):
            build().mask("train")

    def test_named_splits(self, small):
        train, val, test = small.named_split("public")
        assert (train.sum(), val.sum(), test.sum()) == (2, 1, 2)
        with pytest.raises(GraphError, match="it came with: public"):
            small.named_split("other")

    def test_undirected_edges_stay_symmetric(self):
        graph = build(directed=False).with_edges([3], [0])
        assert graph.num_edges == 1
        assert graph.num_entries == 2
        assert graph.to_undirected() is graph

    def test_repr(self, small):
        assert repr(small).startswith("Graph('small', nodes=6, directed edges=5, features=2 (")


def test_object_ids_are_kept_whole():
    graph = build(node_ids=[(0, 1), "a", 3, None])
    assert graph.node_ids.tolist() == [(0, 1), "a", 3, None]
    assert build(node_ids=[2**70, 1, 2, 3]).node_ids.tolist() == [2**70, 1, 2, 3]


def test_named_split_type():
    graph = build(named_splits=(("mine", [1, 2, 3, 0]),))
    assert isinstance(graph.named_splits[0], NamedSplit)


def test_import_is_cheap():
    heavy = ("torch", "pandas", "networkx", "torch_geometric", "pyarrow", "sklearn")
    code = f"import sys, discreet.graph; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_senders_take_32_bits_and_come_out_in_64(tmp_path: Path) -> None:
    graph = csbm(60, 3)
    assert graph.indices.dtype == np.int32
    assert graph.adjacency.indices is graph.indices or np.shares_memory(graph.adjacency.indices, graph.indices)
    assert all(ends.dtype == np.int64 for ends in graph.edges())
    with np.load(save_npz(graph, tmp_path / "graph.npz")) as stored:
        assert stored["indices"].dtype == np.int64


def test_some_entries_of_a_directed_graph() -> None:
    graph = csbm(60, 3).as_directed()
    source, target = graph.edges()
    keep = (source + target) % 3 > 0
    found, expected = graph.with_entries(keep), graph.with_edges(source[keep], target[keep])
    assert np.array_equal(found.indptr, expected.indptr)
    assert np.array_equal(found.indices, expected.indices)
    with pytest.raises(GraphError, match="do not stand by themselves"):
        csbm(60, 3).with_entries(keep)


def test_more_edges_than_proofs_hold_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.graph.clean.ENTRIES", 4)
    features, labels = np.ones((3, 1), np.float32), np.zeros(3, np.int64)
    assert Graph.from_edges([0, 1], [1, 2], features, labels, directed=False, num_classes=2).num_entries == 4
    with pytest.raises(GraphError, match=r"more than 4 directed edges") as refused:
        Graph.from_edges([0, 1, 0], [1, 2, 2], features, labels, directed=False, num_classes=2)
    assert "6" not in str(refused.value)
