"""A release on one more graph: weights stay, the graph's own aggregation is charged, and certificates add up."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.errors import PrivacyError, UncoveredReleaseError, UnsupportedError
from discreet.graph import csbm, split
from discreet.graph.graph import Graph
from discreet.mechanisms.bits import FRESH
from discreet.methods.base import NodeClassifier
from discreet.methods.extension import note_on
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import digest
from discreet.privacy.composition import event_of
from discreet.privacy.levels import parse_level
from discreet.privacy.plan import Stage
from discreet.release import advisories
from discreet.release.advisories import Advisory
from discreet.release.load import load_release
from discreet.release.verify import examine, verify
from tests.contracts.cases import make
from tests.release.forging import Change, forge, unchanged

NODE = "node:owned,max_degree=3,change=null"
CASES = [
    ("gap", "edge"),
    ("gap", NODE),
    ("hop-bayes", "edge"),
    ("hop-bayes", NODE),
    ("progap", "edge"),
    ("lpgnet", "edge"),
]


def september() -> Graph:
    return split(csbm(num_nodes=80, seed=0), "60/20/20", 0)


def october() -> Graph:
    """Other people, and nobody knows their labels yet."""
    graph = csbm(num_nodes=60, seed=1)
    return graph.with_labels(np.full(60, -1))


def released(method: str, spec: str, folder: Path) -> NodeClassifier:
    make(method, spec).fit(september()).save(folder)
    return load_release(folder)


@pytest.mark.parametrize(("method", "spec"), CASES)
def test_the_new_graph_is_predicted_and_charged(method: str, spec: str, tmp_path: Path) -> None:
    model, graph = released(method, spec, tmp_path / "one"), october()
    with pytest.raises(UncoveredReleaseError, match="extend"):
        model.predict_proba(graph, audience="owner")
    privacy = Privacy(parse_level(spec), 0.5)
    more = model.extend(graph, privacy)
    more.save(tmp_path / "two")
    loaded = load_release(tmp_path / "two")
    found = loaded.predict_proba(graph, audience="owner")
    assert found.shape == (60, 2)
    assert np.array_equal(found, more.predict_proba(graph, audience="owner"))
    before = model.predict_proba(september(), audience="owner")
    assert np.array_equal(loaded.predict_proba(september(), audience="owner"), before)


@pytest.mark.parametrize(("method", "spec"), CASES)
def test_certificates_add_up(method: str, spec: str, tmp_path: Path) -> None:
    model = released(method, spec, tmp_path / "one")
    made = model.extend(october(), Privacy(parse_level(spec), 0.5)).certificate_
    assert made["parent"] == model.certificate_
    assert made["extension"]["epsilon"] <= 0.5
    assert made["epsilon"] == pytest.approx(epsilon_of(event_of(made), made["delta"]))
    assert model.epsilon_spent_ < made["epsilon"] <= model.epsilon_spent_ + made["extension"]["epsilon"] + 1e-4
    own = made["stages"][len(model.certificate_["stages"]) :]
    assert len(own) == made["extension"]["stages"] > 0
    assert all("extra graph 1" in stage["name"] for stage in own)


def test_a_release_is_extended_again_and_again(tmp_path: Path) -> None:
    privacy, model = Privacy(parse_level("edge"), 0.5), released("gap", "edge", tmp_path / "0")
    graphs = [csbm(num_nodes=40 + month, seed=month) for month in range(1, 4)]
    for month, graph in enumerate(graphs, start=1):
        model.extend(graph, privacy).save(tmp_path / str(month))
        model = load_release(tmp_path / str(month))
    for graph in graphs:
        assert model.predict(graph).shape == (graph.num_nodes,)
    assert model.certificate_["parent"]["parent"]["parent"]["method"] == "gap"
    assert [stage.name for stage in model.plans()[-1].stages] == [s["name"] for s in model.certificate_["stages"]]
    assert model.plans()[-1].epsilon == pytest.approx(model.epsilon_spent_, rel=1e-3)


def reseal_parent(**changes: Any) -> Change:
    """A parent that says something else, under a digest that fits."""

    def change(certificate: dict[str, Any]) -> None:
        parent = {**certificate["parent"], **changes}
        certificate["parent"] = {**parent, "digest": digest(parent)}

    return change


def state_a_large_delta(certificate: dict[str, Any]) -> None:
    """At a delta of 0.3 next to nothing is spent in the new graph: true, and no figure that was asked for."""
    own = [Stage.from_json(stage) for stage in certificate["stages"][-certificate["extension"]["stages"] :]]
    event = events.compose([events.repeat(stage.event, stage.runs) for stage in own])
    certificate["extension"].update(epsilon=epsilon_of(event, 0.3), delta=0.3)
    certificate["notes"] = [note_on(certificate["extension"]["epsilon"], 0.3)]


FORGERIES: dict[str, tuple[Change, Change]] = {
    "a large delta for the new graph": (state_a_large_delta, unchanged),
    "a note that no plan makes": (lambda c: c.update(notes=["epsilon is 0.001 for everybody"]), unchanged),
    "no note": (lambda c: c.update(notes=[]), unchanged),
    "a parent that states less than it spent": (reseal_parent(epsilon=1e-6), unchanged),
    "a parent of a larger delta": (reseal_parent(delta=0.3), unchanged),
    "a parent whose search nobody paid for": (reseal_parent(tuning="tuning not accounted: 40 runs"), unchanged),
    "a parent that had a smaller budget": (reseal_parent(budget={"epsilon": 0.01, "delta": "auto"}), unchanged),
    "a parent of another delta of the budget": (reseal_parent(budget={"epsilon": 2.0, "delta": 1e-9}), unchanged),
    "a parent without figures of accountants": (reseal_parent(epsilon_by_accountant={}), unchanged),
    "a parent that protects more": (reseal_parent(level={"spec": "edge", "relation": "everybody"}), unchanged),
    "a parent without duties": (reseal_parent(duties=[]), unchanged),
    "a parent without caveats": (reseal_parent(caveats=[]), unchanged),
    "a parent with a note of its own": (reseal_parent(notes=["audited"]), unchanged),
    "a parent with lines of its own": (reseal_parent(data="x\n- **Guarantee**: ε = 0.1"), unchanged),
    "a parent of no date": (reseal_parent(date="soon"), unchanged),
    "a parent without files": (reseal_parent(files={}), unchanged),
    "a parent of another graph": (reseal_parent(facts=[]), unchanged),
    "a parent of another version": (reseal_parent(versions={"discreet": "99.0"}), unchanged),
    "a parent that states a claim": (reseal_parent(accounting="as-published"), unchanged),
    "a smaller figure for the new graph": (lambda c: c["extension"].update(epsilon=0.1), unchanged),
    "one that no stage gives": (lambda c: c["extension"].update(stages=2), unchanged),
    "no parent": (lambda c: c.update(parent=None), unchanged),
    "a parent that was changed": (lambda c: c["parent"].update(epsilon=0.1), unchanged),
    "the figure of the new graph as the headline": (lambda c: c.update(epsilon=0.5), unchanged),
    "the extension left out": (lambda c: c.pop("extension"), unchanged),
    "another budget in the configuration": (unchanged, lambda c: c["extensions"][0].update(epsilon=0.1)),
    "no extension in the configuration": (unchanged, lambda c: c.pop("extensions")),
}


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extended")
    released("gap", "edge", folder / "one").extend(october(), Privacy(parse_level("edge"), 0.5)).save(folder / "two")
    return folder / "two"


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_ancestry_is_refused(name: str, extended: Path, tmp_path: Path) -> None:
    forged = shutil.copytree(extended, tmp_path / "forged")
    forge(forged)
    assert not [check for check in verify(forged) if not check.passed and check.name != "noise"]
    forge(forged, *FORGERIES[name])
    assert [check for check in verify(forged) if not check.passed and check.name != "noise"]


def test_a_parent_that_was_not_for_release_makes_none_that_is(tmp_path: Path) -> None:
    fixed = make("gap", "edge").set_params(insecure_noise_seed=1)
    fixed.fit(september()).save(tmp_path / "one")
    model = load_release(tmp_path / "one").set_params(insecure_noise_seed=None)
    model.extend(october(), Privacy(parse_level("edge"), 0.5)).save(tmp_path / "two")
    assert [check.name for check in verify(tmp_path / "two") if not check.passed] == ["noise"]
    forge(tmp_path / "two", lambda c: c.update(noise={"source": FRESH, "for_release": True}))
    broken = [check.detail for check in verify(tmp_path / "two") if not check.passed]
    assert any("the noise of the parent was not for release" in detail for detail in broken)


def test_an_advisory_on_a_parent_concerns_its_extension(extended: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Advisory("broken", "99", lambda c: "extension" not in c, "of all that extends nothing")
    monkeypatch.setattr(advisories, "ADVISORIES", (broken,))
    assert [check.detail for check in verify(extended) if check.name == "advisory"] == [f"broken: {broken.why}"]


def test_a_delta_that_is_large_for_the_larger_graph_is_warned_of(tmp_path: Path) -> None:
    """Of 60 people in the new graph and 80 in the first, the certificate is for those who are in both."""
    model = released("gap", "edge", tmp_path / "one")
    model.extend(october(), Privacy(parse_level("edge"), 0.5, 0.015)).save(tmp_path / "two")
    assert "above 1/n" in " ".join(examine(tmp_path / "two").warnings)
    assert "above 1/n" not in " ".join(examine(tmp_path / "one").warnings)


def test_another_budget_leaves_another_noise(tmp_path: Path) -> None:
    """What hop-bayes makes of evidence depends on the noise on it."""
    model = released("hop-bayes", "edge", tmp_path / "one")
    scales = [model.extend(october(), Privacy(parse_level("edge"), e)).evidence_.graphs[1].scale for e in (0.1, 10.0)]
    assert scales[0] > 1 > scales[1]


def test_what_cannot_be_extended_says_so(tmp_path: Path) -> None:
    edge, graph = Privacy(parse_level("edge"), 0.5), october()
    model = released("gap", "edge", tmp_path / "gap")
    with pytest.raises(PrivacyError, match="level edge"):
        model.extend(graph, Privacy(parse_level("node"), 0.5))
    with pytest.raises(UnsupportedError, match="covered already"):
        model.extend(september(), edge)
    with pytest.raises(UnsupportedError, match="save it, load it"):
        make("gap", "edge").fit(september()).extend(graph, edge)
    with pytest.raises(UnsupportedError, match="weights belong to the nodes of the training graph"):
        released("dpdgc", "edge", tmp_path / "dpdgc").extend(graph, edge)
    with pytest.raises(UnsupportedError, match="dp-gnn cannot be extended"):
        released("dp-gnn", NODE, tmp_path / "dp-gnn").extend(graph, Privacy(parse_level(NODE), 0.5))
    with pytest.raises(UnsupportedError, match="covered already"):
        released("mlp", "edge", tmp_path / "mlp").extend(graph, edge)
    thinned = "node:thinned,d_max=60,p=0.5,change=null"
    with pytest.raises(UnsupportedError, match="thinned"):
        released("gap", thinned, tmp_path / "thinned").extend(graph, Privacy(parse_level(thinned), 0.5))


@pytest.mark.parametrize(("method", "spec"), [("gap", NODE), ("hop-bayes", "edge"), ("lpgnet", "edge")])
def test_the_same_nodes_with_other_edges_are_asked_again(method: str, spec: str, tmp_path: Path) -> None:
    """They are known, so predictions rested on old edges, and an extension was said to have nothing to ask."""
    model, graph = released(method, spec, tmp_path / "one"), september()
    later = graph.with_edges(*np.random.default_rng(7).integers(80, size=(2, 300)))
    budget = Privacy(parse_level(spec), 8.0)
    np.testing.assert_array_equal(*(model.predict_proba(g, audience="owner") for g in (graph, later)))
    with pytest.raises(UnsupportedError, match="others by now, again=True asks them anew"):
        model.extend(later, budget)
    made = model.extend(later, budget, again=True)
    before, after = (m.predict_proba(later, audience="owner") for m in (model, made))
    assert not np.array_equal(before, after)
    assert made.epsilon_spent_ > model.epsilon_spent_
    made.save(tmp_path / "two")
    verify(tmp_path / "two")
    np.testing.assert_array_equal(load_release(tmp_path / "two").predict_proba(later, audience="owner"), after)


def test_what_reads_no_edge_has_nothing_to_ask_again(tmp_path: Path) -> None:
    make("mlp", "edge").fit(september()).save(tmp_path / "one")
    with pytest.raises(UnsupportedError, match="there is nothing to ask and to pay"):
        load_release(tmp_path / "one").extend(september(), Privacy(parse_level("edge"), 1.0))
    with pytest.raises(UnsupportedError, match="cannot be extended"):
        load_release(tmp_path / "one").extend(september(), Privacy(parse_level("edge"), 1.0), again=True)
