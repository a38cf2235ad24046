"""gcon and gcon-ssp: plans, refusals, coverage, releases, and faults that must be caught."""

import math

import numpy as np
import pytest

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.errors import (
    GraphError,
    ParameterError,
    PrivacyError,
    PrivateDataError,
    UncoveredReleaseError,
    UnsupportedError,
)
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.mechanisms.objective import minimise as solver
from discreet.mechanisms.objective import perturbation
from discreet.mechanisms.objective.minimise import NotMinimisedError, minimise
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.methods.gcon import restart_classifier
from discreet.methods.gcon.moments import GCONSSP, agreement_ratio
from discreet.methods.gcon.objective import GCON, scale_of
from discreet.methods.gcon.restart_classifier import Measured, trusted
from discreet.privacy import events
from discreet.privacy.budget import Privacy
from discreet.privacy.events.gaussian import gaussian_mu
from discreet.privacy.levels import EdgeLevel
from discreet.queries import propagated
from discreet.queries.propagated import joint_bound, lemma_bound
from discreet.release.load import load_release
from tests.data_root import DATA_ROOT, needs_data
from tests.effort import caught, replay_until
from tests.methods.agreeing_graphs import edge, homophilous

METHODS = [GCON, GCONSSP]
QUICK = {"epochs": 5, "insecure_noise_seed": 1}
GRAPH = homophilous()


# -------------------------------------------------------------------- plans


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
@pytest.mark.parametrize("method", METHODS)
def test_plans_keep_within_budget_and_state_signal_to_noise(method, epsilon):
    plan = method(edge(epsilon)).plan(GRAPH.public)
    assert 0.9 * epsilon <= plan.epsilon <= epsilon
    assert any("signal to noise" in note for note in plan.notes)
    assert len(plan.stages) == 1


def test_gcon_ssp_noise_is_exact():
    stage = GCONSSP(edge()).plan(GRAPH.public).stages[0]
    assert stage.sensitivity == pytest.approx(joint_bound(0.65) * math.sqrt(2 / 3))
    assert stage.noise_std == pytest.approx(stage.sensitivity / gaussian_mu(1.0, 1e-5), rel=1e-9)


def test_gcon_stage_holds_black_box_and_output_noise():
    stage = GCON(edge(), steps=2).plan(GRAPH.public).stages[0]
    assert stage.sensitivity == pytest.approx(lemma_bound(0.5, 2))
    box, gaussian = stage.event.events
    assert isinstance(box, events.ApproximateDpEvent)
    assert isinstance(gaussian, events.GaussianDpEvent)
    assert stage.shape == (240, 3 + 3)
    assert stage.query.answer_shape == (3, 3)


def test_a_hopeless_budget_says_so():
    public = homophilous(n=30, train=12).public
    for method in METHODS:
        assert any("hopeless" in note for note in method(edge(0.01)).plan(public).notes)


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0}, "alpha should be greater than or equal to 0.001"),
        ({"alpha": 1}, "alpha should be less than or equal to 0.999"),
        ({"steps": -1}, "steps"),
        ({"steps": 0}, "no edge is read"),
        ({"steps": (0, 0)}, "no edge is read"),
        ({"encoder": "mlp", "width": 21}, "at most the number of features, 20"),
        ({"encoder": "spectral", "width": 21}, "at most the number of features, 20"),
        ({"encoder": "scores", "width": 5}, "one column per class"),
        ({"trust": 1.5}, "trust"),
        ({"inference_alpha": -0.1}, "inference_alpha"),
    ],
)
def test_bad_parameters_are_refused(method, options, words):
    with pytest.raises(ParameterError, match=words):
        method(edge(), **options).plan(GRAPH.public)


@pytest.mark.parametrize("omega", [0.0, 1.0])
def test_omega_is_refused_at_its_ends(omega):
    with pytest.raises(ParameterError, match="omega"):
        GCON(edge(), omega=omega).plan(GRAPH.public)


def test_a_ridge_below_its_floor_names_the_floor():
    with pytest.raises(ParameterError, match=r"at least 0\.\d+, 2 times its floor 0\.\d+"):
        GCON(edge(), ridge=1e-4).plan(GRAPH.public)


@pytest.mark.parametrize("method", METHODS)
def test_directed_graphs_and_levels_are_refused_with_the_way_out(method):
    directed = GRAPH.as_directed()
    with pytest.raises((UnsupportedError, PrivacyError)):
        method(edge()).fit(directed)
    with pytest.raises(UnsupportedError, match="to_undirected"):
        method(Privacy(EdgeLevel(directed=True), 1.0)).plan(directed.public)


@pytest.mark.parametrize("method", METHODS)
def test_a_class_without_a_training_label_is_refused(method):
    labels = GRAPH.labels.copy()
    labels[(labels == 2) & GRAPH.train_mask] = -1
    with pytest.raises(GraphError, match="class 2"):
        method(edge(), **QUICK).fit(GRAPH.with_labels(labels))


# -------------------------------------------------------------------- fit and predict


@pytest.mark.chance
@pytest.mark.parametrize("method", METHODS)
def test_neighbours_help_where_they_agree_and_are_left_alone_where_they_do_not(method):
    """The trust is measured: high on a homophilous graph, none where edges are random."""
    options = {"epochs": 60, "insecure_noise_seed": 3}
    trusting = method(edge(4.0), **options).fit(homophilous(n=1200, train=60))
    wary_graph = homophilous(n=1200, train=60, agree=0.0)
    wary = method(edge(4.0), **options).fit(wary_graph)
    assert trusting.trust_ > 0.8
    assert wary.trust_ < 0.2
    mlp = MLPClassifier(edge(), epochs=60).fit(homophilous(n=1200, train=60))
    assert trusting.score(homophilous(n=1200, train=60)) > mlp.score(homophilous(n=1200, train=60)) + 0.1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "options",
    [
        {"steps": (0, 2, "inf")},
        {"encoder": "mlp", "width": 6},
        {"encoder": "spectral", "width": 6},
        {"encoder": "scores"},
        {"pseudo_labels": False, "shrink": False},
        {"trust": 1.0, "inference": "public"},
    ],
)
def test_every_option_fits_predicts_saves_and_loads(method, options, tmp_path):
    fitted = method(edge(4.0), **QUICK, **options).fit(GRAPH)
    found = fitted.predict_proba(GRAPH, audience="owner", uncovered=True)
    assert found.shape == (240, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    fitted.save(str(tmp_path / "release"))
    loaded = load_release(tmp_path / "release")
    np.testing.assert_array_equal(loaded.predict_proba(GRAPH, audience="owner", uncovered=True), found)


@pytest.mark.chance
def test_other_settings_of_each_method():
    for made in (
        GCON(edge(), **QUICK, loss="pseudo-huber", bounds="paper"),
        GCONSSP(edge(), **QUICK, smooth="features", steps=(1, "inf")),
        GCON(Privacy.none(), epochs=5),
        GCONSSP(Privacy.none(), epochs=5, smooth="features"),
    ):
        assert made.fit(GRAPH).score(GRAPH) > 0.3


def test_without_noise_gcon_learns_the_plain_minimiser():
    fitted = GCON(Privacy.none(), epochs=5).fit(GRAPH)
    assert math.isinf(fitted.epsilon_spent_)
    again = GCON(Privacy.none(), epochs=5).fit(GRAPH)
    np.testing.assert_array_equal(fitted.map_, again.map_)


@pytest.mark.parametrize("made", [GCON(edge(), **QUICK), GCONSSP(edge(), **QUICK)], ids=["gcon", "gcon-ssp"])
def test_a_prediction_is_for_its_node_alone_and_reads_its_own_edges(made):
    fitted = made.fit(GRAPH)
    with pytest.raises(UncoveredReleaseError, match="audience='owner'"):
        fitted.predict(GRAPH)
    fitted.trust_ = 1.0
    before = fitted.predict_proba(GRAPH, audience="owner")
    source, target = GRAPH.edges()
    far = (source != 7) & (target != 7)
    keep = ~far | (np.arange(len(source)) % 3 > 0)
    after = fitted.predict_proba(GRAPH.with_edges(source[keep], target[keep]), audience="owner")
    np.testing.assert_array_equal(before[7], after[7])
    assert not np.allclose(before, after)


def test_public_inference_covers_the_weights_and_refuses_the_private_graph():
    fitted = GCON(edge(), **QUICK, inference="public").fit(GRAPH)
    assert fitted.covers == "weights"
    other = homophilous(seed=5)
    for graph in (GRAPH, other):
        with pytest.raises(UncoveredReleaseError, match="public=True"):
            fitted.predict(graph, audience="owner")
    assert fitted.predict(other, public=True).shape == (240,)


def test_eq_16_exactly_for_a_list_of_steps():
    """Own-hop scores against the formula, without labels, for steps (0, 2)."""
    fitted = GCON(edge(4.0), **QUICK, steps=(0, 2), trust=1.0, inference_alpha=0.3).fit(GRAPH)
    bare = GRAPH.with_masks(None, None, None)  # no label is put in
    x = fitted.encoder_.embed(bare)
    walk = restart_classifier.transition(bare)
    hop = 0.7 * (walk @ x) + 0.3 * x
    expected = restart_classifier.centred(np.hstack([x, hop]) / 2 @ fitted.map_) * fitted.scale_
    np.testing.assert_allclose(fitted._neighbourhood_scores(bare, x), expected, atol=1e-12)


@pytest.mark.chance
@pytest.mark.parametrize("method", METHODS)
def test_the_published_encoder_predicts_more_than_one_class(method):
    """Scores that are all negative must not be clipped to a tie: its embeddings share a large common part."""
    fitted = method(edge(8.0), **QUICK, encoder="mlp", width=8, trust=1.0, shrink=False).fit(GRAPH)
    assert fitted.score(GRAPH) > 0.45
    assert len(np.unique(fitted.predict(GRAPH, audience="owner"))) == 3


def test_shrinking_runs_from_the_private_map_to_the_public_one():
    public, private = np.ones((2, 2)), np.full((2, 2), 3.0)
    np.testing.assert_allclose(restart_classifier.shrunk(public, private, 0.0), private)
    np.testing.assert_allclose(restart_classifier.shrunk(public, private, 1e12), public, atol=1e-9)
    assert np.isfinite(restart_classifier.shrunk(0 * public, private, 1.0)).all()


# -------------------------------------------------------------------- faults that must not pass


@pytest.mark.parametrize(
    "made",
    [
        GCON(edge(), epochs=3),
        GCON(edge(), epochs=3, steps=(0, 2), encoder="mlp", width=3),
        GCONSSP(edge(), epochs=3),
        GCONSSP(edge(), epochs=3, smooth="features", steps=(1, "inf")),
    ],
    ids=["gcon", "gcon, two steps", "ssp", "ssp, features"],
)
def test_replay_audit(made):
    report = replay_audit(made, small_graph, pairs=10)
    assert report.passed, report.violations[:3]
    assert report.tightness > 0.3


@pytest.mark.parametrize("method", METHODS)
def test_replay_catches_a_sensitivity_that_is_too_small(method, monkeypatch):
    honest = propagated.restart_sensitivity
    monkeypatch.setattr(propagated, "restart_sensitivity", lambda *given: 0.4 * honest(*given))
    assert caught(replay_until(caught, method(edge(), epochs=3), small_graph, most=40))


def test_pseudo_labels_cannot_read_edges(monkeypatch):
    """Smoothed pseudo-labels beside the rows: Y would differ between neighbours, so the part holds no edge to read."""
    honest = GCON._targets

    def leaking(self, part, embedded, opinion):
        return np.clip(restart_classifier.transition(part) @ honest(self, part, embedded, opinion), 0, 1)

    monkeypatch.setattr(GCON, "_targets", leaking)
    with pytest.raises(PrivateDataError, match="edges are private"):
        GCON(edge(), epochs=3).fit(GRAPH)


def test_a_solver_stopped_early_makes_fit_fail(monkeypatch):
    monkeypatch.setattr(perturbation, "minimise", lambda p, tolerance: minimise(p, tolerance, max_steps=1))
    monkeypatch.setattr(solver, "descent_steps", lambda problem, tolerance: 1)
    made = GCON(edge(), **QUICK)
    with pytest.raises(NotMinimisedError):
        made.fit(GRAPH)
    assert not hasattr(made, "plan_")


# -------------------------------------------------------------------- real graphs


@pytest.mark.chance
@needs_data
def test_on_cora_ml_both_beat_the_free_baseline():
    from discreet.graph.datasets import load
    from discreet.graph.splits import split

    graph = split(load("cora_ml", DATA_ROOT), "20/500/1000", 0)
    options = {"random_state": 0, "insecure_noise_seed": 0}
    free = MLPClassifier(edge(), inference="own-hop", random_state=0).fit(graph).score(graph)
    for method in METHODS:
        assert method(Privacy(EdgeLevel(), 1.0), **options).fit(graph).score(graph) > free


# -------------------------------------------------------------------- how far neighbours are trusted


def test_trust_is_what_noise_leaves_of_the_agreement():
    assert trusted(Measured(0.8, 0.05)) == 1
    assert trusted(Measured(0.65, 0.1)) == pytest.approx(0.5)
    assert trusted(Measured(0.48, 0.02), *GCONSSP.trusted_from_to) == pytest.approx(0.6)
    assert trusted(Measured(0.2, 0.0)) == trusted(Measured(4e4, 5e4)) == trusted(Measured(0.0, math.inf)) == 0
    assert Measured(0.75, 0.1).beyond(0.5) == pytest.approx((0.5, 0.2))


def test_the_spread_of_the_agreement_is_that_of_its_noise():
    rng = np.random.default_rng(0)
    public, mean_row = rng.normal(size=(6, 3)), rng.normal(size=6)
    seen = [scale_of(0.7 * public + rng.normal(0, 0.3, public.shape), public, mean_row, 0.09) for _ in range(2000)]
    assert np.std([found.value for found in seen]) == pytest.approx(seen[0].spread, rel=0.1)
    rows, labels = rng.normal(size=(50, 6)), rng.normal(size=(50, 3))
    head, shares, cross = rows.T @ labels / 50, np.ones(50), rows.T @ labels
    asked = [
        agreement_ratio(rows, labels, shares, head, cross + rng.normal(0, 2.0, cross.shape), 2.0) for _ in range(2000)
    ]
    assert np.std([found.value for found in asked]) == pytest.approx(asked[0].spread, rel=0.1)


@pytest.mark.parametrize("noise", range(4))
def test_unlike_neighbours_of_two_classes_are_not_trusted_by_chance(noise):
    """Rows of two classes lie on one line: what was read off it used to be a coin."""
    unlike, like = (split(csbm(num_nodes=600, phi=phi, seed=0), "75/10/15", seed=0) for phi in (-0.75, 0.9))
    fitted, agreeing = (GCON(edge(4.0), epochs=20, insecure_noise_seed=noise).fit(graph) for graph in (unlike, like))
    assert fitted.trust_ == 0
    assert abs(fitted.agreement_) < 0.3
    assert 0.3 < agreeing.agreement_ < 1
