"""gap where features and labels are private too: replay, tightness, bugs that the audit must catch, plans, coverage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.audit.replay import replay_pair
from discreet.audit.small_graphs import small_graph
from discreet.errors import GraphError, ParameterError, PrivateDataError, UncoveredReleaseError, UnsupportedError
from discreet.graph import parts as graph_parts
from discreet.graph.graph import Graph
from discreet.graph.synthetic import csbm
from discreet.methods.gap.estimator import GAP
from discreet.queries import kept_edges
from tests.methods.audits import BASES, QUICK, audit, caught_in, node, star, without_hub

# ------------------------------------------------------------------------ replay


@pytest.mark.effort
@pytest.mark.parametrize("spec", BASES)
@pytest.mark.parametrize("settings", [{"hops": 2}, {"aggregation": "mean"}], ids=str)
def test_replay(settings: dict[str, Any], spec: str) -> None:
    report = audit(GAP(**QUICK, **settings, head_steps=2), pairs=6, spec=spec, seed=3)
    assert report.passed, report.violations[:3]


@pytest.mark.parametrize("spec", ["node:owned,max_degree=7", "node:owned,max_degree=7,change=replace"])
def test_tight_on_a_star(spec: str) -> None:
    """Taking the hub's entries away, or turning its row over, moves the first hop by nearly all that is declared."""
    graph = star()
    turned = np.array(graph.features)
    turned[0] *= -1
    neighbor = graph.with_features(turned) if "replace" in spec else without_hub(graph)
    estimator = GAP(node(spec), layers=1, head_steps=1, **{**QUICK, "steps": 1})
    report = replay_pair(estimator, graph, neighbor, adversary="zeros")
    huge = replay_pair(estimator, graph, neighbor, adversary="huge", report=report)
    assert huge.passed, huge.violations
    assert huge.ratio["hop 1"] >= 0.95
    assert huge.ratio["encoder"] == 1.0


def test_replay_catches_greedy_truncation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep D senders of each node, whoever they are: the published samplers' fault."""

    def greedy(graph: Graph, level: Any, key: bytes) -> Graph:
        source, target = graph.edges()
        order = np.argsort(target, kind="stable")
        kept, count = [], np.zeros(graph.num_nodes, int)
        budget = np.zeros(graph.num_nodes, int)
        for at in order:
            if count[target[at]] < 3 and budget[source[at]] < 3:
                kept.append(at)
                count[target[at]] += 1
                budget[source[at]] += 1
        return graph.as_directed().with_edges(source[kept], target[kept])

    monkeypatch.setattr(kept_edges, "bound_degrees", greedy)
    assert any("hop 1" in fault for fault in caught_in(GAP(**QUICK, head_steps=2), most=120))


def test_a_fingerprint_of_features_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_parts, "_ids_key", lambda part: part.features_key)
    with pytest.raises(PrivateDataError, match="features are private"):
        GAP(node(), **QUICK).fit(small_graph(np.random.default_rng(0)))


# ------------------------------------------------------------------------ plans


def test_encoder_hops_and_head_are_calibrated_together_as_split_says() -> None:
    facts = small_graph(np.random.default_rng(0)).as_directed().public
    plan = GAP(node(epsilon=4.0), split=(6.0, 3.0, 1.0), steps=30, head_steps=7, hops=2).plan(facts)
    loss = {stage.name: stage.runs / stage.event.noise_multiplier**2 for stage in plan.stages}  # type: ignore[attr-defined]
    total = sum(loss.values())
    assert loss["encoder"] / total == pytest.approx(0.6)
    assert (loss["hop 1"] + loss["hop 2"]) / total == pytest.approx(0.3)
    assert 3.9 < plan.epsilon <= 4.0
    assert "60% encoder, 30% hops, 10% head" in str(plan)
    assert "two units together" in str(plan)


def test_thinning_owes_the_ledger_its_failure() -> None:
    facts = small_graph(np.random.default_rng(0)).public
    plan = GAP(node("node:thinned,d_max=12,p=0.5"), **QUICK).plan(facts)
    assert plan.stages[0].event.delta == pytest.approx(1e-4)  # type: ignore[attr-defined]


# ------------------------------------------------------------------------ bad input and coverage


@pytest.mark.parametrize(
    ("estimator", "error", "words"),
    [
        (GAP(aggregation="symmetric"), UnsupportedError, "symmetric"),
        (GAP(split=(1.0, 0.0, 1.0)), ParameterError, "split"),
    ],
)
def test_bad_input(estimator: GAP, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        estimator.set_params(privacy=node()).fit(small_graph(np.random.default_rng(0)))


def test_a_broken_promise_is_refused() -> None:
    with pytest.raises(GraphError, match="exceeds it: promise more"):
        GAP(node("node:promised,max_degree=3"), **QUICK).fit(star(8))


def test_k_neighbour_level_needs_a_degree_bound() -> None:
    with pytest.raises(UnsupportedError, match="max_degree"):
        GAP(node("neighbor:2"), **QUICK).fit(small_graph(np.random.default_rng(0)))


def test_extra_graphs_are_charged_and_graphs_known_by_public_facts_alone() -> None:
    graph = csbm(60, seed=0).with_masks(np.arange(40), None, np.arange(40, 60))
    other, third = csbm(50, seed=1), csbm(45, seed=2)
    fitted = GAP(node(), **QUICK).fit(graph, extra_graphs=[other])
    assert [stage.name for stage in fitted.plan_.stages] == ["encoder", "hop 1", "extra graph 1 hop 1", "head"]
    fitted.predict(graph, audience="owner")
    fitted.predict(other, audience="owner")
    with pytest.raises(UncoveredReleaseError, match="extra_graphs"):
        fitted.predict(third, audience="owner")
    with pytest.raises(UncoveredReleaseError, match="own node"):
        fitted.predict(graph)
    with pytest.raises(UnsupportedError, match="told apart"):
        GAP(node(), **QUICK).fit(graph, extra_graphs=[csbm(60, seed=3)])
