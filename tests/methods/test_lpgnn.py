"""lpgnn: what it claims, what it reads, and that it learns."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from discreet import local
from discreet.cli import main
from discreet.errors import GraphError, ParameterError, UncoveredReleaseError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.attention import Attention, Edges
from discreet.methods.lpgnn import LPGNN
from discreet.methods.noisy_labels import NoisyLabelLoss, reported_loss
from discreet.methods.release import load_release
from discreet.ops.denoising import Denoised, Remembering, denoise, kprop_operators
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import LocalLevel


def graph(n: int = 400, width: int = 30, seed: int = 0) -> Graph:
    """Two classes, neighbours alike, features in {0, 1} that say a little of the class."""
    made = csbm(num_nodes=n, num_features=width, average_degree=12.0, phi=0.7, epsilon=9.0, seed=seed)
    return split(made.with_features(sp.csr_array((np.asarray(made.features) > 0).astype(np.float32))), "50/25/25", seed)


GRAPH = graph()


def model(epsilon: float = 4.0, level: LocalLevel | None = None, **options: Any) -> LPGNN:
    settings = {"feature_range": (0.0, 1.0), "epochs": 40, "x_steps": 4, **options}
    return LPGNN(Privacy(level or LocalLevel(), epsilon), insecure_noise_seed=1, **settings)


@pytest.mark.chance
@pytest.mark.parametrize("kind", ["sage", "gcn", "gat"])
@pytest.mark.parametrize("loss", ["drop", "forward", "plain"])
def test_it_learns_from_reports(kind: str, loss: str) -> None:
    fitted = model(model=kind, loss=loss).fit(GRAPH)
    assert fitted.score(GRAPH, "test") > 0.75


@pytest.mark.parametrize("features", ["random", "degree", "ones", "topology"])
def test_baselines_read_no_feature(features: str) -> None:
    """The label has the whole budget, and other features give the very same release."""
    fitted = model(features=features, feature_range=None).fit(GRAPH)
    assert [stage.name for stage in fitted.plan_.stages] == ["labels"]
    assert fitted.plan_.stages[0].parameters["epsilon"] == 4.0
    assert "features are not read at all" in fitted.plan_.notes
    other = model(features=features, feature_range=None).fit(GRAPH.with_features(1 - GRAPH.features.toarray()))
    assert np.array_equal(fitted.predict_proba(GRAPH), other.predict_proba(GRAPH))


@pytest.mark.chance
@pytest.mark.parametrize("features", ["random", "topology"])
def test_baselines_learn_where_nodes_differ(features: str) -> None:
    assert model(features=features, feature_range=None).fit(GRAPH).score(GRAPH, "test") > 0.75


@pytest.mark.parametrize("mechanism", ["multi-bit", "one-bit", "laplace", "gaussian"])
def test_every_mechanism(mechanism: str) -> None:
    delta = 1e-5 if mechanism == "gaussian" else "auto"
    fitted = LPGNN(
        Privacy(LocalLevel(), 4.0, delta), feature_range=(0.0, 1.0), mechanism=mechanism, epochs=5, x_steps=2
    ).fit(GRAPH)
    assert fitted.epsilon_spent_ <= 4.0
    assert fitted.epsilon_spent_ == pytest.approx(4.0, abs=1e-3)


def test_the_range_is_demanded_where_features_are_private() -> None:
    with pytest.raises(ParameterError, match="feature_range must be given"):
        model(feature_range=None).fit(GRAPH)
    model(level=LocalLevel("labels"), feature_range=None, epochs=1).fit(GRAPH)
    wide = GRAPH.with_features(3 * np.ones((GRAPH.num_nodes, 30)))
    with pytest.raises(ParameterError, match="feature 0 of node 0 is 3, outside"):
        model().fit(wide)
    model(outside="clip", epochs=1).fit(wide)


def test_gaussian_needs_a_delta() -> None:
    with pytest.raises(ParameterError, match="delta"):
        model(mechanism="gaussian").plan(GRAPH.public)


@pytest.mark.parametrize(("name", "shown"), [("epsilon_y", "LABELS"), ("epsilon_x", "FEATURES")])
def test_an_infinite_epsilon_is_said_loudly_and_claims_nothing(name: str, shown: str, tmp_path: Path) -> None:
    fitted = model(2.0, **{name: math.inf}, epochs=1).fit(GRAPH)
    certificate = fitted.certificate_
    words = f"{shown} ARE NOT PROTECTED"
    assert words in str(fitted.plan_)
    assert words in certificate["level"]["relation"]
    assert any(words in note for note in certificate["notes"])
    assert f"ALL {shown}" in certificate["public"]
    assert certificate["level"]["spec"] == ("local:features" if name == "epsilon_y" else "local:labels")
    assert [stage["name"] for stage in certificate["stages"]] == ["features" if name == "epsilon_y" else "labels"]
    fitted.save(str(tmp_path / "release"))
    assert words in (tmp_path / "release" / "card.md").read_text()
    loaded = load_release(tmp_path / "release")
    assert np.array_equal(loaded.predict_proba(GRAPH), fitted.predict_proba(GRAPH))
    assert getattr(loaded, name) == math.inf


def test_topology_is_said_to_be_public() -> None:
    fitted = model(epochs=1).fit(GRAPH)
    assert "all edges" in fitted.certificate_["public"]
    assert any("nothing is promised about edges" in note for note in fitted.certificate_["notes"])
    assert fitted.certificate_["trust"].startswith("none")


def test_reports_from_devices() -> None:
    """Records encoded one by one by their owners train the same method; the server never sees a record."""
    dense = GRAPH.features.toarray()
    reports = np.array([local.encode(row, feature_range=(0, 1), epsilon=2.0) for row in dense], dtype=np.float32)
    told = [local.encode_label(int(label), num_classes=2, epsilon=2.0) for label in GRAPH.labels]
    received = GRAPH.with_features(sp.csr_array(reports)).with_labels(told)
    fitted = model(reports="received").fit(received)
    assert any("made by their owners" in note for note in fitted.plan_.notes)
    assert np.mean(fitted.predict(received)[GRAPH.test_mask] == GRAPH.labels[GRAPH.test_mask]) > 0.7
    with pytest.raises(GraphError, match="cannot have come from"):
        model(reports="received").fit(GRAPH)


def test_predictions_come_from_reports_alone() -> None:
    fitted = model(epochs=5).fit(GRAPH)
    other = GRAPH.with_features(1 - GRAPH.features.toarray())
    assert np.array_equal(fitted.predict_proba(GRAPH), fitted.predict_proba(other))
    elsewhere = graph(seed=1)
    with pytest.raises(UncoveredReleaseError, match="extra_graphs"):
        fitted.predict(elsewhere)
    assert fitted.predict(elsewhere, public=True).shape == (400,)


def test_extra_graphs_report_too() -> None:
    elsewhere = graph(n=200, seed=1)
    fitted = model(epochs=5)
    fitted.fit(GRAPH, extra_graphs=[elsewhere])
    names = [stage.name for stage in fitted.plan_.stages]
    assert names == ["features", "extra graph 1 features", "labels"]
    assert fitted.epsilon_spent_ == pytest.approx(4.0)
    assert fitted.predict(elsewhere).shape == (200,)
    with pytest.raises(UnsupportedError, match="topology"):
        model(features="topology", feature_range=None).fit(GRAPH, extra_graphs=[elsewhere])


def test_an_unlabelled_training_node_reports_too() -> None:
    """Whether there is a label is as private as the label."""
    labels = GRAPH.labels.copy()
    labels[np.flatnonzero(GRAPH.train_mask)[:50]] = -1
    fitted = model(epochs=1).fit(GRAPH.with_labels(labels))
    assert fitted.plan_.stages[1].shape == (GRAPH.num_nodes,)


def test_splits_by_label_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--method", "lpgnn", "--set", "feature_range=[-10,10]", "--set", "epochs=1", "--epsilon", "2"]
    assert main(["train", "--level", "local", "--split", "20/100/100", *options]) == 2
    assert "labels" in capsys.readouterr().err
    assert main(["train", "--level", "local:features", "--split", "20/100/100", *options]) == 0


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--method", "lpgnn", "--level", "local", "--epsilon", "2", "--set", "epochs=1", "--json"]
    assert main(["train", *options]) == 2
    assert "feature_range must be given" in capsys.readouterr().err
    settings = ["--set", "feature_range=[-10, 10]", "--set", "epsilon_y=inf"]
    assert main(["train", *options, *settings]) == 0
    assert json.loads(capsys.readouterr().out)["level"] == "local:features"


# ------------------------------------------------------------------------ parts


def test_lazy_and_dense_denoising_multiply_alike() -> None:
    operators = kprop_operators(GRAPH, 3, "symmetric")
    weight = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
    dense = denoise(GRAPH.features, operators)
    lazy = denoise(GRAPH.features, operators, lazy=True)
    assert isinstance(dense, torch.Tensor)
    assert isinstance(lazy, Denoised)
    power = np.linalg.matrix_power(operators[0].csr.to_dense().numpy(), 3) @ GRAPH.features.toarray()
    expected = power / np.linalg.norm(power, axis=1, keepdims=True)
    assert np.allclose(dense.numpy(), expected, atol=1e-5)
    exact, estimated = (dense @ weight).numpy(), (lazy @ weight).numpy()
    cosine = (exact * estimated).sum(axis=1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(estimated, axis=1)
    assert np.allclose(cosine, 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(exact, axis=1), np.linalg.norm(estimated, axis=1), rtol=0.5)


def test_directed_graphs_are_averaged_by_rows() -> None:
    directed = GRAPH.as_directed()
    assert np.allclose(kprop_operators(directed, 1, "symmetric")[0].csr.to_dense().sum(dim=1).max(), 1)


def test_forward_correction_prefers_the_clean_class() -> None:
    """Under the true confusion, the loss over many reports is least at the clean class, not at the frequencies."""
    confusion = torch.tensor(local.label_confusion(num_classes=3, epsilon=1.0), dtype=torch.float32)
    reported = torch.tensor(local.encode_labels(np.zeros(6000, int), num_classes=3, epsilon=1.0))
    rows = torch.arange(6000)
    sure = torch.tensor([[8.0, 0.0, 0.0]]).expand(6000, 3)
    flat = torch.log(confusion[0]).expand(6000, 3)
    forward = NoisyLabelLoss("forward", reported, rows, confusion)
    plain = NoisyLabelLoss("plain", reported, rows, confusion)
    assert forward(sure) < forward(flat)
    assert plain(flat) < plain(sure)
    assert reported_loss(sure, reported, rows, confusion) == pytest.approx(float(forward(sure)), abs=1e-5)


def test_drop_compares_averages() -> None:
    """One hop on a path 0–1–2 with training ends: the middle's target is the mean of the two reports."""
    path = Graph.from_edges([0, 1], [1, 2], np.ones((3, 1)), [0, 0, 1], directed=False)
    operators = kprop_operators(path, 1, "mean")
    loss = NoisyLabelLoss("drop", torch.tensor([0, 0, 1]), torch.tensor([0, 2]), torch.eye(2), operators)
    # No training node neighbours another: each keeps its own report.
    assert torch.allclose(loss._target, torch.eye(2))
    loss = NoisyLabelLoss("drop", torch.tensor([0, 0, 1]), torch.arange(3), torch.eye(2), operators)
    assert torch.allclose(loss._target, torch.tensor([[1.0, 0], [0.5, 0.5], [1.0, 0]]))


def test_attention_weights_sum_to_one_and_follow_edges() -> None:
    generator = torch.Generator().manual_seed(0)
    small = graph(n=30)
    edges = Edges.of(small, "cpu")
    network = Attention([30, 8, 2], "selu", 0.0, 4, generator)
    layer = network.layers[0]
    x = torch.tensor(small.features.toarray())
    weights = layer._weights(layer.linear(x).view(layer._shape), edges)
    total = torch.zeros(30, 4).index_add(0, edges.receiver, weights)
    assert torch.allclose(total, torch.ones(30, 4), atol=1e-5)
    # A change at one node reaches no further than two hops.
    with torch.no_grad():
        before = network(x, edges)
        x[0] += 1
        moved = ((network(x, edges) - before).abs() > 1e-7).any(dim=1).numpy()
    reach = small.adjacency + sp.eye_array(30)
    assert not moved[((reach @ reach)[:, [0]].toarray() == 0).ravel()].any()


def test_remembered_products_are_those_of_the_present_weights() -> None:
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    weight = torch.nn.Parameter(torch.ones(3, 2))
    remembering = Remembering(rows)
    first = remembering @ weight
    assert first.requires_grad
    with torch.no_grad():
        assert torch.equal(remembering @ weight, rows @ weight)
        weight.mul_(2)
        assert torch.equal(remembering @ weight, rows @ weight)
    assert (remembering @ weight).requires_grad
