"""Objects of any type at the door of a graph: one sentence, no error of another library, no silent misreading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import discreet
from discreet.errors import DiscreetError, GraphError, ParameterError
from discreet.graph.convert import from_networkx, from_pandas, from_pyg, from_scipy
from discreet.graph.schema import Column

N = 4
X = np.eye(N, dtype=np.float32)
ENDS = np.array([[0, 1, 2], [1, 2, 3]])
Y = np.array([0, 1, 0, 1])


class Surprise:
    """What raises an error of its own when it is asked for values, and cannot be shown either."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError("surprise")

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def beyond(index: int) -> sp.csr_array:
    """A sparse matrix that names a column that it does not have; SciPy looks only when it is made."""
    made = sp.csr_array(X.copy())
    made.indices[0] = index
    return made


def build(**change: Any) -> discreet.Graph:
    given = {"features": X, "labels": Y, "sources": ENDS[0], "targets": ENDS[1], "directed": False, **change}
    return discreet.Graph.from_edges(**given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": beyond(100)}, "not a sound sparse matrix"),
        ({"features": beyond(-1)}, "not a sound sparse matrix"),
        ({"features": beyond(100).tocsr(copy=True).T}, "not a sound sparse matrix"),
        ({"features": np.ma.masked_array(X, X > 0)}, "masked"),
        ({"features": X.astype("datetime64[D]")}, "dates"),
        ({"features": X.astype("timedelta64[D]")}, "lengths of time"),
        ({"features": [[10**400]] * N}, "real numbers"),
        ({"features": Surprise()}, "surprise"),
        ({"labels": np.ma.masked_array(Y, Y > 0)}, "masked"),
        ({"labels": np.full(N, 2**64 - 1, dtype=np.uint64)}, "out of range"),
        ({"sources": np.ma.masked_array(ENDS[0], ENDS[0] > 1)}, "masked"),
        ({"train_mask": np.ones(N, dtype=int)}, "names a node twice"),
        ({"train_mask": Surprise()}, "surprise"),
        ({"node_ids": 3}, "must be a list"),
        ({"node_ids": set("abcd")}, "must be a list"),
        ({"node_ids": [[1], [2], [3], [4]]}, "is no name"),
        ({"node_ids": ["a", "b", "c", "\udc80"]}, "UTF-8"),
        ({"num_classes": 2.5}, "whole number"),
        ({"num_classes": float("nan")}, "whole number"),
        ({"num_classes": "2"}, "whole number"),
        ({"num_classes": Surprise()}, "whole number, not Surprise"),
        ({"directed": "no"}, "True or False"),
        ({"directed": np.array([True, False])}, "True or False"),
        ({"class_names": {"a", "b"}}, "list of texts"),
        ({"class_names": 3}, "list of texts"),
        ({"class_names": ["a", "a"]}, "twice"),
        ({"class_names": ["a", "\udc80"]}, "UTF-8"),
        ({"feature_names": ["a", "b", "c", "a"]}, "twice"),
        ({"name": 5}, "must be text"),
        ({"name": "\udc80"}, "UTF-8"),
        ({"named_splits": 5}, "list of pairs"),
        ({"named_splits": ["ab"]}, "list of pairs"),
        ({"named_splits": [("a", ["x"] * N)]}, "0, 1, 2 or 3"),
        ({"named_splits": [("a", np.full(N, 257))]}, "0, 1, 2 or 3"),  # 1 in eight bits
    ],
)
def test_what_a_graph_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        build(**change)


def test_what_a_graph_takes() -> None:
    """Types that hold the same values, whatever their order of bytes, strides or library."""
    wanted = build()
    for features in (X.astype(">f8"), X[::-1][::-1], torch.eye(N, requires_grad=True), sp.dok_array(X), X.tolist()):
        found = build(features=features).features
        assert np.array_equal(found if isinstance(found, np.ndarray) else found.toarray(), wanted.features)
    found = build(labels=pd.array([0, None, 0, 1], dtype="Int64"), num_classes=np.int8(2), directed=np.False_)
    assert found.labels.tolist() == [0, -1, 0, 1]
    assert type(found.num_classes) is int
    assert found.directed is False


def data(**change: Any) -> Data:
    return Data(**{"x": torch.eye(N), "edge_index": torch.tensor(ENDS), "y": torch.tensor(Y), **change})


def path(**nodes: Any) -> nx.Graph:
    made = nx.path_graph(N)
    for node in made:
        made.nodes[node].update({"x": [1.0, 2.0], "y": node % 2, **nodes})
    return made


def tables(**columns: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes = {"id": range(N), "label": ["a", "b"] * 2, "f": [1.0, 2.0, 3.0, 4.0], **columns}
    return pd.DataFrame({"source": ENDS[0], "target": ENDS[1]}), pd.DataFrame(nodes)


A = sp.coo_array((np.ones(3), (ENDS[0], ENDS[1])), shape=(N, N)).tocsr()


def spoilt(matrix: sp.csr_array, array: str, value: int) -> sp.csr_array:
    copy = matrix.copy()
    getattr(copy, array)[1] = value
    return copy


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: from_pyg(data(x=torch.eye(N) * 1j)), "complex"),
        (lambda: from_pyg(data(x=torch.eye(N).to_sparse_bsr((2, 2)))), "cannot be read"),
        (lambda: from_pyg(data(x=torch.empty(N, 2, device="meta"))), "cannot be read"),
        (lambda: from_pyg(data(x="abc")), "real numbers"),
        (lambda: from_pyg(data(edge_index="abc")), "two rows"),
        (lambda: from_pyg(data(edge_index=torch.empty(2, 3, device="meta"))), "cannot be read as an array"),
        (lambda: from_pyg(data(y="abc")), "several labels"),
        (lambda: from_pyg(data(train_mask=torch.arange(N))), "a boolean for each"),
        (lambda: from_pyg(data(train_mask=torch.full((N,), float("nan")))), "a boolean for each"),
        (lambda: from_pyg(data(train_mask=torch.ones(2, 3))), "a boolean for each"),
        (lambda: from_pyg(data(train_mask=torch.ones(N, 3), val_mask=torch.zeros(N, 2))), "differ in their number"),
        (lambda: from_pyg(data(edge_weight="x")), "edge_weight"),
        (lambda: from_pyg(data(edge_attr=[2, 2, 2])), "edge_attr"),
        (lambda: from_pyg(data(class_names=3)), "list of texts"),
        (lambda: from_networkx(3), "NetworkX"),
        (lambda: from_networkx(path(), features=[]), "must name a node attribute"),
        (lambda: from_networkx(path(), features=3), "list of texts"),
        (lambda: from_networkx(path(), label=[1]), "must name a node attribute"),
        (lambda: from_networkx(path(), classes=5), "must be a list"),
        (lambda: from_networkx(path(x=torch.ones(2, device="meta"))), "cannot be read as an array"),
        (lambda: from_networkx(path(x=[[1.0]])), "no flat list"),
        (lambda: from_scipy(spoilt(A, "indices", 77), X), "not a sound sparse matrix"),
        (lambda: from_scipy(spoilt(A, "indptr", 99), X), "not a sound sparse matrix"),
        (lambda: from_scipy(A, None), "one row per node"),
        (lambda: from_pandas(None, tables()[1]), "pandas DataFrame"),
        (lambda: from_pandas(*tables(**{"0": 1.0}), schema="x"), "must be a Schema"),
        (lambda: from_pandas(tables()[0], tables()[1].rename(columns={"f": 0})), "which is no text"),
        (lambda: from_pandas(*tables(f=pd.to_timedelta([1, 2, 3, 4]))), "lengths of time"),
        (lambda: from_pandas(*tables(f=[1j, 2j, 3j, 4j])), "complex numbers"),
        (lambda: from_pandas(*tables(), features=5), "list of names"),
        (lambda: Column("f", "numeric", range=(0, 10**400)), "two numbers"),
        (lambda: from_pandas(*tables(), full_weight=[1]), "must be a number"),
    ],
)
def test_what_conversions_refuse(read: Callable[[], Any], message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        read()


def test_masks_of_zeros_and_ones_are_masks_in_pyg() -> None:
    """As PyG had them before booleans."""
    mask = torch.tensor([0, 1, 1, 0], dtype=torch.uint8)
    assert from_pyg(data(train_mask=mask)).train_mask.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    "call",
    [
        lambda: discreet.load(None),
        lambda: discreet.load(["csbm"]),
        lambda: discreet.from_folder(3),
        lambda: discreet.from_folder("a\0b"),
        lambda: discreet.read_graph(b"x", b"y"),
        lambda: discreet.load_release(None),
        lambda: discreet.load_release("nowhere", compute="cpu"),
        lambda: discreet.split(build(), "75/10/15", seed=-1),
        lambda: discreet.split(build(), "75/10/15", seed="x"),
        lambda: discreet.csbm(num_nodes=10**400),
        lambda: discreet.csbm(phi="x"),
        lambda: discreet.csbm(epsilon=10**400),
        lambda: discreet.csbm(seed=1.5),
        lambda: discreet.find_method(3),
        lambda: discreet.parse_level(None),
        lambda: discreet.recommend(build().public, None),
        lambda: discreet.recommend(None, discreet.Privacy(discreet.EdgeLevel(), 1.0)),
    ],
)
def test_calls_that_take_no_such_thing(call: Callable[[], Any]) -> None:
    with pytest.raises(DiscreetError):
        call()


def test_a_verification_of_no_path_fails() -> None:
    (check,) = discreet.verify(None)  # type: ignore[arg-type]
    assert not check.passed


def test_a_generator_is_a_seed() -> None:
    drawn = [discreet.csbm(num_nodes=20, seed=seed) for seed in (3, np.random.default_rng(3), np.int64(3))]
    assert len({graph.num_edges for graph in drawn}) == 1
    with pytest.raises(ParameterError, match="seed"):
        discreet.csbm(seed={})
