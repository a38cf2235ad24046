"""What every registered method must do, whatever it is."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone

from discreet.errors import (
    CertificateError,
    GraphError,
    NotFittedError,
    OutputExistsError,
    ParameterError,
    PrivacyError,
    UnsupportedError,
)
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.methods.registry import methods
from discreet.methods.release import load_release
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import verify
from discreet.privacy.coverage import COVERAGE
from discreet.privacy.levels import Level
from tests.contracts.cases import are_labels_private, every_case, every_method, graph_for, make


def same(one: NodeClassifier, two: NodeClassifier) -> bool:
    left, right = one._state(), two._state()
    return left.keys() == right.keys() and all(np.array_equal(left[key], right[key]) for key in left)


def predictions(estimator: NodeClassifier, graph: Graph) -> np.ndarray:
    return estimator.predict_proba(graph, audience="owner", uncovered=True)


@every_method
def test_registry_tells_the_truth(name: str) -> None:
    info = methods()[name]
    kind = info.load()
    assert kind.method == name
    assert tuple(kind.levels) == tuple(info.levels)
    assert info.covers in COVERAGE


@every_method
def test_constructor_only_stores_and_documents(name: str) -> None:
    kind = methods()[name].load()
    assert kind().get_params(deep=False).keys() == inspect.signature(kind).parameters.keys()
    assert kind.__doc__


@every_case
def test_clone_keeps_parameters_and_nothing_else(name: str, spec: str) -> None:
    fitted = make(name, spec).fit(graph_for(spec))
    copy = clone(fitted)
    assert copy.get_params(deep=False) == fitted.get_params(deep=False)
    assert not hasattr(copy, "plan_")


@every_case
def test_fit_is_deterministic_and_leaves_global_state_alone(name: str, spec: str) -> None:
    graph = graph_for(spec)
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy(), torch.get_num_threads()  # noqa: NPY002
    one = make(name, spec).fit(graph)
    two = make(name, spec).fit(graph)
    assert same(one, two)
    assert np.array_equal(predictions(one, graph), predictions(two, graph))
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    assert torch.get_num_threads() == before[2]


@every_case
def test_refit_forgets_the_first_fit(name: str, spec: str) -> None:
    estimator = make(name, spec).fit(graph_for(spec, seed=1))
    estimator.fit(graph_for(spec))
    assert same(estimator, make(name, spec).fit(graph_for(spec)))


@every_case
def test_fresh_noise_differs(name: str, spec: str) -> None:
    """Two fits with operating-system entropy agree only where nothing private was measured."""
    graph = graph_for(spec)
    one, two = (make(name, spec, insecure_noise_seed=None).fit(graph) for _ in range(2))
    private = any(not isinstance(leaf, events.NonPrivateDpEvent) for leaf, _ in events.leaves(one.plan_.event()))
    assert same(one, two) != private


@every_case
def test_plan_equals_ledger_and_keeps_within_budget(name: str, spec: str) -> None:
    graph = graph_for(spec)
    estimator = make(name, spec)
    level: Level = estimator.privacy.level  # type: ignore[union-attr]
    plan = estimator.plan(level.view(graph).public)
    estimator.fit(graph)
    assert estimator.plan_ == plan
    assert estimator.epsilon_spent_ <= estimator.privacy.epsilon  # type: ignore[union-attr]
    assert epsilon_of(plan.event(), plan.delta) == estimator.epsilon_spent_
    assert estimator.certificate_["covers"]["name"] == estimator.covers
    for stage in plan.stages:
        assert stage.why
        assert stage.query
    assert level.spec in str(plan)


@every_case
def test_probabilities_are_probabilities(name: str, spec: str) -> None:
    graph = graph_for(spec)
    found = predictions(make(name, spec).fit(graph), graph)
    assert found.shape == (graph.num_nodes, graph.num_classes)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-5)
    assert (found >= 0).all()


@every_case
def test_score_is_a_share(name: str, spec: str) -> None:
    graph = graph_for(spec)
    estimator = make(name, spec).fit(graph)
    assert 0 <= estimator.score(graph, "test", uncovered=True) <= 1


@every_case
def test_release_round_trip_is_bit_for_bit(name: str, spec: str, tmp_path: Path) -> None:
    graph = graph_for(spec)
    estimator = make(name, spec).fit(graph)
    estimator.save(str(tmp_path / "release"))
    loaded = load_release(tmp_path / "release")
    assert same(estimator, loaded)
    assert np.array_equal(predictions(estimator, graph), predictions(loaded, graph))
    assert loaded.plan_ == estimator.plan_
    assert {check.name for check in verify(tmp_path / "release") if not check.passed} == {"noise"}
    with pytest.raises(OutputExistsError):
        estimator.save(str(tmp_path / "release"))


@every_case
def test_release_with_real_noise_verifies(name: str, spec: str, tmp_path: Path) -> None:
    make(name, spec, insecure_noise_seed=None).fit(graph_for(spec)).save(str(tmp_path / "release"))
    assert all(check.passed for check in verify(tmp_path / "release"))


@every_case
def test_damaged_release_does_not_load(name: str, spec: str, tmp_path: Path) -> None:
    make(name, spec).fit(graph_for(spec)).save(str(tmp_path / "release"))
    weights = tmp_path / "release" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(CertificateError):
        load_release(tmp_path / "release")


# ------------------------------------------------------------------------ bad input


@every_case
def test_not_fitted(name: str, spec: str) -> None:
    with pytest.raises(NotFittedError, match="fit"):
        make(name, spec).predict(graph_for(spec))


@every_method
def test_privacy_must_be_said(name: str) -> None:
    with pytest.raises(PrivacyError, match="protected"):
        methods()[name].load()().fit(graph_for("edge"))


@every_method
def test_unsupported_levels_are_refused_by_name(name: str) -> None:
    from tests.contracts.cases import SPECS

    for kind in set(SPECS) - set(methods()[name].levels):
        estimator = make(name, SPECS[kind][0])
        with pytest.raises(UnsupportedError, match=name):
            estimator.fit(graph_for("edge"))


@every_case
def test_graph_without_split(name: str, spec: str) -> None:
    graph = graph_for(spec)
    estimator = make(name, spec)
    nobody = np.zeros(graph.num_nodes, dtype=bool)
    for empty in (graph.with_masks(None, None, None), graph.with_masks(nobody, None, None)):
        with pytest.raises((GraphError, ParameterError), match="train"):
            estimator.fit(empty)
    with pytest.raises(NotFittedError):
        estimator.predict(graph)


@every_case
def test_graph_without_labels(name: str, spec: str) -> None:
    """Refused where labels are public. Where they are not, an error would tell that a node has none."""
    graph = graph_for(spec)
    estimator, bare = make(name, spec), graph.with_labels(np.full(graph.num_nodes, -1))
    if are_labels_private(spec):
        probabilities = estimator.fit(bare).predict_proba(bare, audience="owner", uncovered=True)
        assert np.isfinite(probabilities).all()
        return
    with pytest.raises(GraphError, match="label"):
        estimator.fit(bare)
    with pytest.raises(NotFittedError):
        estimator.predict(graph)


@every_case
def test_parameters_are_checked_at_fit(name: str, spec: str) -> None:
    estimator = make(name, spec).set_params(random_state="seven")
    with pytest.raises(ParameterError, match="random_state"):
        estimator.fit(graph_for(spec))
    with pytest.raises(ParameterError, match="privacy"):
        make(name, spec).set_params(privacy=3).fit(graph_for(spec))


@every_case
def test_other_features_are_refused(name: str, spec: str) -> None:
    graph = graph_for(spec)
    estimator = make(name, spec).fit(graph)
    with pytest.raises(ParameterError, match="features"):
        estimator.predict(graph.with_features(np.ones((graph.num_nodes, graph.num_features + 1))))


@every_method
def test_level_and_direction_must_agree(name: str) -> None:
    if "edge" not in methods()[name].levels:
        pytest.skip("no edge level")
    with pytest.raises(UnsupportedError, match="directed"):
        make(name, "edge").fit(graph_for("edge:directed"))


def test_third_party_privacy_object_is_refused() -> None:
    with pytest.raises(PrivacyError):
        Privacy("edge", 1.0)  # type: ignore[arg-type]
