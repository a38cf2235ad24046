"""The node model on public records: a map of the features where labels are few, and only if it fits better."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.hop_bayes.estimator import HopBayes
from discreet.methods.hop_bayes.node_model import best_temperature
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from discreet.release.load import load_release


def model(epsilon: float = 1.0, **parameters: object) -> HopBayes:
    return HopBayes(Privacy(EdgeLevel(), epsilon), **parameters)  # type: ignore[arg-type]


def few_labels(seed: int = 0) -> Graph:
    """Ten labels per class, and features whose leading directions show the classes on every node."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 900)
    features = rng.normal(0, 1, (900, 40)) + 1.2 * np.eye(3)[labels] @ rng.normal(0, 1, (3, 40))
    graph = Graph.from_edges([0], [1], features, labels, num_classes=3, directed=False)
    order = rng.permutation(900)
    train = np.concatenate([order[labels[order] == label][:10] for label in range(3)])
    rest = order[~np.isin(order, train)]
    return graph.with_masks(train, rest[:200], rest[200:])


@pytest.mark.chance
def test_few_labels_are_helped_by_a_map_of_the_features() -> None:
    graph = few_labels()
    fitted = model(0.5, predictions="own", epochs=5).fit(graph)
    assert fitted.node_model_.map is not None
    public, _ = EdgeLevel().split(graph)
    network = (fitted.node_model_.network_logits(public).argmax(axis=1) == graph.labels)[graph.test_mask].mean()
    assert fitted.score(graph) >= network


def test_a_map_that_fits_worse_is_not_used_and_many_labels_need_none() -> None:
    graph = split(csbm(num_nodes=300), "75/10/15", 0)
    assert model(epochs=1).fit(graph).node_model_.map is None
    confused = few_labels().with_features(np.random.default_rng(0).normal(size=(900, 40)))
    chosen, (public, _) = model(predictions="own", epochs=1).fit(confused).node_model_, EdgeLevel().split(confused)
    of_network, of_chosen = (
        best_temperature(logits, public)[1] for logits in (chosen.network_logits(public), chosen.logits(public))
    )
    assert chosen.map is None or of_chosen < of_network


def test_a_release_with_a_map_predicts_as_the_fitted_model(tmp_path: Path) -> None:
    graph = few_labels()
    for predictions, audience in (("own", "owner"), ("all", "anyone")):
        fitted = model(predictions=predictions, epochs=2).fit(graph)
        fitted.save(str(tmp_path / predictions))
        loaded = load_release(str(tmp_path / predictions))
        assert np.array_equal(
            fitted.predict_proba(graph, audience=audience), loaded.predict_proba(graph, audience=audience)
        )


def test_validation_nodes_of_one_class_do_not_take_the_ranking_of_a_rare_one() -> None:
    rng = np.random.default_rng(0)
    labels = (np.arange(400) < 24).astype(np.int64)
    features = rng.normal(size=(400, 4)) + 3 * labels[:, None]
    ends = rng.integers(0, 400, (2, 1200))
    graph = Graph.from_edges(*ends, features, labels, num_classes=2, directed=False)
    graph = graph.with_masks(np.arange(0, 300, 2), np.arange(300, 400), np.arange(1, 300, 2))
    fitted = model(2.0, insecure_noise_seed=1).fit(graph)
    assert fitted.node_model_.temperature == 1.0
    assert fitted.score(graph, "test", metric="roc-auc") > 0.95
