"""hop-bayes at node and k-neighbour level: tight replay, what is refused and covered, and what evidence is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.audit.replay import ReplayReport, replay_audit, replay_pair
from discreet.audit.small_graphs import small_graph
from discreet.audit.subjects import method_subject, release_subject
from discreet.errors import PrivateDataError, UncoveredReleaseError, UnsupportedError
from discreet.graph.graph import Graph, PublicFacts
from discreet.graph.parts import PrivatePart, PublicPart
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator
from discreet.methods.baselines.dp_mlp import DPMLPClassifier
from discreet.methods.hop_bayes.estimator import HopBayes
from discreet.methods.hop_bayes.evidence import Received
from discreet.methods.hop_bayes.reading import bounded_likelihoods, class_likelihoods
from discreet.methods.hop_bayes.stages import EVIDENCE, LINKS, NODE_MODEL, WEIGHTS
from discreet.ops.degrees import BoundedLevel
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NeighborLevel, NodeLevel, parse_level
from discreet.queries.evidence import ReceivedLabels
from discreet.queries.kept_edges import KEY
from discreet.release.load import load_release
from discreet.release.verify import verify
from discreet.training.descent import Progress
from tests.effort import HIGH, caught, effort, replay_until
from tests.queries.evidence_pairs import (
    another_label,
    moving_teller,
    survives,
    swapped_sender,
    turned_rows,
    turning_teller,
)

Record = Callable[[str, object], None]
SPECS = [
    "node:owned,max_degree=3,change=null",
    "node:owned,max_degree=3,change=replace",
    "node:promised,max_degree=12,change=null",
    "node:promised,max_degree=12,change=replace",
    "node:thinned,d_max=12,p=0.5,change=null",
    "node:thinned,d_max=12,p=0.5,change=replace",
    "neighbor:2",
    "neighbor:2,max_degree=12,edges=promised",
]
every_spec = pytest.mark.parametrize("spec", SPECS)


def model(spec: str, epsilon: float = 1.0, **parameters: object) -> HopBayes:
    return HopBayes(Privacy(parse_level(spec), epsilon), **parameters)  # type: ignore[arg-type]


def with_validation(rng: np.random.Generator) -> Graph:
    """A small graph some of whose ids are for validation: the weights have examples."""
    graph = small_graph(rng, num_nodes=None if HIGH else 9)  # one size is calibrated once
    assert graph.test_mask is not None
    test = np.flatnonzero(graph.test_mask)
    return graph.with_masks(graph.train_mask, test[: len(test) // 2 + 1], test[len(test) // 2 + 1 :])


def audit(spec: str, **parameters: object) -> ReplayReport:
    quick = {"hidden": 3, "steps": 1, "layers": 1, "split": (1.0, 1.0), **parameters}
    enough = partial(_reached, "owned" in spec or spec == "neighbor:2")
    return replay_until(enough, model(spec, **quick), with_validation, most=effort(15, 50), least=effort(5, 50))


def _reached(tight: bool, report: ReplayReport) -> bool:
    return not tight or report.ratio["evidence"] >= 0.99


@pytest.mark.effort
@every_spec
def test_replay(spec: str, record_property: Record) -> None:
    report = audit(spec)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]
    assert {NODE_MODEL, "links between classes", "evidence", WEIGHTS} <= set(report.ratio)
    if "owned" in spec or spec == "neighbor:2":
        assert report.ratio["evidence"] >= 0.99


@pytest.mark.effort
def test_everyone_as_a_receiver() -> None:
    report = audit("node:owned,max_degree=3,change=replace", receivers="all")
    assert report.passed, report.violations[:3]


THINNED = NodeLevel(edges="thinned", d_max=12, p=0.8)
NEARLY_ALL = NodeLevel(edges="thinned", d_max=240, p=0.995, change="replace")
TURNED = NodeLevel(240, edges="promised", change="replace")
WORST: dict[str, tuple[BoundedLevel, tuple[Graph, Graph], tuple[str, ...]]] = {
    "owned, replace": (NodeLevel(1000, change="replace"), turning_teller(200), (LINKS,)),
    "owned, 400 neighbours": (NeighborLevel(400), turning_teller(200), (LINKS,)),
    "promised, null": (NodeLevel(60, edges="promised"), moving_teller(60, "null"), (LINKS, EVIDENCE)),
    "promised, replace, links": (NodeLevel(60, edges="promised", change="replace"), moving_teller(60), (LINKS,)),
    "promised, replace": (TURNED, turned_rows(TURNED), (EVIDENCE,)),
    "promised, 2 neighbours, links": (NeighborLevel(2, 60, "promised"), another_label(60), (LINKS,)),
    "promised, 2 neighbours": (NeighborLevel(2, 240, "promised"), swapped_sender(240), (EVIDENCE,)),
    "thinned, null": (THINNED, moving_teller(12, "null"), (LINKS, EVIDENCE)),
    "thinned, replace, links": (NEARLY_ALL, moving_teller(240), (LINKS,)),
    "thinned, replace": (NEARLY_ALL, turned_rows(NEARLY_ALL), (EVIDENCE,)),
}


@pytest.mark.parametrize("name", WORST)
def test_replay_is_tight_on_worst_pairs(name: str, record_property: Record) -> None:
    """Where random small graphs do not reach the bound, graphs that were built for it do."""
    level, pair, stages = WORST[name]
    everyone = np.ones(pair[0].num_nodes, dtype=bool)
    one, two = (graph.with_masks(everyone, None, None) for graph in pair)
    estimator = HopBayes(Privacy(level, 1.0), steps=1, hidden=3, layers=1, receivers="all", split=(1.0, 1.0))
    report = replay_pair(estimator, one, two, seed=_seed_whose_coins_keep_all(level, *pair))
    assert report.passed, report.violations[:3]
    for stage in stages:
        record_property(stage, report.ratio[stage])
        assert report.ratio[stage] >= 0.99


def _seed_whose_coins_keep_all(level: BoundedLevel, one: Graph, two: Graph) -> int:
    """On the thinned basis the noise is the key too: a seed of the audit under which the unit keeps all its entries."""
    if level.edges != "thinned":
        return 0
    keys = (NoiseSource(insecure_seed=seed).stream(f"{KEY}, key", 0).bytes(16) for seed in range(100_000))
    return next(seed for seed, key in enumerate(keys) if survives(level, one, two, key))


# ------------------------------------------------------------------------ planted faults


class ReadsEdges(HopBayes):
    """Would count neighbours without noise."""

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        super()._learn(parts, curator, progress)
        self.evidence_.first_std += len(parts[0].edges()[0])


class ReadsFeatures(HopBayes):
    """Would fit a weight on what the node model says of everyone, without noise."""

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        super()._learn(parts, curator, progress)
        self.evidence_.first_std += float(parts[0].features.std())


@pytest.mark.parametrize("kind", [ReadsEdges, ReadsFeatures])
def test_private_records_cannot_be_read_past_the_curator(kind: type[HopBayes]) -> None:
    estimator = kind(Privacy(parse_level(SPECS[1]), 1.0), steps=1, hidden=3, split=(1.0, 1.0))
    with pytest.raises(PrivateDataError, match="private at this level"):
        estimator.fit(with_validation(np.random.default_rng(0)))


CLEAN: list[np.ndarray] = []


class KeepsCleanEvidence(HopBayes):
    """The release holds what was measured before noise."""

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        super()._learn(parts, curator, progress)
        self.evidence_.graphs[0] = Received(self.evidence_.graphs[0].ids, CLEAN[-1])


def test_a_release_of_what_was_not_noised_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ReceivedLabels.answer

    def remembered(query: ReceivedLabels, private: PrivatePart, **inputs: Any) -> np.ndarray:
        CLEAN.append(right(query, private, **inputs))
        return CLEAN[-1]

    monkeypatch.setattr(ReceivedLabels, "answer", remembered)
    estimator = KeepsCleanEvidence(Privacy(parse_level(SPECS[1]), 1.0), steps=1, hidden=3, split=(1.0, 1.0))
    report = replay_audit(estimator, with_validation, pairs=12)
    assert any("of the release differs" in violation for violation in report.violations)


def test_a_division_that_is_forgotten_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Graph, "out_degree", lambda graph: np.zeros(graph.num_nodes, dtype=np.int64))
    estimator = model(SPECS[0], hidden=3, steps=1, layers=1, split=(1.0, 1.0))
    report = replay_until(caught, estimator, with_validation, most=25)
    assert any("'evidence' moved" in violation for violation in report.violations)


# ------------------------------------------------------------------------ plan, coverage, release


@pytest.mark.parametrize("spec", ["node", "neighbor:3,max_degree=5"])
def test_own_predictions_are_refused_where_neighbours_are_private(spec: str) -> None:
    with pytest.raises(UnsupportedError, match="predictions='all'"):
        model(spec, predictions="own").plan(PublicFacts(100, 4, 3, 50, True))


def test_the_plan_names_its_stages_and_prints_the_split() -> None:
    plan = model("node:owned,max_degree=20", 4.0).plan(PublicFacts(1000, 20, 5, 700, True, 100))
    assert [stage.name for stage in plan.stages] == [NODE_MODEL, "links between classes", "evidence", WEIGHTS]
    assert plan.stage("evidence").shape == (300, 5)
    assert plan.epsilon <= 4.0
    assert "% evidence" in str(plan)
    assert "outside the training set" in str(plan)


def test_without_validation_ids_the_rule_stands_as_it_is() -> None:
    plan = model("node").plan(PublicFacts(1000, 20, 5, 700, True))
    assert plan.stages[-1].name == "evidence"
    assert model("node", combiner="bayes").plan(PublicFacts(1000, 20, 5, 700, True, 100)).stages == plan.stages


def test_coverage_and_release(tmp_path: Path) -> None:
    graph = split(csbm(num_nodes=200), "75/10/15", 0)
    fitted = model("node", 8.0, steps=2).fit(graph)
    assert fitted.covers == "weights+others-predictions"
    fitted.save(str(tmp_path / "release"))
    bare = graph.with_masks(None, None, None)
    loaded = load_release(str(tmp_path / "release"))
    assert np.array_equal(fitted.predict_proba(graph, audience="owner"), loaded.predict_proba(bare, audience="owner"))
    with pytest.raises(UncoveredReleaseError, match="extra_graphs"):
        fitted.predict(csbm(num_nodes=100), audience="owner")
    with pytest.raises(UncoveredReleaseError, match="own node"):
        fitted.predict(graph)


def test_extra_graphs_are_charged_and_told_apart() -> None:
    graph, other = split(csbm(num_nodes=200), "75/10/15", 0), csbm(num_nodes=150)
    fitted = model("node", 8.0, steps=2).fit(graph, extra_graphs=[other])
    assert fitted.plan_.stage("extra graph 1 evidence").shape == (150, other.num_classes)
    assert fitted.predict(other, audience="owner").shape == (150,)
    with pytest.raises(UnsupportedError, match=r"told apart by .* node ids"):
        model("node", 8.0, steps=2).fit(graph, extra_graphs=[graph])


def test_training_ids_rest_on_their_features() -> None:
    graph = split(csbm(num_nodes=200), "75/10/15", 0)
    fitted = model("node", 8.0, steps=5, insecure_noise_seed=1).fit(graph)
    before = fitted.predict_proba(graph, audience="owner")
    released = fitted.evidence_.graphs[0]
    fitted.evidence_.graphs[0] = Received(released.ids, released.sums + 100 * np.eye(graph.num_classes)[0])
    same = (fitted.predict_proba(graph, audience="owner") == before).all(axis=1)
    assert same[graph.mask("train")].all()
    assert not same[graph.mask("test")].any()


# ------------------------------------------------------------------------ where the graph is left alone


def alone(spec: str = "node", **parameters: object) -> HopBayes:
    """At this budget edges are not worth what they take from the node model."""
    return model(spec, 0.1, **{"steps": 2, **parameters})


def test_a_node_model_alone_makes_more_steps() -> None:
    """Unless they are given; what was decided holds for graphs of other public facts. Many training ids take fewer."""
    facts = PublicFacts(1000, 20, 5, 700, True, 100)
    many = PublicFacts(200_000, 20, 5, 150_000, True, 100)

    def steps(estimator: HopBayes, facts: PublicFacts = facts) -> int:
        return estimator.plan(facts).stage(NODE_MODEL).runs

    assert steps(alone(steps=None)) == 400
    assert steps(model("node", 16.0, steps=None)) == 200
    assert steps(model("node", 16.0, steps=None), many) == 100
    assert steps(alone(steps=7)) == steps(model("node", 16.0, steps=7)) == 7
    assert alone(steps=None)._budget(facts).pinned()["steps"] == 400


@pytest.mark.parametrize("spec", ["node", "node:thinned,d_max=12,p=0.5", "neighbor:2"])
def test_a_plan_that_reads_no_edge_says_so(spec: str) -> None:
    plan = alone(spec).plan(PublicFacts(1000, 20, 5, 700, True, 100))
    assert [stage.name for stage in plan.stages] == [NODE_MODEL]
    assert "no edge is read" in str(plan)
    asked = model(spec, 16.0, split=(1.0, 0.0)).plan(PublicFacts(1000, 20, 5, 700, True, 100))
    assert [stage.name for stage in asked.stages] == [NODE_MODEL]
    assert "no edge is read, because split says so" in str(asked)
    forced = alone(spec, split=(1.0, 1.0)).plan(PublicFacts(1000, 20, 5, 700, True, 100))
    assert {"links between classes", "evidence", WEIGHTS} <= {stage.name for stage in forced.stages}


def test_without_edges_it_is_a_model_of_features_alone(tmp_path: Path) -> None:
    graph = split(csbm(num_nodes=200), "75/10/15", 0)
    fitted = alone().fit(graph, extra_graphs=[graph])
    assert [stage["name"] for stage in fitted.certificate_["stages"]] == [NODE_MODEL]
    fitted.save(str(tmp_path / "release"))
    assert all(check.passed for check in verify(tmp_path / "release"))
    loaded = load_release(str(tmp_path / "release"))
    before = fitted.predict_proba(graph, audience="owner")
    assert np.array_equal(before, loaded.predict_proba(graph, audience="owner"))
    assert np.array_equal(before, loaded.predict_proba(graph.with_edges([], []), audience="owner"))
    other = csbm(num_nodes=100)
    assert loaded.predict(other, audience="owner").shape == (100,)
    with pytest.raises(UncoveredReleaseError, match="own node"):
        loaded.predict(other)


def test_replay_without_edges() -> None:
    report = replay_audit(alone(SPECS[1], hidden=3), with_validation, pairs=12)
    assert report.passed, report.violations[:3]
    assert set(report.ratio) == {NODE_MODEL}


def test_audits_see_the_stages_of_the_release_on_graphs_of_a_few_nodes(tmp_path: Path) -> None:
    """What is decided by the number of nodes is not decided anew on the audit's small graphs."""
    graph = split(csbm(num_nodes=1000, average_degree=20), "75/10/15", 0)
    model("node", 16.0, steps=2).fit(graph).save(str(tmp_path / "reads"))
    alone(steps=2).fit(graph).save(str(tmp_path / "alone"))
    wide = split(csbm(num_nodes=300), "75/10/15", 0).with_features(sp.eye_array(300, 15_000, format="csr"))
    model("node", 16.0, steps=2).fit(wide).save(str(tmp_path / "too wide"))
    small = with_validation(np.random.default_rng(0)).as_directed().public
    names = [stage.name for stage in release_subject(tmp_path / "reads").planned.plan(small).stages]
    assert names == [NODE_MODEL, "links between classes", "evidence", WEIGHTS]
    assert len(model("node", 16.0).plan(small).stages) > 1  # which has few features: there, edges would pay
    for name in ("alone", "too wide"):
        assert [stage.name for stage in release_subject(tmp_path / name).planned.plan(small).stages] == [NODE_MODEL]
    assert "evidence" in {stage.name for stage in method_subject(model("node", 0.1)).planned.plan(small).stages}


@pytest.mark.chance
def test_where_edges_do_not_pay_it_is_not_below_a_network_on_features() -> None:
    graph = split(csbm(num_nodes=2000, phi=0.5, average_degree=3), "75/10/15", 0)
    level = parse_level("node")
    network = DPMLPClassifier(Privacy(level, 0.5), linear=False).fit(graph).score(graph)
    assert model(level.spec, 0.5).fit(graph).score(graph) > network - 0.03


# ------------------------------------------------------------------------ what evidence is worth


@pytest.mark.chance
@pytest.mark.parametrize("phi", [0.8, -0.8])
def test_evidence_pays_with_and_without_homophily(phi: float) -> None:
    graph = split(csbm(num_nodes=2000, phi=phi, average_degree=20), "75/10/15", 0)
    level = parse_level("node:owned,max_degree=50")
    alone = DPMLPClassifier(Privacy(level, 8.0), steps=100, learning_rate=0.02, linear=False).fit(graph).score(graph)
    assert model(level.spec, 8.0).fit(graph).score(graph) > alone + 0.08


@pytest.mark.chance
def test_useless_edges_do_no_harm() -> None:
    graph = split(csbm(num_nodes=2000, phi=0.0, average_degree=20), "75/10/15", 0)
    level = parse_level("node")
    alone = DPMLPClassifier(Privacy(level, 8.0), steps=100, learning_rate=0.02, linear=False).fit(graph).score(graph)
    assert model(level.spec, 8.0).fit(graph).score(graph) > alone - 0.06


def test_strong_evidence_keeps_its_order() -> None:
    """What bounds the evidence must not make the two likeliest classes equal."""
    fitted = model("node", 30.0, steps=2, insecure_noise_seed=1).fit(split(csbm(num_nodes=200), "75/10/15", 0))
    released = fitted.evidence_.graphs[0]
    loud, noise_std = Received(released.ids, 1000 * released.sums), fitted.evidence_.noise_std
    found = bounded_likelihoods(loud.sums, loud.scale * noise_std, fitted.links_)
    raw = class_likelihoods(loud.sums, noise_std, fitted.links_)
    assert (found.argmax(axis=1) == raw.argmax(axis=1)).all()
    assert (np.sort(found, axis=1)[:, -2] < 0).mean() > 0.9
