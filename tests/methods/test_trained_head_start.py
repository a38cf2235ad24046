"""A head starts from evidence where labels are few; releases of before keep their start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.graph.splits import split
from discreet.graph.synthetic import csbm
from discreet.methods.gap.estimator import GAP
from discreet.methods.progressive.lpgnet import LPGNet
from discreet.methods.progressive.progap import ProGAP
from discreet.methods.trained import StartsHead
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level
from discreet.release.rebuild import rebuild
from discreet.training.descent import TrainOptions
from discreet.training.networks import EVIDENCE

KINDS = (GAP, ProGAP, LPGNet)
QUICK: dict[str, Any] = {"hidden": 4, "epochs": 1}


def made(kind: type[StartsHead], level: str = "edge", **settings: Any) -> StartsHead:
    privacy = Privacy.none() if level == "none" else Privacy(parse_level(level), 4.0)
    return kind(privacy, random_state=0, **{**QUICK, **settings})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_rule_reads_public_counts(kind: type[StartsHead]) -> None:
    few, many = (split(csbm(size, 4), "60/20/20", 0).public for size in (60, 4000))
    assert made(kind)._starts_from_evidence(few)
    assert not made(kind)._starts_from_evidence(many)
    assert not made(kind, "none")._starts_from_evidence(few)
    assert not made(kind, start="random")._starts_from_evidence(few)
    assert made(kind, start="evidence")._starts_from_evidence(many)
    assert not made(kind, batch_size=None)._starts_from_evidence(few)


def test_rows_of_another_width_are_no_evidence() -> None:
    few = split(csbm(60, 4), "60/20/20", 0).public
    assert not made(GAP, width=3)._starts_from_evidence(few)


def test_the_first_weights_add_up_what_a_node_and_its_neighbours_say() -> None:
    graph = split(csbm(60, 4), "60/20/20", 0)
    fitted = made(GAP, learning_rate=1e-9, weight_decay=0.0).fit(graph)
    assert isinstance(fitted, GAP)
    weights = fitted.head_.linear.weight.detach().numpy()
    assert np.allclose(weights, np.concatenate([np.eye(2), EVIDENCE * np.eye(2)]), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_release_predicts_what_the_fit_did_and_one_of_before_keeps_its_start(
    kind: type[StartsHead], tmp_path: Path
) -> None:
    from discreet.release.load import load_release

    graph = split(csbm(60, 4), "60/20/20", 0)
    fitted = made(kind).fit(graph)
    fitted.save(tmp_path / "release")
    assert np.array_equal(load_release(tmp_path / "release").predict_proba(graph), fitted.predict_proba(graph))
    config = json.loads((tmp_path / "release" / "config.json").read_text())
    del config["params"]["start"]
    assert rebuild(config).get_params()["start"] == "random"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("size", "stored"), [(60, "evidence"), (2000, "random")])
def test_a_release_keeps_what_was_decided_whatever_a_later_version_would_decide(
    kind: type[StartsHead], size: int, stored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.release.load import load_release

    graph = split(csbm(size, 4), "60/20/20", 0)
    fitted = made(kind, batch_size=16 if size == 60 else 8).fit(graph)
    expected = fitted.predict_proba(graph)
    fitted.save(tmp_path / "release")
    config = json.loads((tmp_path / "release" / "config.json").read_text())
    assert (fitted.start, config["params"]["start"]) == ("auto", stored)
    monkeypatch.setattr(TrainOptions, "has_few", lambda self, rows: stored == "random")
    assert fitted._starts_from_evidence(fitted.public_) == (stored == "random")  # the rule decides otherwise now
    loaded = load_release(tmp_path / "release")
    assert np.array_equal(loaded.predict_proba(graph), expected)
    loaded.save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "config.json").read_text()) == config


def test_what_is_asked_for_is_stored_as_it_is(tmp_path: Path) -> None:
    graph = split(csbm(60, 4), "60/20/20", 0)
    made(GAP, start="random").fit(graph).save(tmp_path / "release")
    assert json.loads((tmp_path / "release" / "config.json").read_text())["params"]["start"] == "random"
