"""Releases that earlier versions wrote: each verifies, loads, and predicts what it predicted when it was made.

``stored`` holds one release of schema 1 for every method and kind of level, fitted on ``graph.npz`` (a csbm graph of 60
nodes) by the version before queries were objects; ``probabilities.npz`` is what each predicted then, by name.
"""

from __future__ import annotations

import json
import shutil
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.files import from_json
from discreet.graph import load_npz
from discreet.methods.base import NodeClassifier
from discreet.methods.registry import list_methods
from discreet.privacy.certificate import digest
from discreet.privacy.plan import Stage
from discreet.privacy.release_folder import json_bytes
from discreet.release.load import load_release
from discreet.release.verify import verify

STORED = Path(__file__).parent / "stored"
NAMES = sorted(folder.name for folder in STORED.iterdir() if folder.is_dir())
BROKEN = {"dp-gnn", "gcon", "gcon-ssp", "hop-bayes-edge", "hop-bayes-node", "hop-bayes-own"}
"""What is known to be broken in the version that wrote them: see ``release.advisories``."""
every_release = pytest.mark.parametrize("name", NAMES)


@cache
def loaded(name: str) -> NodeClassifier:
    return load_release(STORED / name)


@cache
def certificate(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((STORED / name / "certificate.json").read_text(encoding="utf-8"))
    return read


@every_release
def test_it_verifies(name: str) -> None:
    assert certificate(name)["schema"] == 1
    checks = verify(STORED / name)
    assert {check.name for check in checks if not check.passed} == ({"advisory"} if name in BROKEN else set())
    assert len(checks) == 15


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_another_version_does_not_hide_an_advisory(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(STORED / name, tmp_path / name)
    stated = certificate(name) | {"versions": {**certificate(name)["versions"], "discreet": version("discreet")}}
    (folder / "certificate.json").write_bytes(json_bytes(stated | {"digest": digest(stated)}))
    assert "advisory" in {check.name for check in verify(folder) if not check.passed}


@every_release
def test_it_predicts_what_it_predicted(name: str) -> None:
    graph = load_npz(STORED / "graph.npz")
    with np.load(STORED / "probabilities.npz") as stored:
        expected = stored[name]
    found = loaded(name).predict_proba(graph, audience="owner", uncovered=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@every_release
def test_its_epsilon_stands(name: str) -> None:
    assert loaded(name).epsilon_spent_ == from_json(certificate(name)["epsilon"])


@every_release
def test_its_plan_would_be_made_again(name: str) -> None:
    """The same stages with the same bounds and, to what calibration leaves open, the same noise."""
    then, now = [Stage.from_json(stage) for stage in certificate(name)["stages"]], loaded(name).plan_.stages
    assert [(stage.name, stage.query.words, stage.runs, stage.shape) for stage in now] == [
        (stage.name, stage.query.words, stage.runs, stage.shape) for stage in then
    ]
    if loaded(name).checked_privacy().level.kind == "none":  # no bound is stated there any more
        return
    for one, two in zip(then, now, strict=True):
        assert two.sensitivity == pytest.approx(one.sensitivity, rel=1e-9)
        assert two.noise_std == pytest.approx(one.noise_std, rel=2e-3)
        assert (two.metric, two.mechanism) == (one.metric, one.mechanism)
        assert two.query.parameters().keys() == one.query.parameters().keys()


def test_the_methods_of_that_version_are_among_them() -> None:
    """All but gcn, which shares all but one layer with sage; each of them can still be found."""
    methods = {certificate(name)["method"] for name in NAMES}
    assert len(methods) == 12
    assert methods <= set(list_methods())
