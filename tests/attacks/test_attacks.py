"""Attacks succeed where nothing is protected, find planted leaks, and stay below their ceiling elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.attacks.attribute import feature_inference, label_inference
from discreet.attacks.game import play
from discreet.attacks.linkteller import linkteller
from discreet.attacks.membership import membership
from discreet.attacks.pairs import balanced_pairs, distances
from discreet.attacks.report import Effort, run_attacks
from discreet.attacks.victim import Victim
from discreet.errors import ParameterError
from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.mechanisms import curator
from discreet.methods.base import NodeClassifier
from discreet.methods.registry import find_method, load_method
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level


def model(method: str, level: str = "none", epsilon: float = float("inf"), **parameters: Any) -> NodeClassifier:
    privacy = Privacy(parse_level(level), epsilon, 1e-3 if level != "none" else "auto")
    return load_method(find_method(method))(privacy, **parameters)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return split(csbm(num_nodes=200, num_features=20, average_degree=6, seed=0), "60/10/30", 0)


@pytest.fixture(scope="module")
def open_gcn(graph: Graph) -> Victim:
    return Victim(model("gcn", epochs=40, hidden=8).fit(graph), graph, "no privacy")


def test_pairs_are_half_linked(graph: Graph) -> None:
    pairs = balanced_pairs(graph, 50, np.random.default_rng(0))
    there = np.asarray(graph.adjacency[pairs.first, pairs.second]).ravel() > 0
    assert np.array_equal(there, pairs.linked)
    assert pairs.linked.sum() == 50 == (~pairs.linked).sum()


def test_distances_are_scipys() -> None:
    from scipy.spatial.distance import (
        braycurtis,
        canberra,
        chebyshev,
        cityblock,
        correlation,
        cosine,
        euclidean,
        sqeuclidean,
    )

    rng = np.random.default_rng(0)
    one, two = rng.random((5, 4)), rng.random((5, 4))
    each = (cosine, euclidean, correlation, chebyshev, braycurtis, canberra, cityblock, sqeuclidean)
    expected = [[measure(a, b) for measure in each] for a, b in zip(one, two, strict=True)]
    np.testing.assert_allclose(distances(one, two), expected)


def test_linkteller_reads_the_links_of_an_open_network(open_gcn: Victim, graph: Graph) -> None:
    nodes = np.arange(60)
    found = linkteller(open_gcn, nodes)
    assert found is not None
    assert found.auc > 0.95
    assert found.extra["precision"]["1"] > 0.4  # second neighbours move as well
    private = Victim(model("gap", "edge", 1.0, epochs=5, hidden=8, width=4).fit(graph), graph)
    assert linkteller(private, nodes) is None  # changed features would read edges again: refused
    careless = Victim(private.estimator, graph, uncovered=True)
    leaked = linkteller(careless, nodes)
    assert leaked is not None
    assert leaked.auc > 0.9  # the planted leak: predictions served outside the guarantee


def test_membership_finds_what_an_overfitted_network_remembers(graph: Graph) -> None:
    victim = Victim(model("mlp", epochs=150, hidden=32, dropout=0.0, weight_decay=0.0).fit(graph), graph)
    found = membership(victim, 6, np.random.default_rng(0))
    assert max(rates.auc_interval[0] for rates in found.values()) > 0.5
    with pytest.raises(ParameterError, match="at least 4"):
        membership(victim, 2, np.random.default_rng(0))


def test_attributes(open_gcn: Victim, graph: Graph) -> None:
    assert label_inference(open_gcn, 100, np.random.default_rng(0)).auc > 0.6
    words = graph.with_features((graph.features > 0.5).astype(np.float32))
    victim = Victim(model("mlp", epochs=5, hidden=8).fit(words), words)
    assert feature_inference(victim, 100, np.random.default_rng(0)) is not None
    assert feature_inference(open_gcn, 100, np.random.default_rng(0)) is None  # every number is there


def _scaled_noise(patch: pytest.MonkeyPatch, scale: float) -> None:
    """Noise that is ``scale`` times what the plan says."""
    real = curator.Curator.ask

    def ask(self: Any, name: str, **inputs: Any) -> Any:
        value = self._compute(self.plan.stage(name), inputs)
        return value + scale * (real(self, name, **inputs) - value)

    patch.setattr(curator.Curator, "ask", ask)


QUICK = {"epochs": 1, "hidden": 4, "width": 2}


@pytest.fixture(scope="module")
def tiny() -> Graph:
    return split(csbm(num_nodes=30, num_features=4, average_degree=3, phi=0.1, epsilon=1.0, seed=0), "60/10/30", 0)


def test_a_toggled_edge_stays_below_the_ceiling(tiny: Graph) -> None:
    found = play(model("gap", "edge", 1.0, **QUICK), tiny, 40, np.random.default_rng(0))
    assert not found.refuted
    assert 0.5 < found.ceiling["auc"] < 0.75


@pytest.mark.chance
@pytest.mark.parametrize("scale", [0.0, 0.1])
def test_missing_noise_is_found(tiny: Graph, monkeypatch: pytest.MonkeyPatch, scale: float) -> None:
    _scaled_noise(monkeypatch, scale)
    found = play(model("gap", "edge", 1.0, **QUICK), tiny, 60 if scale == 0 else 120, np.random.default_rng(0))
    assert found.refuted


def test_a_report_names_what_cannot_be_attacked(graph: Graph) -> None:
    victim = Victim(model("dp-mlp", "node:owned,max_degree=3", 1.0, steps=2, hidden=4).fit(graph), graph)
    effort = Effort(pairs=50, nodes=20, shadows=4, fits=0)
    report = run_attacks(victim, ["link-stealing", "linkteller"], effort, compare=False).to_json()
    assert [attack["auc"] for attack in report["attacks"]] == [None, None]
    assert all(attack["why"] for attack in report["attacks"])
    assert report["refuted"] is False
    with pytest.raises(ParameterError, match="kinds of attack"):
        run_attacks(victim, ["magic"], effort)
