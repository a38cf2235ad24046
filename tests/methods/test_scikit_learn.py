"""Estimators among scikit-learn's: parameters, clones, and what is said where its tools cannot be used."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discreet
from discreet.audit.small_graphs import small_graph
from discreet.errors import CrossValidationError, DiscreetError, GraphError, ParameterError, UnsupportedError

PRIVACY = discreet.Privacy(discreet.EdgeLevel(), epsilon=1.0)


@pytest.fixture
def graph():
    return small_graph(np.random.default_rng(0))


def pyg_data():
    """A graph as PyG has it, with three attributes: fewer than scikit-learn makes folds."""
    pytest.importorskip("torch_geometric")
    data = discreet.to_pyg(small_graph(np.random.default_rng(0)))
    return type(data)(x=data.x, edge_index=data.edge_index, y=data.y)


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


def test_what_is_not_fitted_says_so_as_scikit_learn_does(graph):
    model = discreet.GAP(PRIVACY)
    for use in (model.predict, model.score, model.predict_proba):
        with pytest.raises(NotFittedError, match="call fit first") as caught:
            use(graph)
        assert isinstance(caught.value, DiscreetError)


def test_a_fitted_model_can_be_copied_and_pickled(graph):
    model = discreet.GAP(PRIVACY, epochs=1).fit(graph)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(graph), model.predict_proba(graph))
    assert model.n_features_in_ == graph.num_features


def test_an_estimator_is_fitted_by_one_at_a_time(graph):
    """Two fits that write to one estimator would release two answers under a certificate for one."""
    model, asked = discreet.GAP(PRIVACY, epochs=1), []

    def fit_again(*progress):
        asked.append(progress)
        with pytest.raises(UnsupportedError, match="being fitted already"):
            model.fit(graph)

    model.fit(graph, progress=fit_again)
    assert asked
    before = model.certificate_
    model.fit(graph)
    with pytest.raises(ZeroDivisionError):
        model.fit(graph, progress=lambda *progress: 1 / 0)
    assert model.fit(graph).certificate_ == before


def test_rows_that_are_none(graph):
    model = discreet.GAP(PRIVACY, epochs=1).fit(graph)
    mask = np.arange(graph.num_nodes) < 2
    np.testing.assert_array_equal(model.predict(graph, nodes=mask), model.predict(graph, nodes=[0, 1]))
    for nodes in ([graph.num_nodes], [-1], ["a1"], [0.5]):
        with pytest.raises(ParameterError, match="rows of the graph"):
            model.predict(graph, nodes=nodes)
    with pytest.raises(ValueError, match="mask must be one of train, val, test"):
        model.score(graph, graph.labels)  # as scikit-learn's score takes them


def test_what_a_notebook_is_likely_to_give(graph):
    """NumPy's numbers, classes by number, a graph where its public facts are wanted, and a part of privacy."""
    model = discreet.GAP(discreet.Privacy(discreet.EdgeLevel(), epsilon=np.int64(1)), class_weight={0: 2.0})
    assert model.plan(graph) == model.plan(graph.public)
    assert type(model.privacy.epsilon) is float
    assert model.set_params(epochs=1).fit(graph).classes_[0] == 0
    with pytest.raises(ParameterError, match="privacy is one value"):
        model.set_params(privacy__epsilon=2.0)


@pytest.mark.parametrize(
    "use",
    [
        lambda model, graph: GridSearchCV(model, {"hops": [1, 2]}).fit(graph),
        lambda model, graph: cross_val_score(model, graph),
        lambda model, graph: make_pipeline(StandardScaler(), model).fit(graph),
        lambda model, graph: cross_val_score(model, np.arange(8), np.arange(8) % 2, cv=2),
        lambda model, graph: GridSearchCV(model, {"hops": [1, 2]}).fit(np.arange(8), np.arange(8) % 2),
        lambda model, graph: RandomizedSearchCV(model, {"hops": [1, 2]}).fit(np.arange(8)[:, None], np.arange(8) % 2),
        lambda model, graph: cross_val_predict(model, np.arange(8), np.arange(8) % 2),
        lambda model, graph: learning_curve(model, np.arange(8), np.arange(8) % 2),
        lambda model, graph: cross_val_score(
            make_pipeline(StandardScaler(), model), graph.features, graph.labels, cv=2
        ),
        lambda model, graph: GridSearchCV(make_pipeline(StandardScaler(), model), {"gap__hops": [1, 2]}, cv=2).fit(
            graph.features, graph.labels
        ),
        lambda model, graph: make_pipeline(StandardScaler(), model).fit(graph.features, graph.labels),
        lambda model, graph: cross_val_score(model, pyg_data()),
        lambda model, graph: GridSearchCV(model, {"hops": [1, 2]}).fit(pyg_data()),
        lambda model, graph: model.fit(graph, graph.labels),
        lambda model, graph: np.asarray(graph),
    ],
)
def test_tools_that_take_rows_say_what_to_use(use, graph):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of fits that failed
        with pytest.raises((UnsupportedError, CrossValidationError), match=r"discreet\.tune") as caught:
            use(discreet.GAP(PRIVACY, epochs=1), graph)
    assert "\n" not in str(caught.value)


def test_a_graph_without_labels_is_refused(graph):
    bare = dataclasses.replace(graph, labels=np.full(graph.num_nodes, -1), num_classes=0)
    for use in (lambda model: model.fit(bare), lambda model: model.plan(bare.public)):
        with pytest.raises(GraphError, match="no class to learn"):
            use(discreet.GAP(PRIVACY))


def test_everything_else_may_ask_what_an_estimator_is(graph):
    model = discreet.GAP(PRIVACY, epochs=1)
    searched = GridSearchCV(model, {"hops": [1, 2]})
    for asked in (model, make_pipeline("passthrough", model), searched, clone(searched)):
        assert not is_regressor(asked)
        assert isinstance(is_classifier(asked), bool)
        assert asked._repr_html_()
    assert make_pipeline("passthrough", model).fit(graph).predict(graph).shape == (graph.num_nodes,)


def test_an_estimator_of_yours_may_hold_one_of_ours_and_be_cross_validated(graph):
    class OnGraph(ClassifierMixin, BaseEstimator):
        """Rows are nodes of one graph that the estimator holds."""

        def __init__(self, model=None):
            self.model = model

        def fit(self, nodes, y):
            train = np.isin(np.arange(graph.num_nodes), nodes)
            self.classes_, self.fitted_ = (
                np.unique(y),
                clone(self.model).fit(dataclasses.replace(graph, train_mask=train, val_mask=None, test_mask=None)),
            )
            return self

        def predict(self, nodes):
            return self.fitted_.predict(graph, nodes=nodes)

    scores = cross_val_score(OnGraph(discreet.GAP(PRIVACY, epochs=1)), np.arange(graph.num_nodes), graph.labels, cv=2)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("names", [("legit", "fraud", "other"), ("1", "2", "10"), None])
def test_predict_gives_members_of_classes_(graph, names):
    """Names of classes; numbers where they have none, or where a table of numbers would be read as such."""
    given = dataclasses.replace(graph, class_names=None if names is None else names[: graph.num_classes])
    model = discreet.GAP(PRIVACY, epochs=1).fit(given)
    wanted = range(graph.num_classes) if names is None else map(int, names) if names[0] == "1" else names
    assert model.classes_.tolist() == list(wanted)[: graph.num_classes]
    found, numbers = model.predict(given), model.predict_proba(given).argmax(axis=1)
    np.testing.assert_array_equal(found, model.classes_[numbers])
    assert list(model.predict(given, nodes=[0])) == [found[0]]
    right = (numbers == graph.labels)[graph.test_mask & (graph.labels >= 0)]
    assert model.score(given) == right.mean()
