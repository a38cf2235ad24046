"""Edges with weights: settled at the door, kept by every change of edges, and back from every other form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from discreet.errors import GraphError, PrivateDataError
from discreet.graph import Graph, from_networkx, from_pandas, from_pyg, from_scipy, to_networkx, to_pandas, to_pyg
from discreet.graph.account import account_of
from discreet.graph.convert import to_scipy
from discreet.graph.edge_weights import SUM_PLACES, weighted_sums
from discreet.graph.io import load_npz, load_path, save_npz
from discreet.graph.schema import Schema
from discreet.graph.schema_file import read_schema, write_schema
from discreet.privacy.levels import EdgeLevel, NoPrivacy, parse_level


def weighted(directed: bool = False) -> Graph:
    """Weights below, within and beyond [0, 1]; a duplicate, a reverse and a self-loop."""
    source, target = [0, 1, 0, 2, 3, 1], [1, 0, 2, 2, 0, 3]
    weights = [0.25, 0.5, 7.0, 1.0, -1.0, 0.125]
    return Graph.from_edges(
        source, target, np.eye(4), [0, 1, 0, 1], directed=directed, num_classes=2, edge_weights=weights
    )


def weight_of(graph: Graph, source: int, target: int) -> float:
    return float(graph.weighted_adjacency[target, source])


def test_weights_are_clipped_and_the_largest_of_an_edge_counts() -> None:
    both, one_way = weighted(), weighted(directed=True)
    assert [weight_of(both, *ends) for ends in ((0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (1, 3))] == [
        *(0.5, 0.5, 1.0, 1.0, 0.0, 0.125)
    ]
    assert [weight_of(one_way, *ends) for ends in ((0, 1), (1, 0), (0, 2), (3, 0))] == [0.25, 0.5, 1.0, 0.0]
    assert both.public.weighted
    assert "weighted" in repr(both)
    assert np.array_equal(both.adjacency.data, np.ones(both.num_entries))


def test_weights_stay_with_their_edges() -> None:
    graph = weighted(directed=True)
    source, target = graph.edges()
    fewer = graph.with_edges([*source[:2], 3], [*target[:2], 2])
    assert weight_of(fewer, source[0], target[0]) == weight_of(graph, source[0], target[0])
    assert weight_of(fewer, 3, 2) == 1.0
    assert weight_of(graph.to_undirected(), 0, 1) == 0.5
    assert weight_of(weighted().as_directed(), 1, 0) == 0.5
    assert graph.with_labels([1, 1, 0, 0]).public.weighted
    assert not graph.without_weights().public.weighted


def test_what_is_no_weight_is_refused() -> None:
    with pytest.raises(GraphError, match="one per edge"):
        Graph.from_edges([0], [1], np.eye(2), directed=False, edge_weights=[1.0, 2.0])
    with pytest.raises(GraphError, match="row 1 of the edges has no weight"):
        Graph.from_edges([0, 1], [1, 0], np.eye(2), directed=False, edge_weights=[1.0, np.nan])
    graph = weighted()
    assert graph.edge_weights is not None
    uneven = graph.edge_weights.copy()
    uneven[0] = 0.7
    with pytest.raises(GraphError, match="differ in weight"):
        replace(graph, edge_weights=uneven)


def test_weights_are_as_private_as_edges() -> None:
    closed = EdgeLevel().split(weighted())[0]
    assert closed.facts.weighted
    with pytest.raises(PrivateDataError, match="edges are private"):
        _ = closed.edge_weights
    with pytest.raises(PrivateDataError, match="edges are private"):
        _ = closed.weighted_adjacency
    opened = NoPrivacy().split(weighted())[0]
    assert opened.weighted_adjacency.nnz == weighted().num_entries


@pytest.mark.parametrize(
    "spec", ["edge", "neighbor:2,max_degree=4,edges=promised", "node:promised,max_degree=4,change=replace"]
)
def test_a_neighbour_may_have_another_weight(spec: str) -> None:
    level, graph, rng = parse_level(spec), weighted(), np.random.default_rng(0)
    moved = 0
    for _ in range(60):
        neighbor = level.neighbor(graph, rng)
        assert neighbor.public == graph.public
        assert neighbor.edge_weights is not None
        same = np.array_equal(neighbor.indices, graph.indices) and np.array_equal(neighbor.indptr, graph.indptr)
        moved += same and not np.array_equal(neighbor.edge_weights, graph.edge_weights)
    assert moved > 5
    assert "another weight" in level.describe_on(weighted=True)
    assert level.describe_on(weighted=False) == level.describe()


def test_one_weight_at_most_moves_at_edge_level() -> None:
    graph, rng = weighted(), np.random.default_rng(0)
    for _ in range(60):
        neighbor = EdgeLevel().neighbor(graph, rng)
        apart = abs(graph.weighted_adjacency - neighbor.weighted_adjacency).toarray()
        assert np.count_nonzero(apart) <= 2
        assert apart.max() <= 1


@pytest.mark.parametrize("directed", [False, True])
def test_other_forms_and_back(directed: bool, tmp_path: Path) -> None:
    graph = weighted(directed)
    back = [
        load_npz(save_npz(graph, tmp_path / "graph.npz")),
        from_pyg(to_pyg(graph)),
        from_networkx(to_networkx(graph), weights="read", classes=["0", "1"]),
        from_pandas(*to_pandas(graph), directed=directed, weights="read"),
    ]
    for other in back:
        assert (other.weighted_adjacency != graph.weighted_adjacency).nnz == 0
    dense = to_scipy(graph).toarray()  # an edge of weight 0 is none there
    assert np.array_equal(dense.T, graph.weighted_adjacency.toarray())
    read = from_scipy(sp.csr_array(dense), np.eye(4), directed=directed, weights="read")
    assert np.array_equal(read.weighted_adjacency.toarray(), graph.weighted_adjacency.toarray())


def test_a_plain_npz_keeps_its_layout(tmp_path: Path) -> None:
    with np.load(save_npz(weighted().without_weights(), tmp_path / "plain.npz")) as stored:
        assert stored["version"] == 1
        assert "edge_weights" not in stored
    with np.load(save_npz(weighted(), tmp_path / "weighted.npz")) as stored:
        assert stored["version"] == 2


# -------------------------------------------------------------------- tables


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes = pd.DataFrame({"id": ["a", "b", "c"], "x": [0.1, 0.2, 0.3], "label": ["yes", "no", "yes"]})
    edges = pd.DataFrame({"amount": [250, 4000, 0], "from": ["a", "b", "a"], "to": ["b", "c", "c"]})
    return edges, nodes


def test_a_declared_column_is_read_and_accounted_for() -> None:
    edges, nodes = tables()
    graph = from_pandas(edges, nodes, weight="amount", full_weight=1000)
    assert [weight_of(graph, *ends) for ends in ((0, 1), (1, 2), (0, 2))] == [0.25, 1.0, 0.0]
    schema = graph.schema
    assert schema is not None
    assert (schema.source, schema.target, schema.weight, schema.full_weight) == ("from", "to", "amount", 1000)
    assert schema.edges_ignored == ()
    rows = {row["column"]: row for row in account_of(graph)}
    assert rows["amount"]["read as"] == "weight"
    assert "1000 being a whole edge" in rows["amount"]["becomes"]
    assert Schema.from_json(schema.to_json()) == schema
    again = from_pandas(edges[["to", "amount", "from"]], nodes, schema=schema)
    assert (again.weighted_adjacency != graph.weighted_adjacency).nnz == 0


def test_a_schema_file_declares_it(tmp_path: Path) -> None:
    edges, nodes = tables()
    edges.to_csv(tmp_path / "edges.csv", index=False)
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    (tmp_path / "schema.toml").write_text('[edges]\nsource = "from"\nweight = "amount"\nfull_weight = 1000\n')
    graph = load_path(tmp_path)
    assert weight_of(graph, 0, 1) == 0.25
    assert graph.schema is not None
    (tmp_path / "again.toml").write_text(write_schema(graph.schema))
    assert read_schema(tmp_path / "again.toml").full_weight == 1000


def test_tables_that_contradict_their_weights_are_refused() -> None:
    edges, nodes = tables()
    with pytest.raises(GraphError, match="no column 'sum'"):
        from_pandas(edges, nodes, weight="sum")
    with pytest.raises(GraphError, match="row 1 of the edge table has no number in column 'amount'"):
        from_pandas(edges.assign(amount=[1, None, 2]), nodes, weight="amount")
    with pytest.raises(GraphError, match="full_weight"):
        from_pandas(edges, nodes, weight="amount", full_weight=0)
    with pytest.raises(GraphError, match="full_weight must be a number"):
        from_pandas(edges, nodes, weight="amount", full_weight="much")
    with pytest.raises(GraphError, match="an endpoint and a weight"):
        from_pandas(edges, nodes, source="from", target="to", weight="to")
    named = edges.rename(columns={"amount": "weight"})
    with pytest.raises(GraphError, match="--column weight=weight"):
        from_pandas(named, nodes, source="from", target="to")
    assert from_pandas(named, nodes, source="from", target="to", weights="ignore").edge_weights is None
    assert from_pandas(named, nodes, weights="read").public.weighted
    with pytest.raises(GraphError, match="no column of weights"):
        from_pandas(edges, nodes, weights="read")


# -------------------------------------------------------------------- sums


def one_receiver(weights: np.ndarray) -> sp.csr_array:
    return sp.csr_array((weights, np.arange(len(weights)), [0, len(weights)]), shape=(1, len(weights)))


def hub_that_straddles(power: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights and rows (all of norm below 1) of a hub: with its first neighbour the sum lies above 2^power, without it
    below, where doubles are twice as dense; then come as many terms of half a step, which one of the two would drop.
    """
    sent = (2**SUM_PLACES - 9) / 2**SUM_PLACES
    whole = int(2**power / sent) + 1
    tiny = np.full(2**power, 0.99 * 2.0 ** (power - 53) / sent)
    rows = np.concatenate([np.full(whole, sent), np.full(2**power, -sent)])[:, None]
    return np.concatenate([np.ones(whole), tiny]).astype(np.float32), rows


def test_one_edge_moves_a_weighted_sum_by_no_more_than_its_row_at_any_degree() -> None:
    weights, rows = hub_that_straddles(18)
    without = weights.copy()
    without[0] = 0.0
    moved = weighted_sums(one_receiver(weights), rows) - weighted_sums(one_receiver(without), rows)
    assert moved == rows[0]
    plain = one_receiver(weights.astype(np.float64)) @ rows - one_receiver(without.astype(np.float64)) @ rows
    assert plain > rows[0] * (1 + 2.0**-19)  # more than the room for rounding


@pytest.mark.parametrize("weight", [-0.0, 0.0, 5e-324, 1e-40, 2.0**-24, 1 / 3, 1 - 2.0**-24, 1.0])
def test_what_an_entry_adds_lies_between_nothing_and_its_row(weight: float) -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (1, 50))
    rows = np.trunc(rows * 2**SUM_PLACES) / 2**SUM_PLACES
    added = weighted_sums(one_receiver(np.array([weight], dtype=np.float32)), rows)
    assert (np.abs(added) <= np.abs(rows)).all()
    assert (added * rows >= 0).all()
    assert np.allclose(added, np.float32(weight) * rows, rtol=0, atol=2.0**-SUM_PLACES)
    assert np.array_equal(added * 2**SUM_PLACES, np.rint(added * 2**SUM_PLACES))


def test_the_order_of_entries_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    weights, rows = rng.random(5000, dtype=np.float32), rng.standard_normal((5000, 2))
    order = rng.permutation(5000)
    both = (weighted_sums(one_receiver(w), r) for w, r in ((weights, rows), (weights[order], rows[order])))
    assert np.array_equal(*both)
