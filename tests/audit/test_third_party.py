"""A method that another package registers gets the whole audit without writing any of it."""

from __future__ import annotations

import json
import sys
import types
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from discreet.cli import main
from discreet.methods import registry
from discreet.methods.base import NodeClassifier
from discreet.methods.registry import MethodInfo
from discreet.privacy import events
from discreet.privacy.plan import Stage


class DegreeRule(NodeClassifier):
    """Predicts a class by noisy degree: a whole method in a few lines, as somebody else might write it."""

    method = "degree-rule"
    levels = ("edge",)
    claimed = 2**0.5

    @property
    def covers(self) -> str:
        return "weights+predictions"

    def _stages(self, public, level):
        facts = public[0]
        why = "an edge has two ends"
        event = events.GaussianDpEvent(1.0)
        return [Stage("degrees", "degrees", "gaussian", self.claimed, "l2", why, event, (facts.num_nodes,))]

    def _learn(self, graphs, curator, progress):
        self.degrees_ = curator.measure("degrees", graphs[0].in_degree().astype(np.float64))

    def _probabilities(self, graph):
        scores = np.outer(self.degrees_, np.arange(1, self.public_.num_classes + 1))
        found = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (found / found.sum(axis=1, keepdims=True)).astype(np.float32)

    def _state(self):
        return {"degrees": self.degrees_}

    def _restore(self, state):
        self.degrees_ = state["degrees"]


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch):
    """A module and an entry point, as an installed package would have them."""
    module = types.ModuleType("somebody_elses_package")
    module.DegreeRule = DegreeRule
    module.INFO = MethodInfo(
        "degree-rule", "somebody_elses_package:DegreeRule", ("edge",), "weights+predictions", "noisy degrees"
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entry = EntryPoint("degree-rule", "somebody_elses_package:INFO", "discreet.methods")
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == "discreet.methods" else [])
    registry.methods.cache_clear()
    yield
    registry.methods.cache_clear()


ARGUMENTS = ["audit", "--method", "degree-rule", "--pairs", "20", "--fits", "80", "--samples", "1000", "--json"]


@pytest.mark.usefixtures("_registered")
def test_audited_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ARGUMENTS) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["replay"]["largest_ratio"]["degrees"] == pytest.approx(1, abs=1e-6)
    assert found["statistics"]["curator"]["judged"] == 500
    assert found["statistics"]["pipeline"]["judged"] == 40
    assert len(found["statistics"]["noise"]) > 4


@pytest.mark.usefixtures("_registered")
def test_and_refuted_where_it_is_wrong(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DegreeRule, "claimed", 1.0)
    assert main(ARGUMENTS) == 1
    assert "declared sensitivity" in json.loads(capsys.readouterr().out)["violations"][0]
