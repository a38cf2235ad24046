"""lpgnet and progap: tight at every stage, noise drawn once, and further graphs paid for."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.audit.replay import replay_audit, replay_pair
from discreet.audit.small_graphs import small_graph
from discreet.errors import PlanViolationError, UncoveredReleaseError
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.progressive.lpgnet import LPGNet
from discreet.methods.progressive.progap import ProGAP
from discreet.ops import sparse
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, parse_level
from tests.methods.audits import node, star, without_hub

QUICK = {"epochs": 1, "hidden": 4, "stages": 3}


@pytest.mark.parametrize("spec", ["edge", "edge:directed"])
@pytest.mark.parametrize(
    "settings", [{"noise": "laplace"}, {"noise": "gaussian", "known_labels": False}, None], ids=str
)
def test_replay_is_tight_at_every_stage(spec: str, settings: dict[str, object] | None) -> None:
    level = parse_level(spec)
    assert isinstance(level, EdgeLevel)
    kind = ProGAP if settings is None else LPGNet
    model = kind(Privacy(level, 1.0), **QUICK, **(settings or {}))  # type: ignore[arg-type]
    report = replay_audit(model, lambda rng: small_graph(rng, directed=level.directed, num_nodes=8), pairs=10)
    assert report.passed, report.violations[:3]
    assert len(report.ratio) == 6  # a further graph is fitted beside some pairs
    assert min(report.ratio.values()) > 0.99


@pytest.mark.parametrize("spec", ["node:owned,max_degree=7", "node:owned,max_degree=7,change=replace"])
def test_tight_on_a_star_at_node_level(spec: str) -> None:
    """Taking the hub's entries away, or turning its row over, moves every stage by all that is declared."""
    graph = star()
    turned = np.array(graph.features)
    turned[0] *= -1
    neighbor = graph.with_features(turned) if "replace" in spec else without_hub(graph)
    report = replay_pair(ProGAP(node(spec), hidden=4, layers=1, steps=1, head_steps=1), graph, neighbor)
    assert report.passed, report.violations[:3]
    assert len(report.ratio) == 5
    assert min(report.ratio.values()) > 0.99


def test_later_stages_at_node_level_cost_what_the_first_does() -> None:
    """Rows follow from private features at every stage."""
    graph = small_graph(np.random.default_rng(0), num_nodes=9)
    plan = ProGAP(Privacy(parse_level("node:owned,max_degree=3"), 1.0)).plan(graph.public)
    assert plan.stage("stage 2").sensitivity == plan.stage("stage 1").sensitivity
    assert plan.stage("stage 2").noise_std == plan.stage("stage 1").noise_std


def test_laplace_noise_is_less_than_gaussian_where_it_is_the_default() -> None:
    graph = csbm(num_nodes=40, num_features=4, seed=0)
    plans = [LPGNet(Privacy(EdgeLevel(), 4.0), noise=noise).plan(graph.public) for noise in ("laplace", "gaussian")]  # type: ignore[arg-type]
    assert np.sqrt(2) * plans[0].stages[0].noise_std < plans[1].stages[0].noise_std


@pytest.mark.parametrize("kind", [LPGNet, ProGAP])
def test_predictions_read_caches_and_no_edge(kind: type[LPGNet] | type[ProGAP]) -> None:
    graph = split(csbm(num_nodes=40, num_features=4, seed=0), "75/10/15", seed=0)
    further = csbm(num_nodes=40, num_features=4, seed=1)
    model = kind(Privacy(EdgeLevel(), 1.0), **QUICK).fit(graph)  # type: ignore[arg-type]
    found = model.predict_proba(graph)
    assert np.array_equal(found, model.predict_proba(graph.with_edges([0], [1])))
    with pytest.raises(UncoveredReleaseError, match="extra_graphs"):
        model.predict_proba(further)
    assert np.isfinite(model.predict_proba(further, public=True)).all()
    both = kind(Privacy(EdgeLevel(), 1.0), **QUICK).fit(graph, extra_graphs=[further])  # type: ignore[arg-type]
    assert len(both.plan_.stages) == 2 * QUICK["stages"]
    assert np.isfinite(both.predict_proba(further)).all()


def test_more_passes_find_no_noise() -> None:
    """Published code draws noise on the same counts at every forward pass; here a second one has nothing to ask."""
    graph = split(csbm(num_nodes=20, num_features=4, seed=0), "75/10/15", seed=0)

    class Again(LPGNet):
        def _ask(self, part, number, stage, curator):  # type: ignore[no-untyped-def]
            super()._ask(part, number, stage, curator)
            return super()._ask(part, number, stage, curator)

    with pytest.raises(PlanViolationError):
        Again(Privacy(EdgeLevel(), 1.0), epochs=1).fit(graph)


def test_what_neighbours_are_helps() -> None:
    """On a graph whose features tell little, stages that see neighbours beat the network that does not."""
    graph = split(csbm(num_nodes=400, num_features=8, phi=0.7, seed=0), "75/10/15", seed=0)
    for model in (LPGNet(Privacy(EdgeLevel(), 8.0)), ProGAP(Privacy(EdgeLevel(), 8.0))):
        model.set_params(insecure_noise_seed=1).fit(graph)
        part = EdgeLevel().split(graph)[0]
        alone = model._logits(part, []).argmax(dim=1).numpy()
        test = graph.mask("test")
        assert model.score(graph, "test") > (alone == graph.labels)[test].mean()


def test_more_nodes_than_a_network_is_shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = split(csbm(40, num_features=4, average_degree=4), "75/10/15", seed=0)
    monkeypatch.setattr(sparse, "AT_ONCE", 16)
    model = ProGAP(Privacy(parse_level("node:owned,max_degree=3"), 8.0), hidden=4, steps=2, head_steps=2)
    assert model.fit(graph).predict(graph, audience="owner").shape == (40,)
