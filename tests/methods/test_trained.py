"""Rare classes count for more where labels are public, and unknown classes are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.errors import ParameterError, UnsupportedError
from discreet.graph import csbm, split
from discreet.graph.graph import Graph
from tests.contracts.cases import make

NODE = "node:owned,max_degree=3"


def rare(seed: int = 0) -> Graph:
    """One class is rare, and the features say little of it."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(600) < 0.08).astype(np.int64)
    graph = csbm(num_nodes=600, seed=seed)
    features = rng.standard_normal((600, 4)) + 0.8 * labels[:, None]
    graph = replace(graph.with_labels(labels), features=features.astype(np.float32), class_names=("legit", "fraud"))
    return split(graph, "75/10/15", 0)


def found(method: str, **settings: Any) -> float:
    """The share of frauds that is predicted as such."""
    graph = rare()
    model = make(method, "edge", epochs=30, hidden=8, dropout=0.0, batch_size=None, **settings).fit(graph)
    rows = {row["name"]: row["recall"] for row in model.score(graph, "test", by_class=True)}
    return rows["fraud"]


@pytest.mark.parametrize("method", ["mlp", "gap"])
def test_balanced_and_declared_weights_find_more_of_a_rare_class(method: str) -> None:
    plain = found(method)
    assert found(method, class_weight="balanced") > plain + 0.3
    assert found(method, class_weight={"fraud": 12.0}) > plain + 0.3


def test_weights_of_one_are_no_weights() -> None:
    graph = rare()
    one, two = (make("mlp", "edge", class_weight=w).fit(graph) for w in (None, {"fraud": 1.0}))
    assert np.allclose(one.predict_proba(graph), two.predict_proba(graph), atol=1e-5)


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(ParameterError, match="'fruad'; the classes are legit, fraud"):
        make("mlp", "edge", class_weight={"fruad": 2.0}).fit(rare())
    with pytest.raises(ParameterError, match="class_weight"):
        make("mlp", "edge", class_weight={"fraud": -1.0}).fit(rare())
    with pytest.raises(ParameterError, match="class_weight"):
        make("mlp", "edge", class_weight="even").fit(rare())


def test_private_labels_are_not_counted() -> None:
    with pytest.raises(UnsupportedError, match="public"):
        make("gap", NODE, class_weight="balanced").fit(rare())
