"""dpgcn: both mechanisms and both networks hold their guarantee, and what cannot fit is refused with its size."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.audit.statistical import audit_curator
from discreet.errors import UnsupportedError
from discreet.graph import Graph
from discreet.graph.synthetic import csbm
from discreet.methods.dpgcn import estimator
from discreet.methods.dpgcn.estimator import DPGCN
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, parse_level
from discreet.queries.edge_cells import FlippedCells, LargestCells

QUICK = {"epochs": 1, "hidden": 4}
VARIANTS = [("edge-rand", "gcn"), ("edge-rand", "sage"), ("lap-graph", "gcn")]


@pytest.mark.parametrize("spec", ["edge", "edge:directed"])
@pytest.mark.parametrize(("mechanism", "network"), VARIANTS)
def test_replay_is_tight(spec: str, mechanism: str, network: str) -> None:
    level = parse_level(spec)
    model = DPGCN(Privacy(level, 1.0), mechanism=mechanism, network=network, **QUICK)  # type: ignore[arg-type]
    report = replay_audit(model, lambda rng: small_graph(rng, directed=level.directed), pairs=10)  # type: ignore[attr-defined]
    assert report.passed, report.violations[:3]
    assert report.tightness > 0.999


@pytest.mark.parametrize("mechanism", ["edge-rand", "lap-graph"])
def test_statistical_lower_bound_is_below_epsilon_and_not_nothing(mechanism: str) -> None:
    graph = small_graph(np.random.default_rng(1), num_nodes=6)
    model = DPGCN(Privacy(EdgeLevel(), 1.0), mechanism=mechanism, count_share=0.5, **QUICK)  # type: ignore[arg-type]
    report = audit_curator(model.plan(graph.public), runs=600, alpha=1e-6)
    assert report.passed, report.violations
    assert report.curator is not None
    if mechanism == "edge-rand":
        assert report.curator.epsilon > 0.05  # noise comes from entropy: about 0.3 of 1, give or take 0.1


def test_extra_graphs_share_the_budget() -> None:
    graph, further = (csbm(num_nodes=30, num_features=4, seed=seed) for seed in (0, 1))
    for mechanism in ("edge-rand", "lap-graph"):
        model = DPGCN(Privacy(EdgeLevel(), 2.0), mechanism=mechanism, **QUICK)  # type: ignore[arg-type]
        plan = model.plan(graph.public, [further.public])
        assert len(plan.stages) == 2
        assert 1.9 < plan.epsilon <= 2.0


def test_left_out_the_mechanism_is_edge_rand_while_false_edges_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    public = small_graph(np.random.default_rng(0), num_nodes=12).public
    stage = DPGCN(Privacy(EdgeLevel(), 4.0), **QUICK).plan(public).stages[0]  # type: ignore[arg-type]
    assert isinstance(stage.query, FlippedCells)
    beyond = DPGCN(Privacy(EdgeLevel(), 50.0), **QUICK)  # type: ignore[arg-type]
    assert not beyond._flips(public, EdgeLevel())  # which EdgeRand cannot draw
    monkeypatch.setattr(estimator, "MOST_FALSE_EDGES", 1)  # of 66 cells 1.2 are expected
    stage = DPGCN(Privacy(EdgeLevel(), 4.0), **QUICK).plan(public).stages[0]  # type: ignore[arg-type]
    assert isinstance(stage.query, LargestCells)


def test_a_graph_beyond_memory_is_refused_with_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator, "WORTH_ASKING", 0)
    monkeypatch.setattr(estimator, "free_bytes", lambda: 1000)
    graph = small_graph(np.random.default_rng(0), num_nodes=12)
    with pytest.raises(UnsupportedError, match=r"12 nodes at epsilon 1 makes about 18 edges.*lap-graph"):
        DPGCN(Privacy(EdgeLevel(), 1.0), mechanism="edge-rand", **QUICK).fit(graph)  # type: ignore[arg-type]
    counted = DPGCN(Privacy(EdgeLevel(), 1.0), mechanism="lap-graph", **QUICK)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=r"12 nodes may make 66 edges.*count_share"):  # every cell, by chance
        counted.fit(graph)
    monkeypatch.setattr(estimator, "free_bytes", lambda: 6000)
    counted.fit(graph)


@pytest.mark.parametrize("network", ["gcn", "sage"])
def test_the_direction_of_the_graph_at_hand_says_nothing(network: str) -> None:
    """Nobody declared it: it is read off the edges, and one of them decides it."""
    ends = np.stack([np.arange(30), (np.arange(30) + 1) % 30])
    source, target = np.concatenate([ends, ends[::-1]], axis=1)
    features = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)

    def read(directed: bool | None, dropped: int = 0) -> Graph:
        edges = source[dropped:], target[dropped:]
        made = Graph.from_edges(*edges, features, np.arange(30) % 3, directed=directed, num_classes=3)
        return made.with_masks(np.arange(20), None, np.arange(20, 30))

    model = DPGCN(Privacy(EdgeLevel(directed=True), 4.0), network=network, **QUICK).fit(read(True))  # type: ignore[arg-type]
    declared = model.predict_proba(read(True))
    for dropped in (0, 1):
        assert read(None, dropped).directed == bool(dropped)
        np.testing.assert_array_equal(model.predict_proba(read(None, dropped)), declared)
