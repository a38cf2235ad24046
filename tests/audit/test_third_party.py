"""A method that another package registers gets the whole audit and the whole contract without writing any of it."""

from __future__ import annotations

import json
import math
import sys
import types
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import numpy as np
import pytest

from discreet.arrays import FloatArray
from discreet.cli import main
from discreet.errors import GraphError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PrivatePart
from discreet.methods import registry
from discreet.methods.base import NodeClassifier
from discreet.methods.declaration import Declaration
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.plan import Stage
from discreet.privacy.query import Bound, Query
from discreet.testing import MethodCase, MethodCheck, QueryCase, check_query, method_checks

DECLARED = Declaration(
    "degree-rule", "somebody_elses_package:DegreeRule", {"edge": "weights+predictions"}, "noisy degrees"
)


@dataclass(frozen=True)
class Degrees(Query):
    """Every node's degree. An edge has two ends: √2."""

    num_nodes: int
    claimed: ClassVar[float] = math.sqrt(2)

    @property
    def words(self) -> str:
        return "degrees"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.num_nodes,)

    def bound(self) -> Bound:
        return Bound(self.claimed, "l2", "an edge has two ends")

    def answer(self, private: PrivatePart, **inputs: Any) -> FloatArray:
        return private.graph.in_degree().astype(np.float64)


@dataclass(eq=False, repr=False)
class DegreeRule(NodeClassifier):
    """Predicts a class by noisy degree: a whole method in a few lines, as somebody else might write it."""

    declaration = DECLARED

    def _stages(self, public, level):
        return [Stage.of("degrees", Degrees(public[0].num_nodes))]

    def _learn(self, parts, curator, progress):
        parts[0].labelled(parts[0].mask("train"))  # public at edge level
        if not len(parts[0].labelled(parts[0].train_mask)):
            raise GraphError("no training node has a label")
        self.degrees_ = curator.ask("degrees")

    def _probabilities(self, part):
        scores = np.outer(self.degrees_, np.arange(1, self.public_.num_classes + 1))
        found = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (found / found.sum(axis=1, keepdims=True)).astype(np.float32)

    def _state(self):
        return {"degrees": self.degrees_}

    def _restore(self, state):
        self.degrees_ = state["degrees"]


def make(**parameters: Any) -> DegreeRule:
    return DegreeRule(Privacy(EdgeLevel(), 1.0), **parameters)


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch):
    """A module and an entry point, as an installed package would have them."""
    module = types.ModuleType("somebody_elses_package")
    module.DegreeRule = DegreeRule
    module.INFO = DECLARED
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entry = EntryPoint("degree-rule", "somebody_elses_package:INFO", "discreet.methods")
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == "discreet.methods" else [])
    registry.list_methods.cache_clear()
    yield
    registry.list_methods.cache_clear()


EFFORT = ["--pairs", "20", "--fits", "80", "--samples", "1000", "--alpha", "1e-6"]
ARGUMENTS = ["audit", "--method", "degree-rule", *EFFORT, "--json"]


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
    monkeypatch.setattr(Degrees, "claimed", 1.0)
    assert main(ARGUMENTS) == 1
    assert "declared sensitivity" in json.loads(capsys.readouterr().out)["violations"][0]


# ------------------------------------------------------------------------ the contract


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize("check", method_checks(MethodCase(make)), ids=str)
def test_keeps_the_contract_of_methods(check: MethodCheck) -> None:
    check()


def test_keeps_the_contract_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    def query_of(facts: PublicFacts) -> Query:
        return Degrees(facts.num_nodes)

    case = QueryCase("degrees", "edge", query_of, lambda *_: {})
    assert not check_query(case).violations
    monkeypatch.setattr(Degrees, "claimed", 1.0)
    assert "1.41421 times the bound" in check_query(case).violations[0]
