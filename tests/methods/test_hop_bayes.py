"""hop-bayes: sensitivities by brute force, tight replay of both kinds, and evidence that knows its noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.errors import UncoveredReleaseError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods import hop_bayes, shared_evidence
from discreet.methods.evidence_weights import START, combined, fit_weights
from discreet.methods.feature_map import best_temperature
from discreet.methods.hop_bayes import LINKS, HopBayes
from discreet.methods.link_model import LinkModel
from discreet.methods.mlp import MLPClassifier
from discreet.methods.release import load_release
from discreet.ops.evidence import received
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel


def model(epsilon: float = 1.0, directed: bool = False, **parameters: object) -> HopBayes:
    return HopBayes(Privacy(EdgeLevel(directed), epsilon), **parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("predictions", "more"), [
    ("own", {}),
    ("all", {"combiner": "bayes"}),
    ("all", {}),
    ("all", {"hubs": True}),
    ("all", {"hubs": False}),
    ("all", {"receivers": "all"}),
])  # fmt: skip
def test_replay_is_tight(
    directed: bool, predictions: str, more: dict[str, object], record_property: Callable[[str, object], None]
) -> None:
    estimator = model(directed=directed, predictions=predictions, epochs=0, hidden=4, **more)
    report = replay_audit(estimator, partial(small_graph, directed=directed), pairs=80)
    assert report.passed, report.violations[:3]
    record_property("ratio", report.ratio)
    assert all(0.99 <= ratio <= 1 + 1e-9 for ratio in report.ratio.values())
    assert ("second evidence" in report.ratio) == (predictions == "all" and more.get("hubs") is not False)


def test_an_unhalved_table_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop_bayes, "link_counts", lambda graph, told: told.T @ received(graph, told))
    report = replay_audit(model(epochs=0, hidden=4), small_graph, pairs=60)
    assert any(LINKS in violation for violation in report.violations)


class ChoosesOnEvidence(HopBayes):
    """Fits a constant on evidence without noise: what `own` must never do."""

    def _learn(self, graphs: list[Graph], curator: object, progress: object) -> None:  # type: ignore[override]
        super()._learn(graphs, curator, progress)  # type: ignore[arg-type]
        self.temperature_ += float(self._own_evidence(graphs[0]).std())


def test_a_constant_fitted_on_clean_evidence_is_caught() -> None:
    estimator = ChoosesOnEvidence(Privacy(EdgeLevel(), 1.0), predictions="own", epochs=0, hidden=4)
    report = replay_audit(estimator, small_graph, pairs=20)
    assert any("of the release differs" in violation for violation in report.violations)


def test_coverage_by_name() -> None:
    graph = small_graph(np.random.default_rng(0))
    own = model(predictions="own", epochs=1).fit(graph)
    with pytest.raises(UncoveredReleaseError, match="owner"):
        own.predict(graph)
    assert own.predict(graph, audience="owner").shape == (graph.num_nodes,)
    shared = model(epochs=1).fit(graph)
    assert shared.predict(graph).shape == (graph.num_nodes,)
    with pytest.raises(UncoveredReleaseError, match="extra_graphs"):
        shared.predict(graph.with_features(np.ones((graph.num_nodes, graph.num_features))))


def test_extra_graphs_are_planned_and_charged() -> None:
    rng = np.random.default_rng(0)
    graph, other = small_graph(rng), small_graph(rng)
    fitted = model(epochs=1).fit(graph, extra_graphs=[other])
    assert [stage.name for stage in fitted.plan_.stages] == [
        LINKS, "evidence", "second evidence", "extra graph 1 evidence", "extra graph 1 second evidence"
    ]  # fmt: skip
    assert fitted.epsilon_spent_ <= 1.0
    assert fitted.predict(other).shape == (other.num_nodes,)
    with pytest.raises(UnsupportedError, match=r"told apart by .* features"):
        model(epochs=1).fit(graph, extra_graphs=[graph])


@pytest.mark.parametrize("receivers", ["unlabelled", "all"])
def test_both_ends_that_tell_in_full_are_caught(monkeypatch: pytest.MonkeyPatch, receivers: str) -> None:
    """Two receivers, or two training ids, who both tell all they know would pay for two rows."""
    monkeypatch.setattr(shared_evidence, "heard", lambda graph, messages, *_: received(graph, messages))
    report = replay_audit(model(epochs=0, hidden=4, receivers=receivers), small_graph, pairs=60)
    assert any("'evidence' moved" in violation for violation in report.violations)


def test_a_choice_made_on_clean_sums_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the second half asks for must be decided on what the first released."""
    real, clean = shared_evidence.heard, []

    def remembered(*given: object) -> np.ndarray:
        clean.append(real(*given))  # type: ignore[arg-type]
        return clean[-1]

    monkeypatch.setattr(shared_evidence, "heard", remembered)
    monkeypatch.setattr(
        shared_evidence, "_asks_for_hubs", lambda *_: bool(np.linalg.norm(clean[-1]) > 2)  # no noise in it
    )  # fmt: skip
    assert not replay_audit(model(epochs=0, hidden=4), small_graph, pairs=60).passed


def test_without_validation_labels_the_combiner_is_bayes_rule() -> None:
    graph = split(csbm(num_nodes=300), "75/10/15", 0)
    bare = graph.with_masks(graph.train_mask, None, graph.test_mask)
    rule = model(combiner="bayes", epochs=0, insecure_noise_seed=1).fit(bare)
    untrained = model(combiner="trained", epochs=0, insecure_noise_seed=1).fit(bare)
    assert np.array_equal(rule.predict_proba(bare), untrained.predict_proba(bare))
    trained = model(combiner="trained", epochs=0, insecure_noise_seed=1).fit(graph)
    assert not np.array_equal(trained.weights_, rule.weights_)


def test_fitted_weights_fit_better_than_where_they_start() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 500)
    parts = rng.normal(size=(500, len(START), 3))
    parts[np.arange(500), 1, labels] += 1.0
    found = fit_weights(parts, labels)
    assert found[1] > 0.3
    assert abs(found[0]) < 0.4
    assert (combined(found, parts).argmax(axis=1) == labels).mean() > (
        combined(START, parts).argmax(1) == labels
    ).mean()


def test_training_ids_rest_on_their_features_and_others_hear_under_less_noise() -> None:
    graph = split(csbm(num_nodes=300), "75/10/15", 0)
    fitted, everyone = model(epochs=1).fit(graph), model(epochs=1, receivers="all").fit(graph)
    assert len(fitted.receivers_[0]) == 300 - graph.public.num_train
    assert len(everyone.receivers_[0]) == 300
    alone = np.exp(fitted._log_prior(graph))
    assert np.allclose(fitted.predict_proba(graph)[graph.train_mask], alone[graph.train_mask], atol=1e-5)


def test_noise_alone_becomes_independence() -> None:
    counts = np.full((3, 3), 100.0) + np.random.default_rng(0).normal(0, 50, (3, 3))
    links = LinkModel.from_counts(counts, 500.0, 100, directed=False)
    assert np.allclose(links.log_ratio_factors, 1)
    apart = LinkModel.from_counts(counts, 500.0, 100, directed=False, apart=True)
    assert np.allclose(apart.log_ratio_factors, 1)


def test_noise_between_classes_is_not_believed_because_of_the_diagonal() -> None:
    """Few links between classes, alike for all pairs, and noise as large as they are."""
    rng = np.random.default_rng(0)
    clean = np.full((6, 6), 20.0) + 600 * np.eye(6)
    truth = LinkModel.from_counts(clean, 1e-9, 1000, directed=False).given
    errors = {True: 0.0, False: 0.0}
    for _ in range(20):
        noisy = clean + rng.normal(0, 20, clean.shape)
        for apart in errors:
            found = LinkModel.from_counts(noisy, 20.0, 1000, directed=False, apart=apart).given
            errors[apart] += float(((found - truth) ** 2).sum())
    assert errors[True] < 0.5 * errors[False]


def test_links_between_classes_that_stand_out_are_kept_apart_too() -> None:
    clean = np.array([[50.0, 900.0, 20.0], [900.0, 40.0, 300.0], [20.0, 300.0, 10.0]])
    found = LinkModel.from_counts(clean + np.random.default_rng(0).normal(0, 5, (3, 3)), 5.0, 1000, False, apart=True)
    assert np.abs(found.given - LinkModel.from_counts(clean, 1e-9, 1000, directed=False).given).max() < 0.03


def test_neighbours_who_say_more_are_taken_to_repeat_each_other_more() -> None:
    mild, sharp, none = (
        LinkModel.from_counts(np.diag([a, a]) + 500, 1.0, 1000, directed=False) for a in (200.0, 900.0, 0.0)
    )
    assert sharp.sharpness > mild.sharpness > 0.1
    assert none.sharpness == pytest.approx(0, abs=0.01)
    graph = split(csbm(num_nodes=600, phi=0.8, average_degree=20), "75/10/15", 0)
    fitted = model(4.0, predictions="own", epochs=1).fit(graph)
    m = fitted.links_.mean_degree
    assert fitted.correlation_ == pytest.approx(0.08 * fitted.links_.sharpness * m / (m + 4))
    assert model(4.0, predictions="own", epochs=1, correlation=0.5).fit(graph).correlation_ == 0.5


def test_strong_links_are_kept() -> None:
    links = LinkModel.from_counts(np.diag([900.0, 800.0]) + 20, 5.0, 1000, directed=False)
    assert links.given[0, 0] > 0.9
    assert links.mean_degree == pytest.approx(2 * 1780 / 1000)


@pytest.mark.chance
@pytest.mark.parametrize("phi", [0.6, -0.6])
def test_evidence_pays_with_and_without_homophily(phi: float) -> None:
    graph = split(csbm(num_nodes=1500, phi=phi, average_degree=12), "75/10/15", 0)
    features = MLPClassifier(Privacy(EdgeLevel(), 1.0)).fit(graph).score(graph)
    assert model(0.5, predictions="own").fit(graph).score(graph) > features + 0.1
    assert model(4.0).fit(graph).score(graph) > features + 0.05


@pytest.mark.chance
def test_useless_edges_do_no_harm() -> None:
    graph = split(csbm(num_nodes=1500, phi=0.0, average_degree=12), "75/10/15", 0)
    features = MLPClassifier(Privacy(EdgeLevel(), 1.0)).fit(graph).score(graph)
    for predictions in ("own", "all"):
        assert model(1.0, predictions=predictions).fit(graph).score(graph) > features - 0.03


def few_labels(seed: int = 0) -> Graph:
    """Ten labels a class, and features whose leading directions show the classes on every node."""
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
    assert fitted.map_ is not None
    network = (fitted._network_logits(graph).argmax(axis=1) == graph.labels)[graph.test_mask].mean()
    assert fitted.score(graph) >= network


def test_a_map_that_fits_worse_is_not_used_and_many_labels_need_none() -> None:
    graph = split(csbm(num_nodes=300), "75/10/15", 0)
    assert model(epochs=1).fit(graph).map_ is None
    confused = few_labels().with_features(np.random.default_rng(0).normal(size=(900, 40)))
    fitted = model(predictions="own", epochs=1).fit(confused)
    logits = fitted._network_logits(confused)
    assert (fitted.map_ is None) or best_temperature(fitted._logits(confused), confused)[1] < best_temperature(
        logits, confused
    )[1]


def test_a_release_with_a_map_predicts_as_the_fitted_model(tmp_path: Path) -> None:
    graph = few_labels()
    for predictions, audience in (("own", "owner"), ("all", "anyone")):
        fitted = model(predictions=predictions, epochs=2).fit(graph)
        fitted.save(str(tmp_path / predictions))
        loaded = load_release(str(tmp_path / predictions))
        assert np.array_equal(
            fitted.predict_proba(graph, audience=audience), loaded.predict_proba(graph, audience=audience)
        )
