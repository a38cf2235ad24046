"""Edges with weights: who reads them and how, who refuses them and why, and that neighbours in weight are covered."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph, with_weights
from discreet.errors import ParameterError, UnsupportedError
from discreet.graph import csbm, split
from discreet.graph.graph import Graph
from discreet.methods.recommend import recommend
from discreet.methods.registry import list_methods
from discreet.ops.sparse import hop_matrix, neighbour_sums
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from discreet.queries import sums
from tests.contracts.cases import make

READ_WEIGHTS = {"mlp", "dp-mlp", "gap", "progap", "hop-bayes", "dpdgc"}
NODE = "node:owned,max_degree=3,change=replace"
PROMISED = "node:promised,max_degree=12,change=null"


def graph_of(weight: float | None, seed: int = 0) -> Graph:
    """A graph whose edges all have one weight, or none."""
    graph = csbm(num_nodes=80, seed=seed)
    if weight is not None:
        graph = graph.with_edges(*graph.edges(), np.full(graph.num_entries, weight))
    return split(graph, "60/20/20", 0)


@pytest.mark.parametrize("method", sorted(list_methods()))
def test_a_method_reads_weights_or_refuses_them_by_name(method: str) -> None:
    levels = list_methods()[method].levels
    spec = next(s for kind, s in (("edge", "edge"), ("node", NODE), ("none", "none"), ("local", "local"))
                if kind in levels)  # fmt: skip
    estimator = make(method, spec)
    if method in READ_WEIGHTS:
        assert estimator.plan(graph_of(0.5).public).stages == estimator.plan(graph_of(None).public).stages
        return
    with pytest.raises(UnsupportedError, match=f"^{method} does not take edges with weights: .*weights=ignore"):
        estimator.plan(graph_of(0.5).public)


@pytest.mark.parametrize("aggregation", ["mean", "symmetric"])
def test_what_divides_by_degrees_is_refused(aggregation: str) -> None:
    with pytest.raises(UnsupportedError, match="divides by degrees"):
        make("gap", "edge", aggregation=aggregation).plan(graph_of(0.5).public)
    with pytest.raises(UnsupportedError, match=f"{aggregation} aggregation does not take edges with weights"):
        hop_matrix(graph_of(0.5), aggregation)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["gap", "progap", "hop-bayes", "dpdgc"])
def test_weights_scale_what_edges_carry(method: str) -> None:
    """Whole edges are what edges without weights are, and edges of weight nothing are none."""
    nothing = graph_of(None).with_edges([], [])

    def predicted(graph: Graph) -> np.ndarray:
        return make(method, "none", epochs=3).fit(graph).predict_proba(graph)

    assert np.array_equal(predicted(graph_of(1.0)), predicted(graph_of(None)))
    assert np.array_equal(predicted(graph_of(0.0)), predicted(nothing))
    assert not np.allclose(predicted(graph_of(0.3)), predicted(graph_of(1.0)), atol=1e-4)


def test_own_predictions_of_hop_bayes_read_weights() -> None:
    model = make("hop-bayes", "edge", predictions="own").fit(graph_of(1.0))
    faint = model.predict_proba(graph_of(1e-6), audience="owner")
    assert np.allclose(faint, model.predict_proba(graph_of(1.0).with_edges([], []), audience="owner"), atol=1e-3)


def test_own_predictions_of_mlp_read_weights() -> None:
    """The neighbours of a node speak as their edges weigh: of two, one whose edge weighs nothing is not heard."""
    graph = graph_of(1.0)
    source, target = graph.edges()
    heard = np.where((source + target) % 2 == 0, 1.0, 0.0)
    model = make("mlp", "edge", inference="own-hop").fit(graph)
    weighed, cut = graph.with_edges(source, target, heard), graph.with_edges(source[heard > 0], target[heard > 0])
    found = (model.predict_proba(each, audience="owner", public=True) for each in (weighed, _whole(cut), graph))
    some, few, all_of_them = found
    assert np.allclose(some, few, atol=1e-6)
    assert not np.allclose(some, all_of_them, atol=1e-3)


def _whole(graph: Graph) -> Graph:
    return graph.with_edges(*graph.edges(), np.ones(graph.num_entries))


@pytest.mark.parametrize(
    ("method", "spec"),
    [("gap", "edge"), ("gap", PROMISED), ("progap", "edge"), ("dpdgc", "edge"), ("dpdgc", NODE)]
    + [("hop-bayes", spec) for spec in ("edge", "edge:directed", NODE, PROMISED)],
)
def test_neighbours_in_weight_are_within_the_bounds(method: str, spec: str) -> None:
    directed = spec == "edge:directed"

    def graphs(rng: np.random.Generator) -> Graph:
        return with_weights(small_graph(rng, directed=directed), rng)

    report = replay_audit(make(method, spec), graphs, pairs=8)
    assert report.passed, report.violations[:2]
    assert report.tightness > 0.3


def test_weights_beyond_one_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = neighbour_sums
    monkeypatch.setattr(sums, "neighbour_sums", lambda *given: 2 * real(*given))

    def graphs(rng: np.random.Generator) -> Graph:
        return with_weights(small_graph(rng), rng)

    assert not replay_audit(make("gap", "edge"), graphs, pairs=12).passed


def test_certificate_and_plan_say_what_a_weight_is() -> None:
    model = make("gap", "edge").fit(graph_of(0.5))
    assert "moving the weight of an edge" in str(model.plan_)
    assert "another weight is another edge" in model.certificate_["level"]["relation"]
    assert model.certificate_["facts"][0]["weighted"] is True
    plain = make("gap", "edge").fit(graph_of(None))
    assert "weight of an edge" not in str(plain.plan_)
    assert "weight" not in plain.certificate_["level"]["relation"]


def test_a_model_is_asked_about_edges_of_its_own_kind() -> None:
    model = make("gap", "edge").fit(graph_of(0.5))
    with pytest.raises(ParameterError, match="fitted on edges with weights"):
        model.predict(graph_of(None))
    with pytest.raises(ParameterError, match="fitted on edges without weights"):
        make("gap", "edge").fit(graph_of(None)).predict(graph_of(0.5))


def test_auto_names_a_method_that_reads_weights() -> None:
    found = recommend(graph_of(0.5).public, Privacy(EdgeLevel(), 1.0))
    assert found.chosen.method in READ_WEIGHTS
    remarks = {candidate.method: candidate.remark for candidate in found.candidates}
    assert "does not take edges with weights" in remarks["lpgnet"]
