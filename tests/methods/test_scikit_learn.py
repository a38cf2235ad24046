"""Estimators among scikit-learn's: parameters, clones, and what is said where its tools cannot be used."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discreet
from discreet.audit.small_graphs import small_graph
from discreet.errors import UnsupportedError

PRIVACY = discreet.Privacy(discreet.EdgeLevel(), epsilon=1.0)


@pytest.fixture
def graph():
    return small_graph(np.random.default_rng(0))


def test_parameters_are_those_of_the_constructor():
    model = discreet.GAP(PRIVACY, hops=2)
    assert model.get_params()["hops"] == 2
    assert model.set_params(hops=1, hidden=8) is model
    assert (model.hops, model.hidden) == (1, 8)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'hop'"):
        model.set_params(hop=3)


def test_clones_are_not_fitted(graph):
    model = discreet.GAP(PRIVACY, epochs=1).fit(graph)
    assert not hasattr(clone(model), "plan_")


@pytest.mark.parametrize(
    "use",
    [
        lambda model, graph: GridSearchCV(model, {"hops": [1, 2]}).fit(graph),
        lambda model, graph: cross_val_score(model, graph),
        lambda model, graph: make_pipeline(StandardScaler(), model).fit(graph),
        lambda model, graph: cross_val_score(model, np.arange(8), np.arange(8) % 2, cv=2, error_score="raise"),
        lambda model, graph: model.fit(graph, graph.labels),
        lambda model, graph: np.asarray(graph),
    ],
)
def test_tools_that_take_rows_say_what_to_use(use, graph):
    with pytest.raises(UnsupportedError, match=r"discreet\.tune"):
        use(discreet.GAP(PRIVACY, epochs=1), graph)
