"""hop-bayes: sensitivities by brute force, tight replay of both kinds, and evidence that knows its noise."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from discreet.audit.replay import ReplayReport
from discreet.audit.small_graphs import small_graph
from discreet.errors import PrivateDataError, UncoveredReleaseError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.methods.hop_bayes import estimator as estimator_module
from discreet.methods.hop_bayes.estimator import HopBayes
from discreet.methods.hop_bayes.reading import LinkModel
from discreet.methods.hop_bayes.stages import LINKS
from discreet.methods.parameters import COPIES
from discreet.ops import rows as rows_module
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from discreet.queries import evidence
from discreet.queries.links import LinkTable
from tests.effort import caught, effort, replay_until


def model(epsilon: float = 1.0, directed: bool = False, **parameters: object) -> HopBayes:
    return HopBayes(Privacy(EdgeLevel(directed), epsilon), **parameters)  # type: ignore[arg-type]


def tight(report: ReplayReport) -> bool:
    """Every stage moved by nearly all that is declared."""
    return all(ratio >= 0.99 for ratio in report.ratio.values())


@pytest.mark.effort
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
    graphs = partial(small_graph, directed=directed)
    report = replay_until(tight, estimator, graphs, least=effort(20, 80), most=80)
    assert report.passed, report.violations[:3]
    record_property("ratio", report.ratio)
    assert tight(report)
    assert all(ratio <= 1 + 1e-9 for ratio in report.ratio.values())
    assert ("second evidence" in report.ratio) == (predictions == "all" and more.get("hubs") is not False)


def test_an_unhalved_table_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def unhalved(query: LinkTable, private: PrivatePart, *, rows: np.ndarray) -> np.ndarray:
        return rows.T @ (private.graph.adjacency @ rows)

    monkeypatch.setattr(LinkTable, "answer", unhalved)
    report = replay_until(caught, model(epochs=0, hidden=4), small_graph, most=60)
    assert any(LINKS in violation for violation in report.violations)


class ChoosesOnEvidence(HopBayes):
    """Fits a constant on evidence without noise: what `own` must never do."""

    def _learn(self, parts: object, curator: object, progress: object) -> None:  # type: ignore[override]
        super()._learn(parts, curator, progress)  # type: ignore[arg-type]
        self.correlation_ += float(self._own_evidence(parts[0]).std())  # type: ignore[index]


def test_a_constant_cannot_be_fitted_on_clean_evidence() -> None:
    estimator = ChoosesOnEvidence(Privacy(EdgeLevel(), 1.0), predictions="own", epochs=0, hidden=4)
    with pytest.raises(PrivateDataError, match="edges"):
        estimator.fit(small_graph(np.random.default_rng(0)))


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
    monkeypatch.setattr(evidence, "arranged_sums", lambda graph, messages, *_: graph.adjacency @ messages)
    report = replay_until(caught, model(epochs=0, hidden=4, receivers=receivers), small_graph, most=60)
    assert any("'evidence' moved" in violation for violation in report.violations)


def test_a_choice_made_on_clean_sums_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the second half asks for must be decided on what the first released."""
    real, clean = evidence.arranged_sums, []

    def remembered(*given: object) -> np.ndarray:
        clean.append(real(*given))  # type: ignore[arg-type]
        return clean[-1]

    monkeypatch.setattr(evidence, "arranged_sums", remembered)
    monkeypatch.setattr(estimator_module, "asks_for_hubs", lambda *_: bool(np.linalg.norm(clean[-1]) > 2))
    assert caught(replay_until(caught, model(epochs=0, hidden=4), small_graph, most=60))


def test_without_validation_labels_the_combiner_is_bayes_rule() -> None:
    graph = split(csbm(num_nodes=300), "75/10/15", 0)
    bare = graph.with_masks(graph.train_mask, None, graph.test_mask)
    rule = model(combiner="bayes", epochs=0, insecure_noise_seed=1).fit(bare)
    untrained = model(combiner="trained", epochs=0, insecure_noise_seed=1).fit(bare)
    assert np.array_equal(rule.predict_proba(bare), untrained.predict_proba(bare))
    trained = model(combiner="trained", epochs=0, insecure_noise_seed=1).fit(graph)
    assert not np.array_equal(trained.combiner_.weights, rule.combiner_.weights)


def test_training_ids_rest_on_their_features_and_others_hear_under_less_noise() -> None:
    graph = split(csbm(num_nodes=300), "75/10/15", 0)
    fitted, everyone = model(epochs=1).fit(graph), model(epochs=1, receivers="all").fit(graph)
    assert len(fitted.evidence_.graphs[0].ids) == 300 - graph.public.num_train
    assert len(everyone.evidence_.graphs[0].ids) == 300
    public, _ = EdgeLevel().split(graph)
    alone = np.exp(fitted.node_model_.log_probabilities(public))
    assert np.allclose(fitted.predict_proba(graph)[graph.train_mask], alone[graph.train_mask], atol=1e-5)


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


def test_memory_is_a_few_arrays_of_nodes_and_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its peak a fit holds no more than the doubles that ``methods.cost`` counts, and a prediction fewer."""
    monkeypatch.setattr(rows_module, "_AT_ONCE", 256)
    rng, nodes, classes = np.random.default_rng(0), 20_000, 20
    labels = rng.integers(classes, size=nodes)
    features = np.eye(classes, dtype=np.float32)[labels]
    ends = rng.integers(nodes, size=(2, 2 * nodes))
    graph = split(Graph.from_edges(*ends, features, labels, directed=False, num_classes=classes), "75/10/15", 0)
    fitted = model(epochs=1, hidden=4).fit(graph)  # what is loaded or kept once is there before anything is counted
    one = 8 * nodes * classes
    for run, most in ((lambda: fitted.fit(graph), COPIES), (lambda: fitted.predict_proba(graph), COPIES / 2)):
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            run()
            peak = (tracemalloc.get_traced_memory()[1] - before) / one
        finally:
            tracemalloc.stop()
        assert 1 < peak < most


def test_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = split(csbm(300, 6), "50/25/25", 0)
    for more in ({}, {"hubs": True}, {"hubs": False}):
        whole = model(epochs=2, insecure_noise_seed=1, **more).fit(graph).predict_proba(graph)
        with monkeypatch.context() as patched:
            patched.setattr(rows_module, "_AT_ONCE", 17)
            parts = model(epochs=2, insecure_noise_seed=1, **more).fit(graph).predict_proba(graph)
        assert np.allclose(whole, parts, atol=1e-5)
