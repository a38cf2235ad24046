"""Figures on private labels: released with noise, certified alone and together with the release."""

from __future__ import annotations

import json

import numpy as np
import pytest

from discreet.errors import ParameterError, PrivacyError, UncoveredReleaseError, UnsupportedError
from discreet.graph import csbm, split
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.methods.metrics import figures_of_table, roc_auc_of_bins
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.composition import composed_with, event_of
from discreet.queries.confusion import ScoreTable
from discreet.release.certified_figures import as_file, certified_figures, plan_figures
from discreet.release.evaluate import evaluate
from tests.contracts.cases import make

NULL, REPLACE = "node:owned,max_degree=3,change=null", "node:owned,max_degree=3,change=replace"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return split(csbm(num_nodes=200, seed=0), "50/10/40", 0)


@pytest.fixture(scope="module")
def model(graph: Graph) -> NodeClassifier:
    return make("dp-mlp", NULL, batch_size=None).fit(graph)


def test_without_much_noise_they_are_the_figures(model: NodeClassifier, graph: Graph) -> None:
    found = certified_figures(model, graph, 40.0, ids="test", insecure_noise_seed=0)
    plain = evaluate(model, graph, "test")
    assert np.allclose(found["confusion"], plain["confusion"]["test"], atol=1)
    for name in ("accuracy", "balanced-accuracy", "macro-f1"):
        assert found[name.replace("-", "_")] == pytest.approx(plain[name]["test"], abs=0.03)


def test_fine_bins_give_the_area_under_the_curve(model: NodeClassifier, graph: Graph) -> None:
    level = model.checked_privacy().level
    (table,) = ScoreTable(level, model.covers, 2, "test", 10_000).answer(level.split(graph)[1], model=model)
    assert roc_auc_of_bins(table[1], table[0]) == pytest.approx(
        evaluate(model, graph, "test")["roc-auc"]["test"], abs=0.01
    )


def test_the_certificate_is_of_the_figures_alone_and_with_the_release(model: NodeClassifier, graph: Graph) -> None:
    found = certified_figures(model, graph, 1.0)
    certificate = found["certificate"]
    assert certificate["epsilon"] <= 1.0
    assert epsilon_of(event_of(certificate), certificate["delta"]) == certificate["epsilon"]
    together = found["composed"]
    assert max(certificate["epsilon"], model.epsilon_spent_) < together["epsilon"]
    assert together["epsilon"] <= certificate["epsilon"] + model.epsilon_spent_
    assert [stage["name"] for stage in certificate["stages"]] == ["confusion", "scores"]
    assert json.loads(as_file(found))["digest"]


def test_noise_is_fresh_unless_a_test_fixes_it(model: NodeClassifier, graph: Graph) -> None:
    one, two, three, four = (certified_figures(model, graph, 1.0, insecure_noise_seed=s) for s in (None, None, 1, 1))
    assert one["confusion"] != two["confusion"]
    assert three["confusion"] == four["confusion"]
    assert one["certificate"]["noise"]["for_release"]
    assert not three["certificate"]["noise"]["for_release"]


@pytest.mark.parametrize(("spec", "table"), [(NULL, 1.0), (REPLACE, 2**0.5), ("neighbor:2,max_degree=3", 2**0.5)])
def test_sensitivities(spec: str, table: float, graph: Graph) -> None:
    plan = plan_figures(make("dp-mlp", spec, batch_size=None).fit(graph), graph, 1.0)
    assert [stage.sensitivity for stage in plan.stages] == [table, table]  # two classes: one is scored


def test_what_has_no_bound_is_refused(graph: Graph) -> None:
    with pytest.raises(UnsupportedError, match="its own record"):
        certified_figures(make("dp-gnn", NULL, batch_size=None).fit(graph), graph, 1.0)
    with pytest.raises(UnsupportedError, match="its own record"):
        certified_figures(make("gcon-ssp", "edge").fit(graph), graph, 1.0)
    hops = make("gap", NULL).fit(graph)
    with pytest.raises(UncoveredReleaseError, match="edges"):
        certified_figures(hops, csbm(num_nodes=50, seed=1), 1.0, ids="all")
    with pytest.raises(ParameterError, match="bins"):
        certified_figures(hops, graph, 1.0, bins=1)


def test_a_model_of_own_records_is_measured_on_other_people(model: NodeClassifier) -> None:
    found = certified_figures(model, csbm(num_nodes=100, seed=1), 100.0, ids="all")
    assert np.sum(found["confusion"]) == pytest.approx(100, abs=3)


def test_certificates_of_two_levels_do_not_compose(model: NodeClassifier, graph: Graph) -> None:
    other = make("dp-mlp", REPLACE, batch_size=None).fit(graph)
    with pytest.raises(PrivacyError, match="different things"):
        composed_with(model.certificate_, other.certificate_)
    claimed = {**model.certificate_, "accounting": "as-published"}
    with pytest.raises(PrivacyError, match="claim"):
        composed_with(claimed, model.certificate_)


def test_tables_of_noise_alone_have_no_figures() -> None:
    found = figures_of_table(np.full((2, 2), -3.0))
    assert found["accuracy"] is None
    assert found["recall"] == [None, None]
    assert roc_auc_of_bins(np.array([-1.0, 0.5]), np.array([1.0, 2.0])) is None
    assert roc_auc_of_bins(np.array([0.0, 2.0]), np.array([3.0, 0.0])) == 1.0
