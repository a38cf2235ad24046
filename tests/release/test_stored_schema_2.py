"""Releases of schema 2 of the methods that came with it: each loads, predicts what it predicted, and plans alike.

``stored_schema_2`` holds them, fitted on the graph of ``stored``; ``probabilities.npz`` is what each predicted when it
was made. ``dpdgc-neighbor`` has ``embedding: null``, as releases had before ``auto``; ``gcon`` was made when nobody had
bounded what rounding does to it, and says so.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.files import from_json
from discreet.graph import load_npz
from discreet.methods.base import NodeClassifier
from discreet.privacy.plan import Stage
from discreet.release.load import load_release
from discreet.release.verify import verify

HERE = Path(__file__).parent
STORED = HERE / "stored_schema_2"
NAMES = sorted(folder.name for folder in STORED.iterdir() if folder.is_dir())
every_release = pytest.mark.parametrize("name", NAMES)


@cache
def loaded(name: str) -> NodeClassifier:
    return load_release(STORED / name)


def certificate(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((STORED / name / "certificate.json").read_text(encoding="utf-8"))
    return read


def test_every_competitor_is_among_them() -> None:
    methods = {certificate(name)["method"] for name in NAMES}
    assert methods >= {"dpgcn", "lpgnet", "progap", "dp-sage", "dp-gnn", "gat"}


@every_release
def test_it_predicts_what_it_predicted(name: str) -> None:
    with np.load(STORED / "probabilities.npz") as stored:
        expected = stored[name]
    found = loaded(name).predict_proba(load_npz(HERE / "stored" / "graph.npz"), audience="owner", uncovered=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@every_release
def test_its_epsilon_and_its_plan_stand(name: str) -> None:
    told = certificate(name)
    assert told["schema"] == 2
    assert loaded(name).epsilon_spent_ == from_json(told["epsilon"])
    then, now = [Stage.from_json(stage) for stage in told["stages"]], loaded(name).plan_.stages
    assert [(stage.name, stage.mechanism, stage.metric, stage.runs, stage.shape) for stage in now] == [
        (stage.name, stage.mechanism, stage.metric, stage.runs, stage.shape) for stage in then
    ]
    if loaded(name).checked_privacy().level.kind == "none":
        return
    for one, two in zip(then, now, strict=True):
        assert two.sensitivity == pytest.approx(one.sensitivity, rel=1e-9)
        assert two.noise_std == pytest.approx(one.noise_std, rel=2e-3)


def test_a_gcon_of_before_verifies_with_the_caveat_that_it_had() -> None:
    assert all(check.passed for check in verify(STORED / "gcon"))
    assert "floating point" in certificate("gcon")["caveats"][0]
    plan = loaded("gcon").plan_
    assert not plan.stages[0].to_json()["noise"]["exact"]
    again = load_release(STORED / "gcon")
    with pytest.raises(ParameterError, match="arithmetic unbounded"):
        again.fit(load_npz(HERE / "stored" / "graph.npz"))
    today = again.set_params(arithmetic="bounded").plan(load_npz(HERE / "stored" / "graph.npz").public)
    assert today.stages[0].to_json()["noise"]["exact"]
    assert today.stages[0].noise_std == pytest.approx(plan.stages[0].noise_std, rel=1e-9)
