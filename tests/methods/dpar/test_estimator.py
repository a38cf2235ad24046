"""dpar: the split of the budget, what is picked, prediction, and how certificates are labelled."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from discreet.errors import ParameterError, UncoveredReleaseError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.dpar.estimator import DPAR, NETWORK, STRUCTURE
from discreet.ops.ppr import appr_rows
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.budget import Privacy
from discreet.privacy.events.node_sampling import SampledNodesDpEvent, amplified
from discreet.privacy.levels import NodeLevel
from discreet.queries.sampled_nodes import SAMPLE
from discreet.release.load import load_release
from discreet.release.verify import verify
from tests.release.forging import forge, reseal

approx = pytest.approx


def private(epsilon=4.0, delta=1e-3, **level):
    return Privacy(NodeLevel(**level), epsilon, delta)


def quick(epsilon=4.0, **parameters):
    return DPAR(private(epsilon), **{"steps": 2, "hidden": 4, "top_k": 1, **parameters})


@pytest.fixture(scope="module")
def graph():
    return split(csbm(num_nodes=120, num_features=20, average_degree=8, seed=0), "80/20:inductive", 0)


# -------------------------------------------------------------------- plan


def test_auto_gives_all_to_gradients_unless_picks_would_survive(graph):
    for mechanism in ("em0", "em1", "gm"):
        for epsilon in (1.0, 8.0):
            plan = quick(epsilon, mechanism=mechanism).plan(graph.public)
            assert [stage.name for stage in plan.stages] == [NETWORK]
            assert plan.stages[0].query.touched.examples == 1
            assert any("noise would drown PageRank" in note for note in plan.notes)
    rich = quick(60.0, sources=1)
    assert rich._share(graph.public, NodeLevel()) == 0.5
    assert quick(60.0)._share(graph.public, NodeLevel()) == 0.0


@pytest.mark.parametrize("mechanism", ["em0", "em1", "gm"])
def test_a_given_share_is_planned_and_kappa_counts(graph, mechanism):
    plan = quick(mechanism=mechanism, structure_share=0.3, users=3, top_k=2).plan(graph.public)
    assert 3.9 < plan.epsilon <= 4.0
    structure, network = plan.stages
    assert structure.shape == (96, 95)
    assert structure.sensitivity == approx(0.01 * math.sqrt(2 * 96) if mechanism == "gm" else 0.001)
    assert network.query.touched.examples == 4
    assert network.query.touched.change == "null"


def test_more_for_picks_means_less_noise_there_and_more_in_steps(graph):
    low, high = (quick(structure_share=share).plan(graph.public) for share in (0.1, 0.9))
    assert low.stage(STRUCTURE).noise_std > 2 * high.stage(STRUCTURE).noise_std
    assert low.stage(NETWORK).noise_std < high.stage(NETWORK).noise_std / 2


def test_sampling_amplifies_the_whole_once(graph):
    whole, part = (
        quick(1.0).plan(graph.public),
        quick(1.0, node_rate=0.2).plan(graph.public),
    )
    assert [stage.name for stage in part.stages] == [SAMPLE, NETWORK]
    assert part.stages[0].event == SampledNodesDpEvent(0.2)
    assert part.stage(NETWORK).noise_std < whole.stage(NETWORK).noise_std / 1.5
    network = part.stage(NETWORK)
    inner = epsilon_of(events.repeat(network.event, network.runs), part.delta / 0.2)
    assert part.epsilon == approx(amplified(inner, 0.2), rel=1e-9)
    assert part.epsilon <= 1.0


# -------------------------------------------------------------------- fit and predict


def test_without_privacy_picks_are_the_true_neighbours(graph):
    model = DPAR(Privacy.none(), steps=150, top_k=3, mechanism="em1", clip_norm=1.0).fit(graph)
    ids = np.flatnonzero(graph.train_mask)
    exact = appr_rows(graph.adjacency[ids][:, ids], np.arange(len(ids))).toarray()
    np.fill_diagonal(exact, 0)
    for row in range(len(ids)):
        reached = np.flatnonzero(exact[row])
        best = set(ids[np.argsort(-exact[row])[:3]]) if len(reached) >= 3 else set(ids[reached])
        assert best <= set(model.picks_[row].tolist()) | {ids[0]}
    assert model.score(graph, "test", uncovered=True) > 0.5


@pytest.mark.parametrize("mechanism", ["em0", "em1", "gm"])
def test_at_a_sane_budget_picks_are_not_the_true_neighbours(graph, mechanism):
    """What the docs say of ε = 8: one pick in a few hits a neighbour, which is chance on a graph of this density."""
    model = quick(8.0, mechanism=mechanism, structure_share=0.5, steps=1, entry_clip=0.1, norm_clip=1.0)
    picks, sources = model.fit(graph).picks_[:, 0], np.flatnonzero(graph.train_mask)
    assert np.mean([graph.adjacency[s, p] > 0 for s, p in zip(sources, picks, strict=True)]) < 0.3


def outputs(model, graph):
    with torch.no_grad():
        return model.network_(torch.tensor(np.asarray(graph.features))).numpy()


def softmax(rows):
    shifted = np.exp(rows - rows.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("settings", [{"prediction": "logits"}, {"accounting": "as-published", "node_rate": 1.0}])
def test_logits_are_averaged_by_the_papers_power_iteration(graph, settings):
    model = quick(propagation_steps=2, **settings).fit(graph)
    dense, logits = graph.adjacency.toarray(), outputs(model, graph)
    degree, rows = dense.sum(axis=1), logits
    for _ in range(2):
        mean = dense @ rows / np.maximum(degree, 1)[:, None]
        rows = np.where(degree[:, None] > 0, 0.75 * mean + 0.25 * logits, logits)
    assert model.predict_proba(graph, uncovered=True) == approx(softmax(rows), abs=1e-5)
    with pytest.raises(UncoveredReleaseError, match=r"weights alone|no guarantee covers it"):
        model.predict(graph)


def test_probabilities_are_averaged_over_a_node_and_its_neighbours(graph):
    model = quick(propagation_steps=2).fit(graph)
    dense, own = graph.adjacency.toarray() + np.eye(graph.num_nodes), softmax(outputs(model, graph))
    rows = own
    for _ in range(2):
        rows = 0.75 * dense @ rows / dense.sum(axis=1, keepdims=True) + 0.25 * own
    assert model.predict_proba(graph, uncovered=True) == approx(rows, abs=1e-5)
    alone = model.set_params(propagation_steps=0).predict_proba(graph, uncovered=True)
    assert alone == approx(own, abs=1e-5)


def test_sparse_features_and_isolated_sources(graph):
    alone = Graph.from_edges([], [], sp.csr_array(np.eye(12)), np.arange(12) % 3, num_classes=3)
    alone = alone.with_masks(np.arange(9), None, np.arange(9, 12))
    for share in (0.0, 0.5):
        for rate in (None, 0.5):
            model = quick(structure_share=share, node_rate=rate).fit(alone)
            assert np.isfinite(model.predict_proba(alone, uncovered=True)).all()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"top_k": 96}, "top_k must be at most the 95 nodes"),
        ({"sources": 97}, "sources must be at most the 96 nodes"),
        ({"node_rate": 0.0}, "node_rate .*greater than or equal to"),
        ({"node_rate": 1.5}, "node_rate .*less than or equal to 1"),
        ({"structure_share": 1.0}, "structure_share"),
        ({"batch_size": 200}, "batch_size 200 is larger"),
        ({"sources": 5, "batch_size": 6}, "batch_size 6 is larger"),
        ({"users": 0}, "users"),
        ({"mechanism": "em2"}, "mechanism"),
        ({"accounting": "as-published", "sources": 60}, "at most the 9 nodes"),
    ],
)
def test_bad_input(graph, changes, sentence):
    with pytest.raises(ParameterError, match=sentence):
        quick(**changes).fit(graph)


def test_what_it_does_not_do(graph):
    with pytest.raises(UnsupportedError, match="extra graphs"):
        quick().fit(graph, extra_graphs=[graph])
    with pytest.raises(UnsupportedError, match="noise_multiplier"):
        quick(noise_multiplier=2.0).fit(graph)


def test_which_nodes_a_published_sample_holds_is_not_said(graph):
    """Rows and picks are positions in the sample, and the key is drawn afresh for every fit."""
    model = quick(8.0, accounting="as-published", node_rate=0.5).fit(graph)
    assert model.row_ids_.tolist() == list(range(48))
    assert model.picks_.max() < 48


@pytest.mark.parametrize("settings", [{"node_rate": 0.5}, {"accounting": "as-published"}])
def test_nodes_are_sampled_without_privacy_too(graph, settings):
    model = DPAR(Privacy.none(), steps=2, top_k=1, **settings).fit(graph)
    assert not model.plan_.has(SAMPLE)
    assert np.isfinite(model.predict_proba(graph, uncovered=True)).all()


# -------------------------------------------------------------------- certificates


def test_a_rigorous_release_with_all_three_stages_verifies(graph, tmp_path):
    quick(structure_share=0.4, node_rate=0.5, mechanism="em1").fit(graph).save(tmp_path / "release")
    checks = verify(tmp_path / "release")
    assert all(check.passed for check in checks), checks
    certificate = json.loads((tmp_path / "release" / "certificate.json").read_text())
    assert [stage["name"] for stage in certificate["stages"]] == [SAMPLE, STRUCTURE, NETWORK]
    # forging the rate must show: the configuration asks for another
    certificate["stages"][0]["event"]["sampling_probability"] = 0.01
    reseal(tmp_path / "release", certificate)
    assert {check.name for check in verify(tmp_path / "release") if not check.passed} == {"plan"}


@pytest.mark.parametrize("mechanism", ["em0", "em1", "gm"])
def test_as_published_is_a_claim_and_says_so_everywhere(graph, tmp_path, mechanism):
    model = quick(8.0, accounting="as-published", mechanism=mechanism, node_rate=0.5).fit(graph)
    assert model.epsilon_spent_ == 8.0
    assert min(model.plan_.spend().values()) > 100
    assert "NOT VERIFIED" in str(model.plan_)
    assert model.certificate_["accounting"] == "as-published"
    assert model.certificate_["claim"]["status"] == "claimed by the paper, not verified"
    model.save(tmp_path / "release")
    failed = [check for check in verify(tmp_path / "release") if not check.passed]
    assert [check.name for check in failed] == ["accounting"]
    assert "claimed by the paper, not verified" in failed[0].detail
    card = (tmp_path / "release" / "card.md").read_text()
    assert "**Not a guarantee.**" in card
    assert "claimed by the paper, not verified" in card
    assert "**Guarantee**" not in card
    assert load_release(tmp_path / "release").epsilon_spent_ == 8.0


def test_a_claim_that_is_relabelled_rigorous_fails(graph, tmp_path):
    quick(8.0, accounting="as-published", node_rate=0.5).fit(graph).save(tmp_path / "release")
    forge(tmp_path / "release", lambda certificate: certificate.update(accounting="rigorous"))
    assert {check.name for check in verify(tmp_path / "release") if not check.passed} == {"plan"}
