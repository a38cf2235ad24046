"""dp-gnn: replay, tightness, bugs that the audit must catch, plans, coverage, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.audit.replay import ReplayReport, replay_pair
from discreet.audit.small_graphs import small_graph
from discreet.errors import ParameterError, PlanViolationError, UncoveredReleaseError, UnsupportedError
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.dp_gnn.estimator import DPGNN
from discreet.methods.dp_gnn.sage import DPSAGE
from discreet.privacy.budget import Privacy
from discreet.queries import kept_edges
from tests.effort import replay_until
from tests.methods.audits import BASES, QUICK, audit, caught_in, node, star, without_hub

SETTINGS: list[dict[str, Any]] = [
    {"layers": 2, "convolution": "sage", "fan_in": 12},
    {"convolution": "gat", "inference": "noisy"},
    {"convolution": "gin", "clipping": "per-layer", "optimizer": "sgd"},
]


@pytest.mark.effort
@pytest.mark.parametrize("spec", BASES)
@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_replay(number: int, spec: str) -> None:
    report = audit(DPGNN(**QUICK, **SETTINGS[number]), pairs=6, spec=spec, seed=number)
    assert report.passed, report.violations[:3]


def test_all_that_is_declared_is_touched() -> None:
    graph = star()
    features = np.array(graph.features)
    features[1:, 1] = 1  # so that the hub's row is seen in the means of others
    graph = graph.with_features(features)
    report = replay_pair(DPGNN(node("node:owned,max_degree=7"), **QUICK), graph, without_hub(graph))
    assert report.passed, report.violations
    assert report.ratio["network"] == 1.0


def test_replay_catches_a_bound_that_is_not_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_edges, "bound_degrees", lambda graph, level, key: graph.as_directed())
    found = caught_in(DPGNN(**QUICK, fan_in=12), spec="node:owned,max_degree=1")
    assert any("terms, but one unit touches" in fault for fault in found)


# ------------------------------------------------------------------------ coverage


@pytest.mark.parametrize("kind", [DPGNN, DPSAGE])
@pytest.mark.parametrize(
    ("inference", "covers"), [("noisy", "weights+predictions"), ("visible", "weights"), ("disjoint", "weights")]
)
def test_only_noisy_outputs_cover_predictions(kind: type[DPGNN], inference: Any, covers: str) -> None:
    """Whatever the method is called, and whatever it does by default."""
    graph = star()
    model = kind(node("node:owned,max_degree=3"), **{**QUICK, "inference": inference}).fit(graph)
    assert model.covers == covers
    assert model.certificate_["covers"]["name"] == covers
    if inference == "visible":
        with pytest.raises(UncoveredReleaseError):
            model.predict(graph)


def test_a_method_that_covers_less_than_it_says_cannot_be_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DPGNN, "covers", property(lambda self: "weights+predictions"))
    with pytest.raises(PlanViolationError, match="neighbourhood without noise"):
        DPGNN(node("node:owned,max_degree=3"), **QUICK).fit(star())


# ------------------------------------------------------------------------ plans


def test_thinning_owes_the_ledger_its_failure() -> None:
    facts = small_graph(np.random.default_rng(0)).public
    plan = DPGNN(node("node:thinned,d_max=12,p=0.5"), **QUICK).plan(facts)
    assert plan.stages[0].event.delta == pytest.approx(1e-4)  # type: ignore[attr-defined]


def test_outputs_get_their_share_however_many_steps() -> None:
    facts = csbm(60, seed=0).with_masks(np.arange(40), None, None).as_directed().public
    for more in ({"steps": 7}, {"noise_multiplier": 30.0}):
        plan = DPGNN(node(epsilon=4.0), inference="noisy", output_share=0.2, hidden=4, **more).plan(facts)
        loss = [stage.runs / stage.event.noise_multiplier**2 for stage in plan.stages]  # type: ignore[attr-defined]
        assert loss[1] / sum(loss) == pytest.approx(0.2)
        assert 3.9 < plan.epsilon <= 4.0


# ------------------------------------------------------------------------ coverage and bad input


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
    with pytest.raises(UncoveredReleaseError, match="inference is disjoint"):
        fitted["disjoint"].predict(graph)
    with pytest.raises(UncoveredReleaseError, match="pass public=True"):
        fitted["disjoint"].predict(other)
    fitted["disjoint"].predict(other, public=True)


def test_bad_input() -> None:
    graph = small_graph(np.random.default_rng(0))
    with pytest.raises(ParameterError, match="layers"):
        DPGNN(node(), layers=3).fit(graph)
    with pytest.raises(UnsupportedError, match="max_degree"):
        DPGNN(node("neighbor:2"), **QUICK).fit(graph)
    with pytest.raises(UnsupportedError, match="no extra graphs"):
        DPGNN(node(), **QUICK).fit(graph, extra_graphs=[graph])


# ------------------------------------------------------------------------ edge level, and none


def reached(report: ReplayReport) -> bool:
    """Whether the bound on steps was met."""
    return report.ratio["network"] == 1.0


@pytest.mark.parametrize(("spec", "touched"), [("edge", 2), ("edge:directed", 1)])
def test_an_edge_touches_the_examples_of_its_receivers(spec: str, touched: int) -> None:
    directed = spec == "edge:directed"
    for settings in ({"convolution": "sage"}, {"inference": "noisy"}, {"batch_size": 3, "convolution": "gat"}):
        model = DPGNN(node(spec), **QUICK, **settings)  # type: ignore[arg-type]
        report = replay_until(reached, model, lambda rng: small_graph(rng, directed=directed, num_nodes=8), most=10)
        assert report.passed, report.violations[:3]
        assert reached(report)
    facts = small_graph(np.random.default_rng(0), directed=directed).public
    assert model.plan(facts).stages[0].query.parameters()["touched"] == touched


def test_two_rounds_at_edge_level_are_refused_by_name() -> None:
    facts = small_graph(np.random.default_rng(0)).public
    with pytest.raises(UnsupportedError, match="layers must be 1 at level edge"):
        DPGNN(node("edge"), **QUICK, layers=2).plan(facts)
    DPGNN(Privacy.none(), **QUICK, layers=2).plan(facts)


def test_without_privacy_it_learns_and_promises_nothing() -> None:
    graph = split(csbm(120, seed=0), "75/10/15", seed=0)
    model = DPGNN(Privacy.none(), hidden=8, steps=40, noise_multiplier=3.0).fit(graph)
    assert np.isinf(model.epsilon_spent_)
    assert model.score(graph, "train") > 0.6


def test_outputs_of_dp_sage_are_tight_on_a_star() -> None:
    """A network without biases turns over with the one record that reaches everybody, and so does every output."""
    features = np.zeros_like(np.array(star().features))
    features[0, 0] = 1
    graph, turned = (star().with_features(sign * features) for sign in (1, -1))
    still = {**QUICK, "activation": "tanh", "learning_rate": 1e-9, "output_norm": 0.01}  # biases stay at 0
    level = "node:owned,max_degree=7,change=replace"
    report = replay_pair(DPSAGE(node(level), **still), graph, turned, adversary="zeros")
    assert report.passed, report.violations
    assert report.ratio["network"] == 1.0
    assert report.ratio["outputs"] > 0.99


def test_dp_sage_is_a_preset() -> None:
    facts = small_graph(np.random.default_rng(0)).public
    preset, plain = DPSAGE(node(), **QUICK), DPGNN(node(), **QUICK, convolution="sage", inference="noisy")
    assert preset.covers == plain.covers == "weights+predictions"
    assert [stage.event for stage in preset.plan(facts).stages] == [stage.event for stage in plain.plan(facts).stages]
