"""``preset="paper"``: a paper's settings for what is not given, with scikit-learn's manners."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.synthetic import csbm
from discreet.methods.base import NodeClassifier
from discreet.methods.dp_gnn.estimator import DPGNN
from discreet.methods.dpar.estimator import DPAR
from discreet.methods.gcon.objective import GCON
from discreet.methods.parameters import validate
from discreet.methods.registry import list_methods, load_method
from discreet.ops.restart import own_hop, transition
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NoPrivacy, parse_level
from discreet.release.load import load_release

WITH_PRESET = [name for name, declared in list_methods().items() if "paper" in declared.presets]
QUICK: dict[str, Any] = {"epochs": 2, "embedding_steps": 2, "patience": 2, "sources": 20, "batch_size": None}
FEW_STEPS = ("dp-gnn", "dpar", "dpdgc")  # elsewhere `steps` is something else


SPECS = {"neighbor": "neighbor:2,max_degree=2"}  # of kinds of level that are no level by themselves


def first_level(name: str) -> str:
    kind = list_methods()[name].levels[0]
    return SPECS.get(kind, kind)


def privacy(spec: str) -> Privacy:
    return Privacy(parse_level(spec), float("inf") if spec == "none" else 8.0)


def make(name: str, spec: str, **given: Any) -> NodeClassifier:
    kind = load_method(list_methods()[name])
    return kind(privacy(spec), preset="paper", **given)


def test_methods_that_bear_a_papers_name_have_the_preset() -> None:
    of_papers = {"dpar", "dp-gnn", "gcon", "dpdgc", "lpgnn", "simgat"}
    competitors = {"gap", "progap", "lpgnet", "dpgcn", "dp-sage"}
    assert of_papers | competitors == set(WITH_PRESET)


@pytest.mark.parametrize("name", WITH_PRESET)
def test_preset_decides_what_is_not_given(name: str) -> None:
    declared = list_methods()[name]
    kind, settings = load_method(declared), declared.presets["paper"].settings
    made = make(name, first_level(name))
    assert {key: getattr(made, key) for key in settings} == dict(settings)
    validate(kind, name, made.get_params(deep=False))
    defaults = kind().get_params(deep=False)
    for key, default in defaults.items():
        if key in settings:  # even the default of the other preset counts, where it is given
            assert make(name, first_level(name), **{key: default}).get_params()[key] == default


@pytest.mark.parametrize("name", WITH_PRESET)
def test_clones_and_set_params_keep_what_was_given(name: str) -> None:
    declared = list_methods()[name]
    key, value = next(iter(declared.presets["paper"].settings.items()))
    default = load_method(declared)().get_params()[key]
    made = make(name, first_level(name)).set_params(**{key: default})
    assert clone(made).get_params() == made.get_params()
    assert made.get_params()[key] == default
    back = clone(made).set_params(preset="discreet")
    assert back.get_params() == load_method(declared)(made.privacy).get_params()
    assert back.set_params(preset="paper").get_params()[key] == value
    assert back.set_params(preset="paper", **{key: default}).get_params()[key] == default


def test_a_method_without_the_preset_says_so() -> None:
    with pytest.raises(UnsupportedError, match="mlp has no preset 'paper'"):
        make("mlp", "edge").plan_for(csbm(60, 4))
    with pytest.raises(UnsupportedError, match="dpar has no preset 'papers'"):
        DPAR(privacy("node"), preset="papers").plan_for(csbm(60, 4))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WITH_PRESET)
def test_paper_presets_fit_and_say_what_differs(name: str, tmp_path: Any) -> None:
    declared, graph = list_methods()[name], graph_of(60)
    spec = {"edge": "edge", "node": "node:owned,max_degree=2", "local": "local"}[
        next(kind for kind in ("edge", "node", "local") if kind in declared.levels)
    ]
    made = make(name, spec)
    quick = {key: value for key, value in QUICK.items() if key in made.get_params()}
    quick |= {"steps": 3} if name in FEW_STEPS else {}
    quick |= {"width": 4} if name == "gcon" else {}
    quick |= {"feature_range": (-8.0, 8.0), "outside": "clip"} if spec == "local" else {}
    made.set_params(**quick, insecure_noise_seed=1).fit(graph)
    notes = " ".join(made.plan_.notes)
    assert f"preset paper: settings of {declared.paper}" in notes
    preset = declared.presets["paper"]
    here = [each for each in (*preset.sound, *preset.differs) if not each.levels or spec.startswith(each.levels)]
    said = [each for each in here if quick.keys().isdisjoint(each.about)]
    assert notes.count("differs from the paper") >= len(said) > 0
    loaded = load_release(made.save(tmp_path / "release"))
    assert loaded.get_params()["preset"] == "paper"
    assert {**loaded.get_params(), "privacy": None} == {**made.get_params(), "privacy": None}


def test_a_level_that_is_not_the_papers_is_noted() -> None:
    facts = graph_of(60).public
    assert any("figures are for level" in note for note in make("dpdgc", "node:owned,max_degree=2").plan(facts).notes)
    theirs = make("dpdgc", "node:owned,max_degree=100,change=replace").plan(facts)
    assert not any("figures are for level" in note for note in theirs.notes)


def test_noise_as_published_does_not_say_that_ours_was_added() -> None:
    facts, sound = graph_of(60).public, list_methods()["dpdgc"].presets["paper"].sound
    notes = " ".join(make("dpdgc", "edge").plan(facts).notes)
    assert "under our accounting" in notes
    edge = [difference.text for difference in sound if difference.levels == ("edge",)]
    assert all(text in notes for text in edge)
    notes = " ".join(make("dpdgc", "edge").set_params(accounting="as-published").plan(facts).notes)
    assert "with the noise that it claims to suffice" in notes
    assert not any(text in notes for text in edge)


@pytest.mark.parametrize("name", WITH_PRESET)
def test_a_difference_is_said_while_it_is_true(name: str) -> None:
    """A line is about parameters that there are, and is not said where one of them has another value."""
    declared = list_methods()[name]
    preset, kind = declared.presets["paper"], load_method(declared)
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    for difference in (*preset.sound, *preset.differs):
        assert set(difference.about) <= defaults.keys()
    facts = graph_of(60).public
    made = DPGNN(privacy("node:owned,max_degree=7"), preset="paper")
    assert any("every step takes all" in note for note in made.plan(facts).notes)
    assert not any("every step takes all" in note for note in made.set_params(batch_size=20).plan(facts).notes)


def test_dpar_reads_pagerank_in_its_paper_preset_alone() -> None:
    facts = graph_of(200).public
    ours, theirs = DPAR(privacy("node")).plan(facts), DPAR(privacy("node"), preset="paper").plan(facts)
    assert not ours.has("structure")
    assert any("this is not DPAR" in note for note in ours.notes)
    assert theirs.has("structure")
    assert not any("this is not DPAR" in note for note in theirs.notes)


def test_plain_scores_are_equation_16() -> None:
    graph = graph_of(60)
    made = GCON(privacy("edge"), preset="paper", epochs=2, width=4, insecure_noise_seed=1).fit(graph)
    part = NoPrivacy().split(graph)[0]
    scores = own_hop(transition(part), made.encoder_.embed(part), 0.1, [2]) @ made.map_
    assert np.array_equal(made.predict(graph, audience="owner"), scores.argmax(axis=1))
    relabelled = graph.with_labels((graph.labels + 1) % graph.num_classes)
    assert np.array_equal(made.predict_proba(graph, uncovered=True), made.predict_proba(relabelled, uncovered=True))


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ParameterError, match="multiple of heads"):
        DPGNN(privacy("node"), convolution="gat", heads=3).plan(graph_of(60).public)


def graph_of(nodes: int) -> Any:
    from discreet.graph.splits import split

    return split(csbm(nodes, 6), "60/20/20", 0)
