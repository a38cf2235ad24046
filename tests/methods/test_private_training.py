"""Noisy training of dp-mlp, gap and dp-gnn: bounds, batches, coverage, and bugs that the audit must catch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from discreet.audit.replay import replay_audit, replay_pair
from discreet.audit.small_graphs import small_graph
from discreet.errors import (
    GraphError,
    ParameterError,
    PlanViolationError,
    PrivacyError,
    UncoveredReleaseError,
    UnsupportedError,
)
from discreet.graph.graph import Graph
from discreet.graph.synthetic import csbm
from discreet.mechanisms import dpsgd
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.dpsgd import Touch, dpsgd_stage, draw_batch
from discreet.mechanisms.noise import NoiseSource
from discreet.methods import dp_mlp, gap_private, private_training
from discreet.methods.dp_gnn import DPGNN, EgoLosses
from discreet.methods.dp_mlp import DPMLPClassifier, FeatureLosses
from discreet.methods.ego_networks import EgoNetwork, slot_features
from discreet.methods.gap import GAP
from discreet.methods.networks import MLP, widths_of
from discreet.methods.private_training import GradientTerms, PrivateOptions
from discreet.ops.clipping import ClipRule, check_rows, clipped_sum, trainable
from discreet.ops.egonets import sender_table
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.budget import Privacy
from discreet.privacy.group_sampling import GroupFixedSampledGaussianDpEvent, GroupSampledGaussianDpEvent
from discreet.privacy.level_specs import parse_level
from discreet.privacy.plan import Stage, make_plan

OWNED = "node:owned,max_degree=3,change=null"
QUICK = {"steps": 2, "hidden": 4, "insecure_noise_seed": 1}
KEY = bytes(16)


def node(spec: str = OWNED, epsilon: float = 1.0) -> Privacy:
    return Privacy(parse_level(spec), epsilon, 1e-3)


def stage(batch_size: int | None = 3, sampling: str = "poisson", k: int = 2, change: str = "null", **more) -> Stage:
    return dpsgd_stage(
        "s",
        "q",
        num_parameters=4,
        num_examples=10,
        batch_size=batch_size,
        sampling=sampling,
        clip_norm=0.5,
        touch=Touch(k, change, "why"),
        steps=3,
        **more,
    )


class Terms:
    """Fixed terms, one row an example."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows.astype(np.float32)

    def total(self, batch):
        return self.rows[batch].sum(axis=0)

    def terms(self):
        return self.rows


# ------------------------------------------------------------------------ the stage and its curator


def test_stage_states_noise_in_clip_norms_and_survives_json() -> None:
    sampled, whole = stage(noise_multiplier=4.0), stage(None, noise_multiplier=4.0)
    assert isinstance(sampled.event, GroupSampledGaussianDpEvent)
    assert sampled.noise_std == pytest.approx(4.0 * 0.5)
    assert whole.noise_std == pytest.approx(4.0 * 0.5)
    assert whole.sensitivity == pytest.approx(3 * 0.5), "null: k - 1 terms turn over, the unit's own goes to zero"
    assert stage(None, change="replace").sensitivity == pytest.approx(4 * 0.5)
    assert isinstance(stage(sampling="fixed").event, GroupFixedSampledGaussianDpEvent)
    for one in (sampled, whole, stage(sampling="fixed")):
        assert Stage.from_json(one.to_json()) == one


def test_more_touched_than_examples_means_all_of_them_freely() -> None:
    cut = stage(k=11)
    assert (cut.parameters["touched"], cut.parameters["change"]) == (10, "replace")


def test_batches_follow_the_event() -> None:
    rng = np.random.default_rng(0)
    sizes = [len(draw_batch(stage(), rng)) for _ in range(4000)]
    assert np.mean(sizes) == pytest.approx(3, abs=0.1)
    assert np.var(sizes) == pytest.approx(10 * 0.3 * 0.7, rel=0.1)
    assert min(sizes) == 0, "an empty batch must be possible"
    fixed = [draw_batch(stage(sampling="fixed"), rng) for _ in range(200)]
    assert {len(set(batch.tolist())) for batch in fixed} == {3}
    assert np.array_equal(draw_batch(stage(None), rng), np.arange(10))


def test_curator_draws_fresh_batches_and_noise_and_keeps_to_its_plan() -> None:
    plan = make_plan("m", node(epsilon=1.0), 10, [stage()], "weights")
    zeros = Terms(np.zeros((10, 4)))
    seen = []
    zeros.total = lambda batch: (seen.append(batch.tolist()), np.zeros(4, dtype=np.float32))[1]
    curator = Curator(plan, NoiseSource(insecure_seed=0))
    answers = [curator.step("s", zeros) for _ in range(3)]
    curator.finish()
    assert len({tuple(batch) for batch in seen}) > 1
    assert not np.array_equal(answers[0], answers[1])
    with pytest.raises(PlanViolationError, match="run out"):
        curator.step("s", zeros)
    with pytest.raises(PlanViolationError, match="not measured"):
        Curator(plan, NoiseSource(insecure_seed=0)).measure("s", np.zeros(4, dtype=np.float32))


def test_noise_of_a_step_has_the_stated_scale() -> None:
    plan = make_plan("m", node(epsilon=1.0), 10, [stage(None)], "weights")
    wide = Stage(**{**plan.stages[0].__dict__, "shape": (200_000,), "runs": 1})
    plan = make_plan("m", node(epsilon=1.0), 10, [wide], "weights")
    curator = Curator(plan, NoiseSource(insecure_seed=0))
    noisy = curator.step("s", Terms(np.zeros((10, 200_000))))
    assert np.std(noisy) == pytest.approx(plan.stages[0].noise_std, rel=0.01)


@pytest.mark.parametrize(
    ("change", "one", "two", "words"),
    [
        ("null", [0.5, 0.5], [0.5, 0.0], None),
        ("null", [0.5, 0.5], [-0.5, 0.0], None),
        ("null", [0.5, 0.5], [-0.5, -0.5], "own term"),
        ("replace", [0.5, 0.5], [-0.5, -0.5], None),
        ("replace", [0.6, 0.0], [0.6, 0.0], "clip norm"),
        ("replace", [0.5, 0.5, 0.5], [0.0, 0.0, 0.0], "changed 3 terms"),
    ],
)
def test_what_terms_may_do(change, one, two, words) -> None:
    rows = [np.zeros((10, 4)), np.zeros((10, 4))]
    for row, values in zip(rows, (one, two), strict=True):
        row[: len(values), 0] = values
    _, fault = dpsgd.term_distance(stage(change=change), *rows, 1e-5)
    assert (fault is None) if words is None else words in fault


# ------------------------------------------------------------------------ clipping on the networks


@pytest.mark.parametrize("convolution", ["gcn", "sage", "gin", "gat"])
@pytest.mark.parametrize("hops", [1, 2])
def test_networks_clip_as_one_example_at_a_time(convolution, hops) -> None:
    rng = np.random.default_rng(3)
    graph = small_graph(rng).as_directed()
    network = EgoNetwork(4, 5, 3, convolution, hops, "tanh", torch.Generator().manual_seed(0))
    losses = EgoLosses(network, graph, sender_table(graph, 3, KEY), hops, torch.device("cpu"))
    everyone = np.arange(int(graph.train_mask.sum()))
    check_rows(network, lambda: losses(everyone))
    rule = ClipRule.flat(0.05)
    ours = clipped_sum(network, lambda: losses(everyone), rule, terms=True)
    for i in everyone:
        loss = losses(np.array([i])).sum()
        parts = torch.autograd.grad(loss, trainable(network))
        flat = torch.cat([part.reshape(-1) for part in parts])
        expected = flat * min(1.0, 0.05 / float(flat.norm()))
        assert torch.allclose(ours.terms[i], expected, atol=1e-5)
    assert torch.allclose(ours.terms.sum(0), ours.flat, atol=1e-5)


@pytest.mark.parametrize("convolution", ["gcn", "sage", "gin", "gat"])
@pytest.mark.parametrize("hops", [1, 2])
def test_ego_nets_and_whole_graph_agree_where_nothing_is_cut(convolution, hops) -> None:
    graph = small_graph(np.random.default_rng(5))
    network = EgoNetwork(4, 5, 3, convolution, hops, "relu", torch.Generator().manual_seed(0))
    nets = sender_table(graph, 12, KEY).ego_nets(np.arange(graph.num_nodes), hops)
    on_egos = network.on_egos(slot_features(torch.tensor(graph.features), nets), nets)
    assert torch.allclose(on_egos, network.on_graph(graph, torch.device("cpu")), atol=1e-5)


def test_micro_batches_change_nothing() -> None:
    graph = small_graph(np.random.default_rng(2))
    network = EgoNetwork(4, 5, 3, "gcn", 1, "relu", torch.Generator().manual_seed(0))
    losses = EgoLosses(network, graph, sender_table(graph, 4, KEY), 1, torch.device("cpu"))
    everyone = np.arange(int(graph.train_mask.sum()))
    whole, parts = (
        private_training.GradientTerms(network, losses, ClipRule.flat(0.1), len(everyone), size).total(everyone)
        for size in (100, 2)
    )
    assert np.allclose(whole, parts, atol=1e-6)
    assert not whole.any() or np.linalg.norm(whole) > 0
    empty = private_training.GradientTerms(network, losses, ClipRule.flat(0.1), len(everyone), 2).total(everyone[:0])
    assert not empty.any()


# ------------------------------------------------------------------------ replay

BASES = [
    OWNED,
    "node:owned,max_degree=3,change=replace",
    "node:promised,max_degree=12,change=null",
    "node:promised,max_degree=12,change=replace",
    "node:thinned,d_max=12,p=0.5,change=null",
    "node:thinned,d_max=12,p=0.5,change=replace",
    "neighbor:2,max_degree=3",
    "neighbor:2,max_degree=12,edges=promised",
]
AUDITED = [
    DPGNN(**QUICK, layers=2, convolution="sage", fan_in=12),
    DPGNN(**QUICK, convolution="gat", inference="noisy"),
    DPGNN(**QUICK, convolution="gin", clipping="per-layer", optimizer="sgd"),
    GAP(**QUICK, hops=2, head_steps=2),
    GAP(**QUICK, aggregation="mean", head_steps=2),
    DPMLPClassifier(**QUICK, clipping="per-layer"),
]


@pytest.mark.parametrize("spec", BASES)
@pytest.mark.parametrize("number", range(len(AUDITED)))
def test_replay(number, spec) -> None:
    estimator = AUDITED[number].set_params(privacy=node(spec))
    report = replay_audit(estimator, small_graph, pairs=10, seed=number)
    assert report.passed, report.violations[:3]


def star(n: int = 8) -> Graph:
    """One hub that sends to all others, whose features are alike."""
    features = np.zeros((n, 4))
    features[:, 0] = 1
    graph = Graph.from_edges(np.zeros(n - 1, int), np.arange(1, n), features, np.arange(n) % 3, directed=True)
    return graph.with_masks(np.ones(n, bool), None, None)


@pytest.mark.parametrize("spec", ["node:owned,max_degree=7", "node:owned,max_degree=7,change=replace"])
def test_gap_is_tight_on_a_star(spec) -> None:
    """Taking the hub's entries away, or turning its row over, moves the first hop by nearly all that is declared."""
    privacy, graph = node(spec), star()
    bare = graph.with_edges([], []) if "replace" not in spec else None
    if bare is None:
        features = graph.features.copy()
        features[0] *= -1
        neighbor = graph.with_features(features)
    else:
        labels = graph.labels.copy()
        labels[0] = -1
        features = graph.features.copy()
        features[0] = 0
        neighbor = bare.with_features(features).with_labels(labels)
    estimator = GAP(privacy, layers=1, head_steps=1, **{**QUICK, "steps": 1})
    report = replay_pair(estimator, graph, neighbor, adversary="zeros")
    huge = replay_pair(estimator, graph, neighbor, adversary="huge", report=report)
    assert huge.passed, huge.violations
    assert huge.ratio["hop 1"] >= 0.95
    assert huge.ratio["encoder"] == 1.0


def test_dp_gnn_touches_all_that_is_declared() -> None:
    privacy, graph = node("node:owned,max_degree=7"), star()
    labels, features = graph.labels.copy(), graph.features.copy()
    labels[0], features[0] = -1, 0
    features[1:, 1] = 1  # so that the hub's row is seen in the means of others
    graph = graph.with_features(np.where(np.arange(8)[:, None] > 0, features, graph.features))
    neighbor = graph.with_edges([], []).with_features(features).with_labels(labels)
    report = replay_pair(DPGNN(privacy, **QUICK), graph, neighbor)
    assert report.passed, report.violations
    assert report.ratio["network"] == 1.0


def audit(estimator, pairs=40, spec=OWNED):
    return replay_audit(estimator.set_params(privacy=node(spec)), small_graph, pairs=pairs)


def test_replay_catches_greedy_truncation(monkeypatch) -> None:
    """Keep D senders a node, whoever they are: the published samplers' fault."""

    def greedy(graph, level, key):
        source, target = graph.edges()
        order = np.argsort(target, kind="stable")
        kept, count = [], np.zeros(graph.num_nodes, int)
        budget = np.zeros(graph.num_nodes, int)
        for at in order:
            if count[target[at]] < 3 and budget[source[at]] < 3:
                kept.append(at)
                count[target[at]] += 1
                budget[source[at]] += 1
        return graph.as_directed().with_edges(source[kept], target[kept])

    monkeypatch.setattr("discreet.methods.gap_private.bound_degrees", greedy)
    report = audit(GAP(**QUICK, head_steps=2), pairs=120)
    assert any("hop 1" in fault for fault in report.violations)


def test_replay_catches_a_bound_that_is_not_applied(monkeypatch) -> None:
    monkeypatch.setattr("discreet.methods.dp_gnn.bound_degrees", lambda graph, level, key: graph.as_directed())
    report = audit(DPGNN(**QUICK, fan_in=12), spec="node:owned,max_degree=1")
    assert any("terms, but one unit touches" in fault for fault in report.violations)


def test_replay_catches_gradients_that_are_not_clipped(monkeypatch) -> None:
    loose = private_training.PrivateOptions.rule
    monkeypatch.setattr(
        private_training.PrivateOptions, "rule", lambda self, network: ClipRule.flat(2 * loose(self, network).total)
    )
    assert any("clip norm" in fault for fault in audit(DPMLPClassifier(**QUICK), pairs=10).violations)


def test_replay_catches_a_null_node_that_still_trains(monkeypatch) -> None:
    def leaking(logits, labels):
        return torch.nn.functional.cross_entropy(logits, labels.clamp_min(0), reduction="none")

    monkeypatch.setattr(dp_mlp, "example_losses", leaking)
    assert any("own term" in fault for fault in audit(DPMLPClassifier(**QUICK), pairs=20).violations)


def test_replay_catches_terms_that_are_not_what_is_added(monkeypatch) -> None:
    plain = private_training.GradientTerms.total
    monkeypatch.setattr(private_training.GradientTerms, "total", lambda self, batch: 2 * plain(self, batch))
    assert any("not the sum" in fault for fault in audit(DPMLPClassifier(**QUICK), pairs=5).violations)


def test_replay_catches_dividing_by_the_number_of_labels(monkeypatch) -> None:
    """The count of labelled nodes is private: a learning rate that reads it makes weights differ."""
    plain = dp_mlp.FeatureLosses.__init__

    def counting(self, network, graph, device):
        plain(self, network, graph, device)
        with torch.no_grad():
            next(network.parameters()).mul_(1 + 1 / (graph.labels >= 0).sum())

    monkeypatch.setattr(dp_mlp.FeatureLosses, "__init__", counting)
    assert any("differs" in fault for fault in audit(DPMLPClassifier(**QUICK), pairs=10).violations)


def test_replay_catches_a_fingerprint_of_features(monkeypatch) -> None:
    from discreet.methods.gap import graph_key

    monkeypatch.setattr(gap_private, "public_key", graph_key)
    assert any("key.0" in fault for fault in audit(GAP(**QUICK, head_steps=2), pairs=5).violations)


# ------------------------------------------------------------------------ plans, coverage, bad input


def test_gap_calibrates_encoder_hops_and_head_together_as_split_says() -> None:
    facts = small_graph(np.random.default_rng(0)).as_directed().public
    plan = GAP(node(epsilon=4.0), split=(6.0, 3.0, 1.0), steps=30, head_steps=7, hops=2).plan(facts)
    loss = {stage.name: stage.runs / stage.event.noise_multiplier**2 for stage in plan.stages}
    total = sum(loss.values())
    assert loss["encoder"] / total == pytest.approx(0.6)
    assert (loss["hop 1"] + loss["hop 2"]) / total == pytest.approx(0.3)
    assert 3.9 < plan.epsilon <= 4.0
    assert "60% encoder, 30% hops, 10% head" in str(plan)
    assert "two units together" in str(plan)


def test_thinning_owes_the_ledger_its_failure() -> None:
    facts = small_graph(np.random.default_rng(0)).public
    for estimator in (GAP(**QUICK), DPGNN(**QUICK)):
        plan = estimator.set_params(privacy=node("node:thinned,d_max=12,p=0.5")).plan(facts)
        assert plan.stages[0].event.delta == pytest.approx(1e-4)


def test_settings_of_inference_have_their_coverage() -> None:
    graph = csbm(60, seed=0)
    graph = graph.with_masks(np.arange(40), None, np.arange(40, 60))
    other = csbm(50, seed=1)
    fitted = {name: DPGNN(node(), inference=name, **QUICK).fit(graph) for name in ("visible", "noisy", "disjoint")}
    assert [fitted[name].covers for name in fitted] == ["weights", "weights+predictions", "weights"]
    with pytest.raises(UncoveredReleaseError, match="weights alone"):
        fitted["visible"].predict(graph, audience="owner")
    fitted["visible"].predict(other, public=True)
    fitted["noisy"].predict(graph)
    with pytest.raises(UncoveredReleaseError, match="training graph alone"):
        fitted["noisy"].predict(other)
    with pytest.raises(UncoveredReleaseError, match="disjoint"):
        fitted["disjoint"].predict(graph)
    fitted["disjoint"].predict(other)


@pytest.mark.parametrize(
    ("estimator", "error", "words"),
    [
        (DPMLPClassifier(batch_size=1000), ParameterError, "batch_size 1000 is larger than the training set"),
        (DPMLPClassifier(clip_norm=0.0), ParameterError, "clip_norm"),
        (DPMLPClassifier(steps=0), ParameterError, "steps"),
        (DPGNN(layers=3), ParameterError, "layers"),
        (GAP(aggregation="symmetric"), UnsupportedError, "symmetric"),
        (GAP(split=(1.0, 0.0, 1.0)), ParameterError, "split"),
    ],
)
def test_bad_input(estimator, error, words) -> None:
    graph = small_graph(np.random.default_rng(0))
    with pytest.raises(error, match=words):
        estimator.set_params(privacy=node()).fit(graph)


def test_a_broken_promise_is_refused_by_how_much() -> None:
    graph = star(8)
    with pytest.raises(GraphError, match="exceeds it by 4"):
        GAP(node("node:promised,max_degree=3"), **QUICK).fit(graph)


def test_k_neighbour_level_needs_a_degree_bound_where_edges_are_read() -> None:
    graph = small_graph(np.random.default_rng(0))
    for kind in (GAP, DPGNN):
        with pytest.raises(UnsupportedError, match="max_degree"):
            kind(node("neighbor:2"), **QUICK).fit(graph)
    DPMLPClassifier(node("neighbor:2"), **QUICK).fit(graph)


def test_steps_for_a_given_noise() -> None:
    """The other dial: as many steps as ε allows, and one more would exceed it."""
    facts = small_graph(np.random.default_rng(0)).as_directed().public
    plan = DPMLPClassifier(node(epsilon=4.0), noise_multiplier=3.0, hidden=4).plan(facts)
    (planned,) = plan.stages
    assert planned.runs > 1
    assert planned.noise_std / planned.parameters["clip_norm"] <= 3.0
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


def test_gap_charges_extra_graphs_and_knows_graphs_by_public_facts_alone() -> None:
    graph = csbm(60, seed=0).with_masks(np.arange(40), None, np.arange(40, 60))
    other, third = csbm(50, seed=1), csbm(45, seed=2)
    fitted = GAP(node(), **QUICK).fit(graph, extra_graphs=[other])
    assert [stage.name for stage in fitted.plan_.stages] == ["encoder", "hop 1", "extra graph 1 hop 1", "head"]
    fitted.predict(graph, audience="owner")
    fitted.predict(other, audience="owner")
    with pytest.raises(UncoveredReleaseError, match="extra_graphs"):
        fitted.predict(third, audience="owner")
    with pytest.raises(UncoveredReleaseError, match="own node"):
        fitted.predict(graph)
    with pytest.raises(UnsupportedError, match="told apart"):
        GAP(node(), **QUICK).fit(graph, extra_graphs=[csbm(60, seed=3)])


def test_a_term_moves_the_sum_of_many_by_no_more_than_its_clip_norm() -> None:
    """Single-precision sums of many terms that agree would round by more than a term is worth."""
    nodes = 50_000
    rows = np.ones((nodes, 4), dtype=np.float32) + 0.01 * np.random.default_rng(0).standard_normal((nodes, 4))
    graph = Graph.from_edges([0], [1], rows.astype(np.float32), np.zeros(nodes, int), directed=False, num_classes=3)
    graph = graph.with_masks(np.arange(nodes), None, None)
    network = MLP(widths_of(4, 8, 2, 3), "relu", 0.0, torch.Generator().manual_seed(0))
    options = PrivateOptions(1, 0.1, None, "poisson", 0.1, "flat", "adam", "cosine", 0.5)

    def total(given: Graph) -> np.ndarray:
        losses = FeatureLosses(network, given, torch.device("cpu"))
        return GradientTerms(network, losses, options.rule(network), nodes, 1 << 20).total(np.arange(nodes))

    whole = total(graph)
    for node in (0, 1, nodes // 2, nodes - 1):
        labels, features = graph.labels.copy(), rows.astype(np.float32)
        labels[node], features[node] = -1, 0.0
        moved = np.linalg.norm(whole - total(graph.with_labels(labels).with_features(features)))
        assert 0.9 * options.clip_norm < moved <= options.clip_norm
