"""dp-mlp: replay, bugs of noisy steps that the audit must catch, and its two dials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from discreet.audit.small_graphs import small_graph
from discreet.errors import ParameterError, PrivacyError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PrivatePart
from discreet.methods.baselines.dp_mlp import DPMLPClassifier
from discreet.ops.clipping import ClipRule
from discreet.ops.rows import LENGTH_COLUMNS
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.queries import gradients
from discreet.queries.gradients import GradientSteps, OwnRecordSteps, StepRule
from discreet.release.rebuild import BEFORE
from tests.methods.audits import BASES, QUICK, audit, caught_in, node

NETWORK = {**QUICK, "linear": False}


@pytest.mark.effort
@pytest.mark.parametrize("spec", BASES)
def test_replay(spec: str) -> None:
    report = audit(DPMLPClassifier(**NETWORK, clipping="per-layer"), pairs=6, spec=spec, seed=5)
    assert report.passed, report.violations[:3]


def test_replay_of_a_linear_map() -> None:
    report = audit(DPMLPClassifier(**QUICK, linear=True), pairs=6, seed=5)
    assert report.passed, report.violations[:3]


# ------------------------------------------------------------------------ planted faults


def test_replay_catches_gradients_that_are_not_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    right = StepRule.clip_rule
    monkeypatch.setattr(StepRule, "clip_rule", lambda self, *given: ClipRule.flat(2 * right(self, *given).total))
    assert any("clip norm" in fault for fault in caught_in(DPMLPClassifier(**NETWORK)))


def test_replay_catches_a_null_node_that_still_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, labels.clamp_min(0), reduction="none")

    monkeypatch.setattr(gradients, "example_losses", leaking)
    assert any("own term" in fault for fault in caught_in(DPMLPClassifier(**NETWORK)))


def test_replay_catches_terms_that_are_not_what_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    right = GradientSteps.answer
    monkeypatch.setattr(GradientSteps, "answer", lambda self, private, **given: 2 * right(self, private, **given))
    assert any("not the sum" in fault for fault in caught_in(DPMLPClassifier(**NETWORK)))


def test_replay_catches_dividing_by_the_number_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count of labelled nodes is private: a query that writes it into the weights makes them differ."""
    right = OwnRecordSteps.answer

    def counting(self: OwnRecordSteps, private: PrivatePart, *, network: torch.nn.Module, **given: Any) -> Any:
        with torch.no_grad():
            next(network.parameters()).mul_(1 + 1 / (private.graph.labels >= 0).sum())
        return right(self, private, network=network, **given)

    monkeypatch.setattr(OwnRecordSteps, "answer", counting)
    assert any("differs" in fault for fault in caught_in(DPMLPClassifier(**NETWORK)))


# ------------------------------------------------------------------------ a linear map, or a network


def facts_of(num_train: int, num_features: int = 100) -> PublicFacts:
    return PublicFacts(2 * num_train, num_features, 3, num_train, directed=True)


@pytest.mark.parametrize(
    ("num_train", "epsilon", "linear"), [(500, 1.0, True), (500, 64.0, False), (10**6, 1.0, False)]
)
def test_public_facts_decide(num_train: int, epsilon: float, linear: bool) -> None:
    """Few labels or much noise: one linear map. Its parameters are those of the stage."""
    plan = DPMLPClassifier(node(epsilon=epsilon), steps=5).plan(facts_of(num_train))
    hidden = 101 * 64 + 65 * 3
    assert plan.stages[0].shape == ((101 + LENGTH_COLUMNS) * 3 if linear else hidden,)
    assert any("one linear map, by public facts" in note for note in plan.notes) == linear
    asked = DPMLPClassifier(node(epsilon=epsilon), steps=5, linear=not linear).plan(facts_of(num_train))
    assert asked.stages[0].shape == (hidden if linear else (101 + LENGTH_COLUMNS) * 3,)


def test_a_linear_map_reads_directions_of_rows() -> None:
    """Rows are brought to one norm, in fits and in predictions; how long they were is a matter of its own."""
    graph = small_graph(np.random.default_rng(0))
    longer = graph.with_features(7 * graph.features)
    settings = {"steps": 3, "insecure_noise_seed": 1, "row_lengths": False}
    one, two = (DPMLPClassifier(node(), **settings).fit(given) for given in (graph, longer))
    found = [m.predict_proba(g, uncovered=True) for m, g in ((one, graph), (two, longer), (one, longer))]
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    np.testing.assert_allclose(found[0], found[2], atol=1e-5)
    told = DPMLPClassifier(node(), **{**settings, "row_lengths": True}).fit(graph)
    assert not np.allclose(told.predict_proba(graph, uncovered=True), told.predict_proba(longer, uncovered=True))


def test_releases_of_before_are_networks_of_any_number_of_layers() -> None:
    """A release that names no ``linear`` read features as they are, with one layer too."""
    graph = small_graph(np.random.default_rng(0))
    plan = DPMLPClassifier(node(), steps=2, layers=1, **BEFORE["dp-mlp"]).plan(graph.as_directed().public)
    assert plan.stages[0].shape == ((graph.num_features + 1) * graph.num_classes,)
    assert plan.stages[0].query.row_norm is None


def test_learning_rates_by_kind() -> None:
    graph = small_graph(np.random.default_rng(0))
    linear, network = (DPMLPClassifier(node(), steps=2, linear=kind).fit(graph) for kind in (True, False))
    assert (linear._learning_rate(), network._learning_rate()) == (0.05, 0.01)
    assert DPMLPClassifier(node(), steps=2, learning_rate=0.3).fit(graph)._learning_rate() == 0.3


# ------------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (DPMLPClassifier(batch_size=1000), "batch_size 1000 is larger than the training set"),
        (DPMLPClassifier(clip_norm=0.0), "clip_norm"),
        (DPMLPClassifier(steps=0), "steps"),
    ],
)
def test_bad_input(estimator: DPMLPClassifier, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        estimator.set_params(privacy=node()).fit(small_graph(np.random.default_rng(0)))


def test_no_degree_bound_is_needed_where_no_edge_is_read() -> None:
    DPMLPClassifier(node("neighbor:2"), **QUICK).fit(small_graph(np.random.default_rng(0)))


def test_steps_for_a_given_noise() -> None:
    """The other dial: as many steps as ε allows, and one more would exceed it."""
    facts = small_graph(np.random.default_rng(0)).as_directed().public
    plan = DPMLPClassifier(node(epsilon=4.0), noise_multiplier=3.0, hidden=4).plan(facts)
    (planned,) = plan.stages
    assert planned.runs > 1
    assert planned.noise_std / planned.query.parameters()["clip_norm"] <= 3.0
    once = events.GaussianDpEvent(3.0)
    assert epsilon_of(events.repeat(once, planned.runs), 1e-3) <= 4.0
    assert epsilon_of(events.repeat(once, planned.runs + 1), 1e-3) > 4.0
    with pytest.raises(PrivacyError, match="one step alone"):
        DPMLPClassifier(node(epsilon=4.0), noise_multiplier=0.1, hidden=4).plan(facts)


def test_fixed_batches_and_schedules_fit() -> None:
    graph = small_graph(np.random.default_rng(0))
    DPMLPClassifier(node(), batch_size=2, sampling="fixed", schedule="constant", optimizer="sgd", **QUICK).fit(graph)


def test_score_by_class_adds_up() -> None:
    graph = small_graph(np.random.default_rng(1))
    fitted = DPMLPClassifier(node(), **QUICK).fit(graph)
    rows = fitted.score(graph, "train", by_class=True)
    assert [row["nodes"] for row in rows] == sorted((row["nodes"] for row in rows), reverse=True)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert sum(row["share"] * row["accuracy"] for row in rows) == pytest.approx(fitted.score(graph, "train"))
