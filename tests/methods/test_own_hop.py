"""What a node computes for itself at edge level: mlp with own-hop inference."""

import numpy as np
import pytest

from discreet.errors import UncoveredReleaseError
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.methods.own_hop import neighbour_mixture
from tests.methods.agreeing_graphs import edge, homophilous

GRAPH = homophilous()


def test_own_hop_mlp_mixes_its_own_row_with_its_neighbours():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=240)
    mixed = neighbour_mixture(p, GRAPH, 0.4)
    v = 200
    heard = [np.eye(3)[GRAPH.labels[u]] if GRAPH.train_mask[u] else p[u] for u in GRAPH.adjacency[[v]].indices]
    np.testing.assert_allclose(mixed[v], 0.4 * p[v] + 0.6 * np.mean(heard, axis=0), rtol=1e-6)
    alone = GRAPH.with_edges([], [])
    np.testing.assert_array_equal(neighbour_mixture(p, alone, 0.4), p)


def test_own_hop_mlp_spends_nothing_and_covers_its_own_prediction():
    fitted = MLPClassifier(edge(), inference="own-hop", epochs=30).fit(GRAPH)
    assert fitted.epsilon_spent_ == 0
    assert fitted.covers == "own-prediction"
    with pytest.raises(UncoveredReleaseError):
        fitted.predict(GRAPH)
    plain = MLPClassifier(edge(), epochs=30).fit(GRAPH)
    assert fitted.score(GRAPH) > plain.score(GRAPH)
