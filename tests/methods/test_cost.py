"""What a fit will take: the model against fits that are measured, and what it may not read."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import discreet
from discreet.errors import InvalidInputError
from discreet.graph.graph import Graph
from discreet.graph.synthetic import csbm
from discreet.methods import parameters
from discreet.methods.base import NodeClassifier
from discreet.methods.cost import Cost
from discreet.methods.registry import find_method, load_method
from discreet.ops.memory import GIB


def made(method: str, level: str = "edge") -> NodeClassifier:
    model: NodeClassifier = load_method(find_method(method))(discreet.Privacy(discreet.parse_level(level), 4.0))
    return model


def cost_for(graph: Graph, method: str, level: str = "edge") -> Cost:
    model = made(method, level)
    found = model.cost_of(model.plan_for(graph), graph)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("method", "level"),
    [
        ("mlp", "edge"),
        ("gap", "edge"),
        ("hop-bayes", "edge"),
        ("gap", "node:owned,max_degree=5"),
        ("dp-gnn", "node:owned,max_degree=5"),
    ],
)
def test_edges_have_no_say(method: str, level: str) -> None:
    graph = discreet.split(csbm(200, 5), "75/10/15", 0)
    fewer = graph.with_edges([0], [1])
    assert cost_for(graph, method, level) == cost_for(fewer, method, level)


def test_grows_with_nodes_classes_and_features() -> None:
    small, large = (discreet.split(csbm(n, 5), "75/10/15", 0) for n in (1000, 4000))
    for method in ("gap", "hop-bayes"):
        one, four = cost_for(small, method), cost_for(large, method)
        assert four.seconds > one.seconds
        assert four.bytes > one.bytes
        assert one.seconds_per_edge == four.seconds_per_edge > 0


def test_stored_numbers_of_sparse_features_count_where_features_are_public() -> None:
    graph = discreet.split(csbm(300, 5), "75/10/15", 0)
    given = [sp.random_array((300, 900), density=share, rng=0, dtype=np.float32) for share in (0.01, 0.2)]
    sparse = [graph.with_features(sp.csr_array(features)) for features in given]
    assert cost_for(sparse[0], "gap").seconds < cost_for(sparse[1], "gap").seconds
    node = "node:owned,max_degree=5"
    assert cost_for(sparse[0], "gap", node) == cost_for(sparse[1], "gap", node)


def test_a_method_that_was_not_measured_has_no_estimate() -> None:
    graph = discreet.split(csbm(200, 5), "75/10/15", 0)
    model = made("lpgnet")
    assert model.cost_of(model.plan_for(graph), graph) is None


def test_what_cannot_fit_is_refused_with_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "free_bytes", lambda: 10 * GIB)
    facts = csbm(20, 2).public
    parameters.Compute().check_memory(facts)
    monkeypatch.setattr(parameters, "COPIES", 10**9)
    with pytest.raises(InvalidInputError, match=r"298\.0 GiB beside the graph, and 10\.0 GiB are free"):
        parameters.Compute().check_memory(facts)


MEASURE = """
import json, resource, sys, time
import discreet
from discreet.graph.synthetic import scale_free
from discreet.methods.registry import find_method, load_method
method, nodes, edges = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
graph = discreet.split(scale_free(nodes, edges, 60), "75/10/15", 0)
model = load_method(find_method(method))(discreet.Privacy(discreet.EdgeLevel(), 4.0))
found = model.cost_of(model.plan_for(graph), graph)
model.fit(graph)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"peak": peak, "expected": found.bytes + edges * found.bytes_per_edge}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gap", "hop-bayes"])
@pytest.mark.parametrize(("nodes", "edges"), [(5_000, 50_000), (100_000, 2_500_000), (400_000, 1_000_000)])
def test_memory_is_within_a_factor_of_two(method: str, nodes: int, edges: int) -> None:
    command = [sys.executable, "-c", MEASURE, method, str(nodes), str(edges)]
    seen = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 0.5 < seen["peak"] / seen["expected"] < 2


def test_words_and_json() -> None:
    found = Cost(12.0, 7e-8, 2.0 * GIB, 80.0, 3.0 * GIB)
    assert str(found).startswith("about 12 s of one core and 0.07 s per million edges; about 2 GiB")
    assert found.to_json()["device_bytes"] == 3.0 * GIB
    assert np.isfinite(list(found.to_json().values())).all()
