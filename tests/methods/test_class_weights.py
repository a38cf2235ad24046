"""Rare classes count for more, for free or for a charged count of labels, and unknown classes are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.errors import ParameterError
from discreet.graph import csbm, split
from discreet.graph.graph import Graph
from discreet.mechanisms.local.randomized_response import RandomizedResponse
from discreet.methods.base import NodeClassifier
from discreet.methods.lpgnn.noisy_labels import TrainingReports
from discreet.methods.trained import COUNTS, balanced_weights
from discreet.release.load import load_release
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


@pytest.mark.parametrize(
    ("method", "settings"),
    [(method, {}) for method in ("mlp", "gap", "dpdgc", "hop-bayes", "lpgnet", "dpgcn")]
    + [(method, {"trust": trust}) for method in ("gcon", "gcon-ssp") for trust in (0.0, 1.0)],
    ids=str,
)
def test_balanced_and_declared_weights_find_more_of_a_rare_class(method: str, settings: dict[str, Any]) -> None:
    plain = found(method, **settings)
    assert found(method, class_weight="balanced", **settings) > plain + 0.3
    if method not in ("dpdgc", "lpgnet", "dpgcn"):  # whose noise decides more than nine frauds can tell
        assert found(method, class_weight={"fraud": 12.0}, **settings) > plain + 0.3


def test_every_network_of_progap_is_told_the_weights() -> None:
    """Weights that silence a class: after two stages most nodes are found in the other, rare as it is."""
    graph = rare()
    silent = {"legit": 1e-6, "fraud": 1.0}
    model = make("progap", "edge", epochs=30, hidden=8, dropout=0.0, batch_size=None, class_weight=silent).fit(graph)
    assert (model.predict(graph) == "fraud").mean() > 0.6


def test_weights_of_gcon_are_kept_in_the_release(tmp_path: Path) -> None:
    graph = rare()
    model = make("gcon", "edge", class_weight="balanced", epochs=3, trust=1.0).fit(graph)
    again = load_release(model.save(tmp_path / "release"))
    one, two = (each.predict_proba(graph, audience="owner") for each in (model, again))
    np.testing.assert_array_equal(one, two)


def test_weights_of_one_are_no_weights() -> None:
    graph = rare()
    one, two = (make("mlp", "edge", class_weight=w).fit(graph) for w in (None, {"fraud": 1.0}))
    assert np.allclose(one.predict_proba(graph), two.predict_proba(graph), atol=1e-5)


def test_an_unknown_class_is_refused() -> None:
    with pytest.raises(ParameterError, match="'fruad'; the classes are legit, fraud"):
        make("mlp", "edge", class_weight={"fruad": 2.0}).fit(rare())
    with pytest.raises(ParameterError, match="class_weight"):
        make("mlp", "edge", class_weight={"fraud": -1.0}).fit(rare())
    with pytest.raises(ParameterError, match="balanced, or a weight by class name"):
        make("mlp", "edge", class_weight="even").fit(rare())


# -------------------------------------------------------------------- private labels

WITH_STEPS = ("dp-mlp", "dp-gnn", "dpdgc", "gap", "progap", "dpar")


def found_privately(method: str, **settings: Any) -> float:
    """The share of frauds that is predicted as such, at a budget so large that noise plays no part."""
    graph = replace(rare(), inferred=frozenset())
    model = make(
        method, NODE, 40.0, **{"steps": 60, "batch_size": None, "hidden": 8, "learning_rate": 0.05, **settings}
    )
    rows = {row["name"]: row["recall"] for row in model.fit(graph).score(graph, "test", by_class=True, uncovered=True)}
    return rows["fraud"]


def test_weights_count_inside_clipping() -> None:
    plain = found_privately("dp-mlp")
    assert found_privately("dp-mlp", class_weight={"fraud": 12.0}) > plain + 0.3
    assert found_privately("dp-mlp", class_weight="balanced") > plain + 0.3


@pytest.mark.parametrize("method", [*WITH_STEPS, "hop-bayes"])
def test_declared_weights_are_free_and_counts_are_charged(method: str) -> None:
    facts = rare().public
    plain = make(method, NODE).plan(facts)
    assert make(method, NODE, class_weight={"fraud": 12.0}).plan(facts) == plain
    levels = ((NODE, 1.0), (f"{NODE},change=replace", 2**0.5), ("neighbor:2,max_degree=3", 2**0.5))
    for spec, moved in levels[: 2 if method == "dpar" else 3]:
        counted = make(method, spec, class_weight="balanced").plan(facts)
        assert counted.stage(COUNTS).sensitivity == moved
        assert counted.epsilon <= 1.0
    if method not in ("dp-mlp", "dpar"):
        assert not make(method, "edge", class_weight="balanced").plan(facts).has(COUNTS)


@pytest.mark.parametrize("method", [*WITH_STEPS, "hop-bayes"])
@pytest.mark.parametrize("class_weight", ["balanced", {"1": 5.0}])
def test_weighed_classes_leave_no_trace(method: str, class_weight: Any) -> None:
    spec = "node:owned,max_degree=3,change=replace"
    report = replay_audit(make(method, spec, class_weight=class_weight), small_graph, pairs=3)
    assert report.passed, report.violations[:2]


def test_an_unknown_class_is_refused_before_anything_is_asked() -> None:
    graph = replace(rare(), inferred=frozenset())
    for method in (*WITH_STEPS, "hop-bayes"):
        with pytest.raises(ParameterError, match="'fruad'; the classes are legit, fraud"):
            make(method, NODE, class_weight={"fruad": 2.0}).fit(graph)


@pytest.mark.parametrize("spec", ["edge", NODE])
def test_hop_bayes_moves_its_prior(spec: str, tmp_path: Path) -> None:
    graph = replace(rare(), inferred=frozenset())
    plain, moved = (make("hop-bayes", spec, class_weight=w).fit(graph) for w in (None, {"fraud": 4.0}))
    one, two = (model.predict_proba(graph, audience="owner") for model in (plain, moved))
    odds = (two[:, 1] / two[:, 0]) / (one[:, 1] / one[:, 0])
    assert np.allclose(odds, 4.0, rtol=1e-3)
    again = load_release(moved.save(tmp_path / "release"))
    assert np.array_equal(again.predict_proba(graph, audience="owner"), two)


def test_counts_that_noise_drowns_weigh_nothing() -> None:
    assert np.allclose(balanced_weights(np.array([3.0, -2.0, 1.0]), noise_std=50.0), 1.0)
    assert np.allclose(balanced_weights(np.array([90.0, 10.0])), [100 / 180, 5.0])
    assert np.allclose(balanced_weights(np.array([0.0, 10.0])), 1.0)


# -------------------------------------------------------------------- reported labels

LOCAL = ("lpgnn", "simgat")


def reporting(method: str, spec: str = "local:labels", **settings: Any) -> NodeClassifier:
    return make(
        method, spec, **{"epochs": 40, "hidden": 8, "x_steps": 0, "y_steps": 0, "features": "reports", **settings}
    )


@pytest.mark.parametrize("method", LOCAL)
def test_reported_classes_move_the_prior_and_cost_nothing(method: str, tmp_path: Path) -> None:
    graph = replace(rare(), inferred=frozenset())
    settings = {"epochs": 2, "x_steps": 1}
    plain, moved = (reporting(method, "local", class_weight=w, **settings) for w in (None, {"fraud": 4.0}))
    balanced = reporting(method, "local", class_weight="balanced", **settings)
    assert plain.plan(graph.public).stages == moved.plan(graph.public).stages == balanced.plan(graph.public).stages
    assert "multiply predicted probabilities" in str(balanced.plan(graph.public).notes)
    one, two = (model.fit(graph).predict_proba(graph) for model in (plain, moved))
    assert np.allclose((two[:, 1] / two[:, 0]) / (one[:, 1] / one[:, 0]), 4.0, rtol=1e-3)
    again = load_release(moved.save(tmp_path / "release"))
    assert np.array_equal(again.predict_proba(graph), two)
    assert np.array_equal(again.class_weights_, [1.0, 4.0])


def test_balanced_reports_find_more_of_a_rare_class() -> None:
    graph = replace(rare(), inferred=frozenset())
    recall = {}
    for weight in (None, "balanced"):
        model = reporting("lpgnn", epsilon=4.0, class_weight=weight).fit(graph)
        rows = {row["name"]: row["recall"] for row in model.score(graph, "test", by_class=True, uncovered=True)}
        recall[weight] = rows["fraud"]
    assert recall["balanced"] > recall[None] + 0.3


def test_the_noise_of_reports_is_taken_off_their_counts() -> None:
    response = RandomizedResponse(1.0, 3)
    labels = np.repeat([0, 1, 2], [30_000, 9_000, 1_000])
    reported = response.encode_rows(labels, np.random.default_rng(0))
    everyone = np.ones(len(labels), dtype=bool)
    reports = TrainingReports.of(reported, everyone, ~everyone, response.confusion(), torch.device("cpu"))
    counts, noise = reports.class_counts(as_labels=False)
    assert np.abs(counts - [30_000, 9_000, 1_000]).max() < 4 * noise
    assert noise == pytest.approx(response.noise_std * 200, rel=1e-5)
    assert np.array_equal(reports.class_counts(as_labels=True)[0], np.bincount(reported))
    clear = TrainingReports.of(labels, everyone, ~everyone, np.eye(3), torch.device("cpu"))
    assert np.array_equal(clear.class_counts(as_labels=False)[0], [30_000, 9_000, 1_000])


def test_reports_that_say_nothing_weigh_all_classes_alike() -> None:
    few = np.array([0, 0, 1, 2])
    everyone = np.ones(4, dtype=bool)
    confusion = RandomizedResponse(1e-9, 3).confusion()
    reports = TrainingReports.of(few, everyone, ~everyone, confusion, torch.device("cpu"))
    assert np.array_equal(balanced_weights(*reports.class_counts(as_labels=False)), np.ones(3))


@pytest.mark.parametrize("method", LOCAL)
def test_weights_of_reported_classes_leave_no_trace(method: str) -> None:
    report = replay_audit(make(method, "local", class_weight="balanced"), small_graph, pairs=3)
    assert report.passed, report.violations[:2]


def test_an_unknown_class_is_refused_before_anybody_reports() -> None:
    with pytest.raises(ParameterError, match="'fruad'; the classes are legit, fraud"):
        make("lpgnn", "local", class_weight={"fruad": 2.0}).fit(replace(rare(), inferred=frozenset()))
