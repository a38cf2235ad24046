"""lpgnn: what it claims, what it reads, and that it learns."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from discreet import local
from discreet.cli import main
from discreet.errors import GraphError, ParameterError, PrivateDataError, UncoveredReleaseError, UnsupportedError
from discreet.methods.lpgnn.estimator import LPGNN
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import LocalLevel
from discreet.release.load import load_release
from tests.methods.lpgnn.graphs import graph

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
    assert fitted.plan_.stages[0].query.epsilon == 4.0
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
    with pytest.raises(ParameterError, match="a feature lies outside"):
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
    classes = [local.encode_label(int(label), num_classes=2, epsilon=2.0) for label in GRAPH.labels]
    received = GRAPH.with_features(sp.csr_array(reports)).with_labels(classes)
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


# ------------------------------------------------------------------------ what slips past the encoder


class PredictsFromRecords(LPGNN):
    def _probabilities(self, part: Any) -> np.ndarray:
        return self._predicted(part, self.units_.expected_reports(part.features))


class LearnsFromRecords(LPGNN):
    def _rows(self, part: Any, name: str, curator: Any) -> Any:
        super()._rows(part, name, curator)
        return part.features


class StopsByLabels(LPGNN):
    def _label_reports(self, part: Any, curator: Any) -> Any:
        reports = super()._label_reports(part, curator)
        reports.reported[reports.train] = part.labels[reports.train]
        return reports


@pytest.mark.parametrize("fault", [PredictsFromRecords, LearnsFromRecords, StopsByLabels])
def test_records_do_not_slip_past_the_encoder(fault: type[LPGNN]) -> None:
    """The method holds no record: reading one raises, and only what is public by the level can be read."""
    with pytest.raises(PrivateDataError):
        fault(Privacy(LocalLevel(), 2.0), feature_range=(0.0, 1.0), epochs=1, x_steps=1).fit(GRAPH).predict(GRAPH)
