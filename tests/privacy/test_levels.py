"""Levels: specs read back, neighbours are neighbours by the stated definition, bad values are refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.audit.small_graphs import small_graph
from discreet.errors import PrivacyError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.privacy.budget import Privacy, auto_delta
from discreet.privacy.levels import EdgeLevel, Level, LocalLevel, NeighborLevel, NodeLevel, NoPrivacy, parse_level

SPECS = [
    "none",
    "edge",
    "edge:directed",
    "neighbor:3",
    "neighbor:5,max_degree=20",
    "neighbor:5,max_degree=20,edges=promised",
    "node",
    "node:owned,max_degree=20,change=null",
    "node:promised,max_degree=50",
    "node:thinned,d_max=200,p=0.05",
    "node:owned,max_degree=7,change=replace",
    "local",
    "local:features",
    "local:labels",
]


def entries(graph: Graph) -> set[tuple[int, int]]:
    source, target = graph.edges()
    return set(zip(source.tolist(), target.tolist(), strict=True))


def changed_rows(one: Graph, two: Graph) -> set[int]:
    rows = (np.asarray(one.features) != np.asarray(two.features)).any(axis=1) | (one.labels != two.labels)
    return set(np.flatnonzero(rows).tolist())


@pytest.mark.parametrize("spec", SPECS)
def test_spec_round_trip(spec: str) -> None:
    level = parse_level(spec)
    assert parse_level(level.spec) == level
    assert level.describe()
    assert level.public_knowledge()


@pytest.mark.parametrize(
    "spec",
    [
        "edges", "edge:both", "edge,k=1", "neighbor", "neighbor:0", "neighbor:x", "node:greedy",
        "node:owned,max_degree=0",
        "node:thinned", "node:thinned,d_max=5,p=0", "node:thinned,d_max=5,p=2", "node,change=add", "node,max_degree",
        "node:max_degree=3,max_degree=5", "node:owned,edges=promised",
        "node,size=3", "node:promised,d_max=3", "local:x", "", "node:thinned,max_degree=3,d_max=5,p=0.5",
    ],
)  # fmt: skip
def test_bad_specs_are_refused(spec: str) -> None:
    with pytest.raises(PrivacyError):
        parse_level(spec)


def test_an_option_may_stand_where_the_basis_would() -> None:
    assert parse_level("node:max_degree=10") == parse_level("node,max_degree=10")
    assert parse_level("node:max_degree=10,change=replace") == parse_level("node,max_degree=10,change=replace")


@pytest.mark.parametrize("directed", [False, True])
def test_edge_neighbours_differ_in_one_edge(directed: bool) -> None:
    rng = np.random.default_rng(0)
    level = EdgeLevel(directed)
    kinds = set()
    for _ in range(300):
        graph = small_graph(rng, directed=directed)
        other = level.neighbor(graph, rng)
        difference = entries(graph) ^ entries(other)
        assert len(difference) == (1 if directed else 2)
        assert not changed_rows(graph, other)
        assert other.directed == directed
        kinds.add(len(entries(other)) > len(entries(graph)))
    assert kinds == {True, False}  # edges are both added and removed


@pytest.mark.parametrize("edges", ["owned", "promised", "thinned"])
@pytest.mark.parametrize("change", ["null", "replace"])
def test_node_neighbours_differ_in_one_unit(edges: str, change: str) -> None:
    rng = np.random.default_rng(1)
    options = {"d_max": 12, "p": 0.5} if edges == "thinned" else {"max_degree": 12}
    level = NodeLevel(edges=edges, change=change, **options)  # type: ignore[arg-type]
    for _ in range(200):
        graph = level.view(small_graph(rng))
        other = level.neighbor(graph, rng)
        touched = changed_rows(graph, other)
        assert len(touched) <= 1
        difference = entries(graph) ^ entries(other)
        owners = (
            set.intersection(*({u, v} if edges != "owned" else {u} for u, v in difference)) if difference else set()
        )
        assert not difference or owners
        assert not difference or not touched or touched <= owners
        if change == "null" and touched:
            (node,) = touched
            assert other.labels[node] == -1
            assert not np.asarray(other.features)[node].any()
            assert node not in {u for u, _ in entries(other)}


def test_k_neighbours_toggle_at_most_k() -> None:
    rng = np.random.default_rng(2)
    for edges in ("owned", "promised"):
        level = NeighborLevel(2, 12, edges)  # type: ignore[arg-type]
        for _ in range(100):
            graph = level.view(small_graph(rng))
            other = level.neighbor(graph, rng)
            assert len(changed_rows(graph, other)) <= 1
            assert len(entries(graph) ^ entries(other)) <= (2 if edges == "owned" else 4)


def test_promised_neighbours_keep_the_promise() -> None:
    rng = np.random.default_rng(3)
    level = NodeLevel(4, "promised", "replace")
    for _ in range(200):
        n = 9
        graph = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n, np.eye(n), np.zeros(n, int), directed=False)
        assert level.neighbor(graph, rng).in_degree().max() <= 4


def test_direction_must_agree() -> None:
    with pytest.raises(UnsupportedError, match="edge:directed"):
        EdgeLevel().check(graph_directed=True)
    with pytest.raises(UnsupportedError, match="two entries"):
        EdgeLevel(directed=True).check(graph_directed=False)


def test_no_privacy_has_no_neighbours() -> None:
    with pytest.raises(UnsupportedError):
        NoPrivacy().neighbor(small_graph(np.random.default_rng(0)), np.random.default_rng(0))


@pytest.mark.parametrize("n", [1, 9, 10, 99, 100, 2708, 99_999, 100_000])
def test_auto_delta_is_the_largest_power_of_ten_below(n: int) -> None:
    for level, bound in ((EdgeLevel(), 10 * n), (NodeLevel(5), n)):
        delta = auto_delta(level, n)
        assert delta < 1 / bound
        assert delta * 10 >= 1 / bound * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), True, "4"])
def test_bad_epsilon(epsilon: object) -> None:
    with pytest.raises(PrivacyError, match="epsilon"):
        Privacy(EdgeLevel(), epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0, 1, 2, -0.1, "tiny"])
def test_bad_delta(delta: object) -> None:
    with pytest.raises(PrivacyError, match="delta"):
        Privacy(EdgeLevel(), 1.0, delta)  # type: ignore[arg-type]


def test_infinite_epsilon_belongs_to_level_none() -> None:
    with pytest.raises(PrivacyError, match="contradict"):
        Privacy(EdgeLevel(), float("inf"))
    with pytest.raises(PrivacyError, match="contradict"):
        Privacy(NoPrivacy(), 1.0)
    assert Privacy.none().epsilon == float("inf")


@pytest.mark.parametrize("protects", ["both", "features", "labels"])
def test_local_neighbours_differ_in_what_is_protected(protects: str) -> None:
    rng = np.random.default_rng(4)
    level = LocalLevel(protects)  # type: ignore[arg-type]
    features = labels = 0
    for _ in range(60):
        graph = small_graph(rng)
        other = level.neighbor(graph, rng)
        assert entries(graph) == entries(other)
        assert len(changed_rows(graph, other)) <= 1
        features += not np.array_equal(graph.features, other.features)
        labels += not np.array_equal(graph.labels, other.labels)
    assert (features > 0) == (protects != "labels")
    assert (labels > 0) == (protects != "features")
    assert ("ARE NOT PROTECTED" in level.describe()) == (protects != "both")


def test_local_needs_no_delta() -> None:
    assert auto_delta(LocalLevel(), 1000) == 0
    assert Privacy(LocalLevel(), 1.0, 1e-5).resolve_delta(1000) == 1e-5


@pytest.mark.parametrize("level", [NodeLevel(5), NodeLevel(5, change="replace"), NeighborLevel(2), LocalLevel()])
def test_features_stay_as_they_are_stored(level: Level) -> None:
    """Products of dense and of sparse rows differ in last bits, which an audit would take for a leak."""
    rng = np.random.default_rng(0)
    graph = small_graph(rng)
    sparse = graph.with_features(sp.csr_array(graph.features))
    for _ in range(10):
        assert isinstance(level.neighbor(sparse, rng).features, sp.csr_array)
        assert isinstance(level.neighbor(graph, rng).features, np.ndarray)
