"""dpdgc: plans, bad input, what is public, and that it learns."""

from __future__ import annotations

import math
import resource
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from discreet.errors import ParameterError, PrivacyError, PrivateDataError, UncoveredReleaseError, UnsupportedError
from discreet.graph.graph import Graph, PublicFacts
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.dpdgc.estimator import DPDGC
from discreet.methods.dpdgc.networks import JointMap
from discreet.ops.rows import LENGTH_COLUMNS, rows_of_norm
from discreet.privacy import events
from discreet.privacy.budget import Privacy
from discreet.privacy.events.group_sampling import GroupSampledGaussianDpEvent
from discreet.privacy.levels import parse_level
from discreet.queries.gradients import OwnRecordSteps, StepRule
from discreet.release.rebuild import BEFORE
from discreet.training.networks import Linear


def model(spec: str, epsilon: float = 1.0, **parameters: object) -> DPDGC:
    budget = Privacy.none() if spec == "none" else Privacy(parse_level(spec), epsilon)
    return DPDGC(budget, **parameters)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Two classes that features barely tell apart and edges do."""
    return split(csbm(num_nodes=400, num_features=10, average_degree=20, phi=0.9, seed=0), "75/10/15", 0)


# ------------------------------------------------------------------------ plan


def test_edge_plan_has_the_corrected_sensitivities(graph: Graph) -> None:
    plan = model("edge", row_norm=0.5).plan(graph.public)
    assert [stage.name for stage in plan.stages] == ["embedding step", "rows"]
    assert plan.stage("embedding step").sensitivity == pytest.approx(math.sqrt(2))
    assert plan.stage("rows").sensitivity == pytest.approx(0.5 * math.sqrt(2))
    assert plan.epsilon <= 1
    trained = model("edge", embedding="trained").plan(graph.public).stage("embedding")
    assert (trained.query.parameters()["touched"], trained.query.parameters()["change"]) == (2, "replace")
    assert trained.sensitivity == pytest.approx(4 * 0.1)


@pytest.mark.parametrize(
    ("spec", "touched", "rows"),
    [
        ("neighbor:5", 6, math.sqrt(5)),
        ("neighbor:5,max_degree=20", 11, math.sqrt(10)),
        ("node:owned,max_degree=7,change=null", 8, math.sqrt(7)),
        ("node:owned,max_degree=7,change=replace", 15, math.sqrt(14)),
    ],
)
def test_private_plans(graph: Graph, spec: str, touched: int, rows: float) -> None:
    level = parse_level(spec)
    plan = model(spec, 16.0, embedding="trained").plan(level.view(graph).public)
    assert [stage.name for stage in plan.stages] == ["embedding", "rows", "network"]
    assert plan.stage("embedding").query.parameters()["touched"] == touched
    assert plan.stage("rows").sensitivity == pytest.approx(rows)
    assert plan.stage("network").query.parameters()["touched"] == 1
    assert plan.epsilon <= 16
    assert any("23% embedding, 23% rows, 54% network" in note for note in plan.notes)


def test_split_is_what_the_stages_cost(graph: Graph) -> None:
    """Gaussians add up in 1/σ², and the shares are those of the split."""
    plan = model("neighbor:2", 4.0, embedding="trained", split=(1.0, 2.0, 5.0)).plan(graph.as_directed().public)
    costs = [stage.runs / stage.event.noise_multiplier**2 for stage in plan.stages]  # type: ignore[attr-defined]
    assert np.allclose(np.array(costs) / sum(costs), [1 / 8, 2 / 8, 5 / 8])
    free = model("neighbor:2", 4.0, embedding="random", split=(1.0, 2.0, 5.0)).plan(graph.as_directed().public)
    costs = [stage.runs / stage.event.noise_multiplier**2 for stage in free.stages]  # type: ignore[attr-defined]
    assert np.allclose(np.array(costs) / sum(costs), [2 / 7, 5 / 7])


def test_batches_are_accounted_as_groups(graph: Graph) -> None:
    stage = model("edge", embedding="trained", embedding_batch=50).plan(graph.public).stage("embedding")
    assert isinstance(stage.event, GroupSampledGaussianDpEvent)
    assert stage.query.parameters()["touched"] == 2


@pytest.mark.parametrize(
    ("spec", "embedding", "names"),
    [
        ("neighbor:5", "auto", ["embedding", "rows", "network"]),
        ("neighbor:6", "auto", ["rows", "network"]),
        ("neighbor:5", None, ["rows", "network"]),  # as in a release of before
        ("node", "auto", ["rows", "network"]),
        ("edge", None, ["embedding step", "rows"]),
    ],
)
def test_where_rows_come_from_by_default(graph: Graph, spec: str, embedding: str | None, names: list[str]) -> None:
    plan = model(spec, 16.0, embedding=embedding).plan(parse_level(spec).view(graph).public)
    assert [stage.name for stage in plan.stages] == names
    assert model(spec).embedding == "auto"


def test_a_random_embedding_costs_nothing_but_its_rows(graph: Graph) -> None:
    plan = model("edge", embedding="random").plan(graph.public)
    assert [stage.name for stage in plan.stages] == ["rows"]
    assert isinstance(plan.stages[0].event, events.GaussianDpEvent)


def test_row_norm_scales_noise_and_nothing_else(graph: Graph) -> None:
    """c is neutral where rows really have norm c: the cache, which is over c, is the same up to rounding.

    A power of two, which scales the grid of the noise too.
    """
    one, tiny = (
        model("edge", embedding="random", row_norm=c, epochs=1, insecure_noise_seed=3).fit(graph)
        for c in (1.0, 2.0**-26)
    )
    assert np.allclose(one.cache_, tiny.cache_, atol=1e-5)


# ------------------------------------------------------------------------ linear maps, or a network


@pytest.mark.parametrize(("epsilon", "linear"), [(1.0, True), (64.0, False)])
def test_public_facts_decide_whether_there_are_hidden_layers(epsilon: float, linear: bool) -> None:
    """Much noise: one linear map of features and one of the 16 directions. Its parameters are those of the stage."""
    facts = PublicFacts(1000, 100, 3, 500, directed=True)
    maps = (100 + LENGTH_COLUMNS + 1) * 3 + 16 * 3
    network = 101 * 64 + 17 * 64 + 129 * 3
    plan = model("neighbor:9", epsilon).plan(facts)
    assert plan.stage("network").shape == (maps if linear else network,)
    assert any("one linear map, by public facts" in note for note in plan.notes) == linear
    shares = "18% rows, 82% network" if linear else "30% rows, 70% network"
    assert any(shares in note for note in plan.notes)
    asked = model("neighbor:9", epsilon, linear=not linear).plan(facts)
    assert asked.stage("network").shape == (network if linear else maps,)
    assert not any("public facts" in note for note in asked.notes)


@pytest.mark.parametrize("settings", [BEFORE["dpdgc"], {"preset": "paper"}])
def test_releases_of_before_and_the_paper_have_hidden_layers(graph: Graph, settings: dict[str, Any]) -> None:
    plan = model("neighbor:2", steps=2, embedding_steps=2, **settings).plan(graph.as_directed().public)
    assert plan.stage("network").query.row_norm is None  # type: ignore[attr-defined]


def test_rows_that_say_nothing_take_nothing_from_features() -> None:
    """Where no direction of Z stands out, rows are zero: the clipped terms are those of a linear map of features."""
    graph = split(csbm(num_nodes=30, num_features=4, seed=0), "75/10/15", 0).as_directed()
    level = parse_level("node")
    private, generator = level.split(graph)[1], torch.Generator().manual_seed(0)
    joint = JointMap(4, 3, 2, generator)
    alone = Linear(4, 2, generator)
    alone.load_state_dict(joint.features.state_dict())
    joint.rows.weight.data.fill_(5.0)
    query = partial(OwnRecordSteps, level, "?", num_examples=graph.public.num_train, rule=StepRule(0.1))
    beside = torch.zeros(30, 3)
    both = query(num_parameters=10 + 6).terms(private, network=joint, beside=beside)
    assert np.array_equal(both[:, 10:], np.zeros((len(both), 6)))
    np.testing.assert_allclose(both[:, :10], query(num_parameters=10).terms(private, network=alone), rtol=1e-6)


def test_a_linear_map_predicts_from_rows_of_one_norm(graph: Graph) -> None:
    """Features are scaled in predictions as they are in fits, and how long they were is read apart."""
    settings = {"linear": True, "steps": 3, "insecure_noise_seed": 1, "embedding": "random"}
    fitted = model("neighbor:2", **settings).fit(graph)
    assert isinstance(fitted.network_, JointMap)
    assert fitted.network_.features.weight.shape[0] == 10 + LENGTH_COLUMNS
    with torch.no_grad():
        rows = torch.from_numpy(rows_of_norm(graph.features, 4.5, 1.5)).float()
        logits = fitted.network_(rows, fitted.cache_)
    np.testing.assert_allclose(fitted.predict_proba(graph, uncovered=True), torch.softmax(logits, 1), atol=1e-6)


# ------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_row_norm_must_be_positive(graph: Graph, bad: float) -> None:
    with pytest.raises(ParameterError, match="row_norm"):
        model("edge", row_norm=bad).fit(graph)


def test_k_must_fit_the_graph(graph: Graph) -> None:
    with pytest.raises(PrivacyError, match="k must be a whole number of at least 1, not 0"):
        model("neighbor:0")
    with pytest.raises(PrivacyError, match="only 400 nodes"):
        model("neighbor:401").fit(graph)


def test_step_needs_public_labels(graph: Graph) -> None:
    with pytest.raises(UnsupportedError, match="use random or trained"):
        model("node", embedding="step").fit(graph)


def test_training_sees_no_edge_but_through_the_curator(graph: Graph) -> None:
    class ReadsEdges(DPDGC):
        def _learn(self, parts, curator, progress):  # type: ignore[no-untyped-def]
            parts[0].adjacency.sum()

    with pytest.raises(PrivateDataError, match="edges are private"):
        ReadsEdges(Privacy(parse_level("edge"), 1.0)).fit(graph)


def test_other_graphs_are_refused(graph: Graph) -> None:
    fitted = model("edge", epochs=1).fit(graph)
    other = graph.with_features(np.asarray(graph.features) + 1)
    with pytest.raises(UncoveredReleaseError, match="nodes of the training graph alone"):
        fitted.predict(other)
    with pytest.raises(UnsupportedError, match="knows the nodes that it was fitted on"):
        fitted.predict(other, uncovered=True)
    with pytest.raises(UnsupportedError, match="no extra graphs"):
        model("edge", epochs=1).fit(graph, extra_graphs=[other])


# ------------------------------------------------------------------------ it learns


@pytest.mark.parametrize(
    ("spec", "parameters"), [("none", {"epochs": 10}), ("none", {"embedding": "step"}), ("edge", {})]
)
def test_it_learns_from_edges(graph: Graph, spec: str, parameters: dict[str, object]) -> None:
    """Features alone give about 70 per cent here."""
    found = model(spec, 20.0, **parameters).fit(graph).score(graph)
    assert found > 0.8, found


@pytest.fixture(scope="module")
def blocks() -> Graph:
    """Two dense blocks and no features: an adjacency row says all."""
    rng = np.random.default_rng(0)
    n = 300
    labels = rng.integers(0, 2, n)
    same = labels[:, None] == labels[None, :]
    source, target = np.nonzero(np.triu(rng.random((n, n)) < np.where(same, 0.3, 0.02), 1))
    graph = Graph.from_edges(source, target, np.ones((n, 2)), labels, directed=False, num_classes=2)
    return split(graph, "75/10/15", 0)


@pytest.mark.chance
@pytest.mark.parametrize(
    ("spec", "kind"), [("none", "random"), ("edge", "random"), ("edge", "trained"), ("neighbor:1", "random")]
)
def test_rows_alone_tell_blocks_apart(blocks: Graph, spec: str, kind: str) -> None:
    """Random or trained, at generous ε, with and without noisy steps."""
    fitted = model(spec, 20.0, embedding=kind, steps=60, step_size=0.05, random_state=1).fit(blocks)
    assert fitted.score(blocks) > 0.7


# ------------------------------------------------------------------------ sparse stays sparse, and plain words


@pytest.mark.parametrize("kind", ["step", "trained", "random"])
def test_adjacency_rows_stay_sparse(kind: str) -> None:
    """60,000 nodes: one dense adjacency matrix would take 14 GB, and as many per-example gradients of W far more."""
    rng = np.random.default_rng(0)
    n = 60_000
    large = Graph.from_edges(
        rng.integers(0, n, 2 * n),
        rng.integers(0, n, 2 * n),
        rng.standard_normal((n, 2)),
        rng.integers(0, 2, n),
        directed=False,
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model("edge", embedding=kind, epochs=1, hidden=4, embedding_steps=1, width=4, batch_size=20_000).fit(
        split(large, "75/10/15", 0)
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # kilobytes


def test_the_certificate_says_what_is_left_out_in_plain_words(graph: Graph) -> None:
    fitted = model("neighbor:1", 16.0, steps=1).fit(graph)
    said = fitted.certificate_["covers"]["means"]
    assert "not protected against revealing that same person's own record" in said
    assert "every other person no more than the stated epsilon and delta" in said
