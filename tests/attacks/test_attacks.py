"""Attacks succeed where nothing is protected, find planted leaks, and stay below their ceiling elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from discreet.attacks.attribute import feature_inference, label_inference
from discreet.attacks.game import play
from discreet.attacks.link_stealing import with_known_links, with_known_nodes
from discreet.attacks.linkteller import _scores as linkteller_scores
from discreet.attacks.linkteller import linkteller
from discreet.attacks.membership import membership
from discreet.attacks.pair_features import known_structure
from discreet.attacks.pairs import Pairs, balanced_pairs, distances
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


def test_a_known_pair_is_left_out_of_its_own_degrees() -> None:
    links = sp.csr_array(np.array([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0.0]]))
    pairs = Pairs(np.array([0, 0]), np.array([1, 3]), np.array([True, False]))
    found = known_structure(links, pairs, np.array([1.0, 0.0]))
    np.testing.assert_array_equal(found, [[1, 1, 1, 2, 0], [1, 1 / np.sqrt(2), 2, 3, 1]])


def test_an_attacker_who_knows_links_learns_from_predictions(open_gcn: Victim, graph: Graph) -> None:
    rows = open_gcn.rows()
    assert rows is not None
    known = with_known_links(rows, graph, 200, np.random.default_rng(0))
    assert known.auc_interval[0] > 0.5
    assert known.auc > known.extra["links_alone"]  # predictions say more than the links that are known
    alike = csbm(num_nodes=200, num_features=20, average_degree=6, phi=1.0, epsilon=4.0, seed=0)  # like links to like
    told = np.eye(alike.num_classes)[alike.labels] * 0.8 + 0.1
    assert with_known_nodes(told, alike, 200, np.random.default_rng(0)).auc_interval[0] > 0.6
    noise = np.random.default_rng(1).dirichlet(np.ones(rows.shape[1]), len(rows))
    blank = graph.with_features(np.ones((graph.num_nodes, 1), dtype=np.float32))
    guessed = with_known_nodes(noise, blank, 200, np.random.default_rng(0))
    assert guessed.auc_interval[0] < 0.5 < guessed.auc_interval[1]  # it does not read the graph that it attacks


def test_a_time_limit_ends_the_attacks_and_says_so(open_gcn: Victim) -> None:
    report = run_attacks(open_gcn, ["link-stealing", "linkteller"], Effort(pairs=50, nodes=10, seconds=0.0)).to_json()
    assert [attack["kind"] for attack in report["attacks"]] == ["link-stealing"] * 4  # asks the model nothing further
    assert "not all attacks were run" in report["notes"][0]


def test_linkteller_reads_the_links_of_an_open_network(open_gcn: Victim, graph: Graph) -> None:
    nodes = np.arange(60)
    found = linkteller(open_gcn, nodes)
    assert found is not None
    assert found.auc > 0.95
    assert found.extra["precision"]["1"] > 0.3  # 0.47 ± 0.05 over seeds, a guess 0.02: second neighbours move too
    private = Victim(model("gap", "edge", 1.0, epochs=5, hidden=8, width=4).fit(graph), graph)
    assert linkteller(private, nodes) is None  # changed features would read edges again: refused
    careless = Victim(private.estimator, graph, uncovered=True)
    leaked = linkteller(careless, nodes)
    assert leaked is not None
    assert leaked.auc > 0.9  # the planted leak: predictions served outside the guarantee


def test_linkteller_sees_movement_where_the_model_is_sure() -> None:
    one, other = np.array([20.0, 0.0, -1.0]), np.array([20.5, 0.0, -1.0])
    sure, moved = (softmax(row).reshape(1, 1, 3) for row in (one, other))
    assert np.abs(sure - moved).max() < 1e-8
    np.testing.assert_allclose((linkteller_scores(moved) - linkteller_scores(sure)).ravel(), [1 / 3, -1 / 6, -1 / 6])


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
