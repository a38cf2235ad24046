"""lpgnet and progap: tight at every stage, noise drawn once, and further graphs paid for."""

from __future__ import annotations

from pathlib import Path

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
from discreet.release.load import load_release
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


PAPERS = [ProGAP, LPGNet]
SMALL = {**QUICK, "architecture": "paper"}


@pytest.mark.parametrize("spec", ["edge", "edge:directed"])
@pytest.mark.parametrize("kind", PAPERS)
def test_the_papers_networks_are_tight_at_every_stage(kind: type[LPGNet] | type[ProGAP], spec: str) -> None:
    level = parse_level(spec)
    assert isinstance(level, EdgeLevel)
    model = kind(Privacy(level, 1.0), **SMALL)  # type: ignore[arg-type]
    report = replay_audit(model, lambda rng: small_graph(rng, directed=level.directed, num_nodes=8), pairs=10)
    assert report.passed, report.violations[:3]
    assert len(report.ratio) == 6
    assert min(report.ratio.values()) > 0.99


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("spec", ["node:owned,max_degree=7", "node:owned,max_degree=7,change=replace"])
def test_progaps_own_networks_are_tight_on_a_star(spec: str, frozen: bool) -> None:
    """A node tells as many numbers as its networks have hidden units, so the hub's rows can be turned over."""
    graph = star()
    turned = np.array(graph.features)
    turned[0] *= -1
    neighbor = graph.with_features(turned) if "replace" in spec else without_hub(graph)
    model = ProGAP(
        node(spec), architecture="paper", activation="tanh", hidden=4, layers=1, steps=1, head_steps=1, frozen=frozen
    )
    report = replay_pair(model, graph, neighbor)
    assert report.passed, report.violations[:3]
    assert len(report.ratio) == 5
    assert report.ratio["stage 1"] > 0.9


@pytest.mark.parametrize("spec", ["edge", "node:owned,max_degree=3"])
@pytest.mark.parametrize("frozen", [False, True])
def test_bases_go_on_being_trained_unless_they_are_frozen(spec: str, frozen: bool) -> None:
    """A stage begins where the one before left its bases."""
    graph = split(csbm(40, num_features=4, seed=0), "75/10/15", seed=0)
    few = {"epochs": 2, "steps": 2, "head_steps": 2, "hidden": 4, "layers": 1, "dropout": 0.0}
    model = ProGAP(Privacy(parse_level(spec), 8.0), architecture="paper", frozen=frozen, **few).fit(graph)  # type: ignore[arg-type]
    first, last = (model.networks_.modules()[f"stage {stage}"].bases[0].layers[0].weight for stage in (0, 2))
    assert bool((first == last).all()) == frozen


@pytest.mark.parametrize("kind", PAPERS)
def test_a_release_of_the_papers_networks_predicts_and_is_extended(
    kind: type[LPGNet] | type[ProGAP], tmp_path: Path
) -> None:
    graph = split(csbm(num_nodes=40, num_features=4, seed=0), "75/10/15", seed=0)
    further = csbm(num_nodes=30, num_features=4, seed=1)
    model = kind(Privacy(EdgeLevel(), 1.0), **SMALL).fit(graph)  # type: ignore[arg-type]
    loaded = load_release(model.save(tmp_path / "release"))
    assert np.array_equal(loaded.predict_proba(graph), model.predict_proba(graph))
    assert np.array_equal(loaded.predict_proba(graph), loaded.predict_proba(graph.with_edges([0], [1])))
    extended = loaded.extend(further, Privacy(EdgeLevel(), 1.0))
    assert np.isfinite(extended.predict_proba(further)).all()


def test_lpgnets_later_networks_read_all_that_earlier_ones_said() -> None:
    """Two columns per class for every stage before: what it said, and what arrived."""
    graph = split(csbm(num_nodes=40, num_features=4, seed=0), "75/10/15", seed=0)
    model = LPGNet(Privacy(EdgeLevel(), 4.0), **SMALL).fit(graph)  # type: ignore[arg-type]
    widths = [network.layers[0].weight.shape[0] for network in model.networks_.modules().values()]  # type: ignore[union-attr, index]
    assert widths == [4, 4, 8, 12]
