"""The second half of the evidence: hubs where classes do not explain who links to whom, the same again elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.hop_bayes import estimator
from discreet.methods.hop_bayes.estimator import HopBayes
from discreet.methods.hop_bayes.hubs import UNEXPLAINED, hub_messages, unexplained
from discreet.methods.hop_bayes.reading import LinkModel
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, NoPrivacy
from discreet.release.load import load_release


def hub_graph(seed: int = 0, nodes: int = 1200, hubs: int = 120) -> Graph:
    """Every node links to hubs of its class, and which class a hub is for has nothing to do with its label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, nodes)
    stands_for = rng.integers(0, 4, hubs)
    source, target = [], []
    for node in range(hubs, nodes):
        own = np.flatnonzero(stands_for == labels[node])
        chosen = np.where(rng.random(8) < 0.8, rng.choice(own, 8), rng.integers(0, hubs, 8))
        source += [node] * 8
        target += chosen.tolist()
    features = rng.normal(size=(nodes, 8))
    features[:, :4] += 0.5 * np.eye(4)[labels]
    graph = Graph.from_edges(source, target, features, labels, num_classes=4, directed=False)
    return split(graph, "75/10/15", seed)


def model(epsilon: float, **parameters: object) -> HopBayes:
    return HopBayes(Privacy(EdgeLevel(), epsilon), hidden=16, epochs=10, **parameters)  # type: ignore[arg-type]


@pytest.mark.chance
def test_hubs_are_found_and_pay() -> None:
    graph = hub_graph()
    fitted, without = model(4.0).fit(graph), model(4.0, hubs=False).fit(graph)
    assert fitted.evidence_.through_hubs
    assert fitted.score(graph) > without.score(graph) + 0.1


def block_graph(within: float, nodes: int = 1000, degree: int = 12) -> Graph:
    """Four classes; this share of a node's links stays within its class, the others go to the next class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, nodes)
    source = np.repeat(np.arange(nodes), degree // 2)
    wanted = (labels[source] + (rng.random(len(source)) > within)) % 4
    target = np.array([rng.choice(np.flatnonzero(labels == label)) for label in wanted])
    features = rng.normal(size=(nodes, 8))
    return split(Graph.from_edges(source, target, features, labels, num_classes=4, directed=False), "75/10/15", 0)


@pytest.mark.chance
@pytest.mark.parametrize("within", [0.9, 0.5, 0.1])
def test_block_models_have_no_hubs(within: float) -> None:
    assert not model(4.0).fit(block_graph(within)).evidence_.through_hubs


def test_noise_alone_is_explained() -> None:
    rng = np.random.default_rng(0)
    links = LinkModel.from_counts(np.eye(4) * 100 + 10, 1.0, 200, directed=False)
    labels = rng.integers(0, 4, 5000)
    noise = rng.normal(0, 3.0, (5000, 4))
    flat = LinkModel(links.given, links.chance, 0.0)
    assert unexplained(noise, labels, 3.0, flat, 0.0) == 0.0
    assert unexplained(noise[:0], labels[:0], 3.0, links, 0.5) == 0.0
    along = 20 * (links.given - 1 / 4)[labels]
    assert unexplained(noise + along, labels, 3.0, flat, 0.0) < UNEXPLAINED
    across = 10 * np.eye(4)[rng.integers(0, 4, 5000)]
    assert unexplained(noise + across, labels, 3.0, flat, 0.0) > UNEXPLAINED


def test_hub_messages_keep_to_their_bound() -> None:
    rows = np.random.default_rng(0).normal(0, 1, (50, 3)) * np.geomspace(1e-3, 1e6, 50)[:, None]
    norms = np.linalg.norm(hub_messages(rows, 2.0, 0.8), axis=1)
    assert norms.max() == pytest.approx(0.8)
    assert (norms <= 0.8 * (1 + 1e-12)).all()
    assert norms[0] < 0.01


def test_two_halves_of_the_same_are_one_whole() -> None:
    """Noise of the average is what one query with the whole budget would have."""
    graph = split(csbm(num_nodes=300), "75/10/15", 0)
    halves, whole = model(1.0).fit(graph), model(1.0, hubs=False).fit(graph)
    assert not halves.evidence_.through_hubs
    assert halves.evidence_.noise_std == pytest.approx(whole.evidence_.noise_std, rel=1e-6)


def test_a_release_through_hubs_predicts_as_the_fitted_model(tmp_path: Path) -> None:
    graph = hub_graph(nodes=300, hubs=30)
    fitted = model(4.0, hubs=True).fit(graph, extra_graphs=[hub_graph(1, nodes=200, hubs=20)])
    fitted.save(str(tmp_path / "release"))
    loaded = load_release(str(tmp_path / "release"))
    assert np.array_equal(fitted.predict_proba(graph), loaded.predict_proba(graph))
    other = hub_graph(1, nodes=200, hubs=20)
    assert np.array_equal(fitted.predict_proba(other), loaded.predict_proba(other))


def test_what_a_release_holds_does_not_depend_on_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = hub_graph(nodes=300, hubs=30)
    shapes = []
    for choice in (True, False):
        monkeypatch.setattr(estimator, "asks_for_hubs", lambda *_, choice=choice: choice)
        state = model(4.0).fit(graph)._state()
        shapes.append({name: array.shape for name, array in state.items()})
    assert shapes[0] == shapes[1]


def test_without_privacy_another_graph_is_read_as_it_is() -> None:
    graph, other = hub_graph(nodes=400), hub_graph(1, nodes=400)
    fitted = HopBayes(Privacy(NoPrivacy()), hidden=16, epochs=5).fit(graph)
    assert fitted.evidence_.through_hubs
    assert fitted.predict_proba(other, uncovered=True).shape == (400, 4)
