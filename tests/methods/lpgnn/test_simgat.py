"""simgat: similar nodes as the last denoising step, thresholds without labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.errors import ParameterError
from discreet.methods.lpgnn.simgat import CANDIDATES, SimGAT, row_means
from discreet.ops.similar_nodes import SimilarityMeasure, similar_nodes
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import LocalLevel, NoPrivacy
from discreet.release.load import load_release
from tests.methods.lpgnn.graphs import graph

GRAPH = graph()


def model(epsilon: float = 4.0, **options: Any) -> SimGAT:
    settings = {"feature_range": (0.0, 1.0), "epochs": 40, "x_steps": 3, "walks": 3, **options}
    return SimGAT(Privacy(LocalLevel(), epsilon), insecure_noise_seed=1, **settings)


@pytest.mark.chance
@pytest.mark.parametrize("similarity", ["deepwalk", "node2vec", "grarep"])
@pytest.mark.parametrize("threshold", ["auto", "validated", "paper"])
def test_it_learns(similarity: str, threshold: str) -> None:
    given = {"deepwalk": 0.0005, "node2vec": 0.9, "grarep": 0.05}[similarity] if threshold == "paper" else threshold
    fitted = model(similarity=similarity, threshold=given).fit(GRAPH)
    assert fitted.score(GRAPH, "test") > 0.7
    assert threshold != "validated" or fitted.similar_ in CANDIDATES


def test_a_release_knows_the_number_of_similar_nodes_that_was_chosen(tmp_path: Path) -> None:
    settings = {"feature_range": (0.0, 1.0), "epochs": 2, "walks": 1, "walk_length": 5}
    fitted = SimGAT(Privacy(NoPrivacy()), threshold="validated", similar=3.0, **settings).fit(graph(60))
    fitted.save(tmp_path / "release")
    loaded, other = load_release(tmp_path / "release"), graph(50, seed=1)
    assert isinstance(loaded, SimGAT)
    assert loaded.similar_ == fitted.similar_ in CANDIDATES
    np.testing.assert_array_equal(loaded.predict_proba(other), fitted.predict_proba(other))


def test_operators_are_hops_and_one_average() -> None:
    fitted = model(epochs=1).fit(GRAPH)
    operators = fitted._operators(GRAPH)
    assert len(operators) == 3
    assert np.allclose(operators[-1].csr.to_dense().sum(dim=1), 1)
    assert len(model(epochs=1, x_steps=0).fit(GRAPH)._operators(GRAPH)) == 1


def test_similar_nodes_do_not_move_with_records_or_random_state() -> None:
    """They are computed from the public graph: other records and another seed give the same."""
    other = GRAPH.with_features(1 - GRAPH.features.toarray()).with_labels(1 - GRAPH.labels)
    one = model(epochs=0).fit(GRAPH)._operators(GRAPH)[-1].csr.to_dense()
    two = model(epochs=0, random_state=5).fit(other)._operators(other)[-1].csr.to_dense()
    assert one.equal(two)


def test_a_lonely_node_keeps_its_own_row() -> None:
    lonely = sp.csr_array(np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=np.float32))
    assert row_means(lonely).toarray().tolist() == [[0, 0.5, 0.5], [0, 1, 0], [1, 0, 0]]


def test_similar_nodes_are_remembered_by_graph_and_measure() -> None:
    measure = SimilarityMeasure("deepwalk", 10, 1, 4, 2, 1.0, 1.0, 0)
    assert similar_nodes(GRAPH, measure) is similar_nodes(GRAPH.with_labels(1 - GRAPH.labels), measure)
    assert similar_nodes(GRAPH, measure) is not similar_nodes(graph(seed=1), measure)
    assert similar_nodes(GRAPH, measure) is not similar_nodes(GRAPH, replace(measure, seed=1))


def test_validated_threshold_passes_the_audit() -> None:
    """Choosing among thresholds reads reports alone: conditioned on them, everything released is the same."""
    quick = {"feature_range": (-2.0, 2.0), "outside": "clip", "epochs": 2, "hidden": 4, "walks": 1}
    estimator = SimGAT(Privacy(LocalLevel(), 2.0), threshold="validated", **quick)

    def with_validation(rng: np.random.Generator) -> Any:
        made = small_graph(rng)
        return made.with_masks(made.train_mask, made.test_mask, None)

    assert replay_audit(estimator, with_validation, pairs=10).violations == []


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.0},
        {"threshold": -1.0},
        {"threshold": "best"},
        {"similarity": "node2vec", "threshold": 1.5},
        {"similar": 0.0},
        {"p": 0.0},
        {"walks": 0},
    ],
)
def test_bad_settings(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        model(**options).fit(GRAPH)
