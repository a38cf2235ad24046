"""A method that refuses one of two neighbouring graphs tells them apart by that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from discreet.audit.replay import ReplayReport, replay_audit, replay_pair
from discreet.audit.report import Effort, _replay_shapes, _replay_weights, run_audit
from discreet.audit.small_graphs import graph_at, small_graph
from discreet.audit.subjects import Subject
from discreet.audit.worst_pairs import shaped_pairs, worst_pair
from discreet.errors import GraphError, UnsupportedError
from discreet.graph.parts import PrivatePart
from discreet.methods.base import NodeClassifier
from discreet.methods.declaration import Declaration
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, parse_level
from discreet.privacy.moves import toggle
from discreet.privacy.plan import Stage
from discreet.privacy.query import Bound, Query
from discreet.testing import MethodCase
from tests.contracts.cases import CASES, make


@dataclass(frozen=True)
class Nothing(Query):
    """A zero, unless the query refuses by a private fact: then the refusal itself tells."""

    refuses: bool

    @property
    def words(self) -> str:
        return "nothing"

    @property
    def shape(self) -> tuple[int, ...]:
        return (1,)

    def bound(self) -> Bound:
        return Bound(1.0, "l2", "nothing is told")

    def answer(self, private: PrivatePart, **inputs: Any) -> Any:
        if self.refuses and private.graph.num_edges:
            raise GraphError("there is an edge")
        return np.zeros(1)


@dataclass(eq=False, repr=False)
class Refuses(NodeClassifier):
    """Refuses in its first or second stage, or before both."""

    declaration = Declaration("refuses", "nowhere:Refuses", {"edge": "weights"}, "refuses")
    when: str = "before"

    def _stages(self, public, level):
        return [Stage.of(name, Nothing(self.when == name)) for name in ("before", "after")]

    def _learn(self, parts, curator, progress):
        if self.when == "always":
            raise GraphError("it has nodes")
        for name in ("before", "after"):
            curator.ask(name)

    def _state(self):
        return {}


def estimator(when: str) -> Refuses:
    return Refuses(Privacy(EdgeLevel(), 1.0, 1e-3), when=when)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_refusal_of_one_side_is_a_violation(when: str) -> None:
    for graph, neighbor in (shaped_pairs(EdgeLevel())[0], shaped_pairs(EdgeLevel())[0][::-1]):
        report = replay_pair(estimator(when), graph, neighbor)
        assert report.pairs == 1
        assert report.violations == [
            "one of two neighbouring graphs is refused (there is an edge) and the other is not"
        ]


def test_where_both_are_refused_the_pair_does_not_count() -> None:
    first = shaped_pairs(EdgeLevel())[0][1]
    report = ReplayReport()
    with pytest.raises(GraphError, match="there is an edge"):
        replay_pair(estimator("before"), first, toggle(first, 2, np.array([3]), both_ways=True), report=report)
    assert report == ReplayReport()
    with pytest.raises(UnsupportedError, match="every small graph"):
        replay_audit(estimator("always"), lambda rng: small_graph(rng), pairs=3)


def test_hand_made_pairs_the_search_and_the_whole_audit_say_so() -> None:
    by_hand, searched = ReplayReport(), ReplayReport()
    _replay_shapes(estimator("before"), by_hand)
    assert (by_hand.pairs, len(by_hand.violations)) == (1, 1)  # of the other pair both sides have edges
    with pytest.raises(UnsupportedError):
        worst_pair(estimator("before"), tries=0, report=searched)
    assert len(searched.violations) == 1
    audited = run_audit(Subject(estimator("before"), estimator("before")), Effort(pairs=12, fits=0, samples=0, tries=0))
    assert not audited.passed
    assert "is refused (there is an edge)" in audited.to_json()["violations"][0]


@pytest.mark.parametrize("case", [case for case in CASES if case.level.kind != "none"], ids=str)
def test_pairs_made_by_hand_pass_the_replay_of_every_method(case: MethodCase) -> None:
    report = ReplayReport()
    _replay_shapes(case.seeded(), report)
    assert report.pairs > 0
    assert report.passed, report.violations[:3]


@pytest.mark.parametrize(
    "spec",
    [
        "node:promised,max_degree=2,change=replace",
        "node:promised,max_degree=2,change=null",
        "neighbor:2,max_degree=2,edges=promised",
        "node:thinned,d_max=2,p=0.5,change=null",
    ],
)
def test_graphs_that_are_drawn_keep_the_promise(spec: str) -> None:
    """An audit of a small promise is an audit of graphs that keep it."""
    level = parse_level(spec)
    report = replay_audit(make("gap", spec), lambda rng: graph_at(level, rng, 8), pairs=10)
    assert report.pairs == 10
    assert report.passed, report.violations[:3]
    assert max(graph_at(level, np.random.default_rng(seed), 8).in_degree().max() for seed in range(10)) == 2


class RefusesWeights(Refuses):
    """Its declaration says that it reads weights; a fit does not."""

    declaration = Declaration("refuses", "nowhere:Refuses", {"edge": "weights"}, "refuses", why_no_weights="")

    def _learn(self, parts, curator, progress):
        if parts[0].facts.weighted:
            raise UnsupportedError("there are weights")
        super()._learn(parts, curator, progress)


def test_weights_that_a_plan_takes_and_a_fit_refuses_are_not_passed_over() -> None:
    """Else an audit would pass without one pair with weights."""
    with pytest.raises(UnsupportedError, match="there are weights"):
        _replay_weights(RefusesWeights(Privacy(EdgeLevel(), 1.0, 1e-3), when="never"), ReplayReport(), pairs=1, seed=0)
    report = ReplayReport()
    _replay_weights(estimator("never"), report, pairs=1, seed=0)
    assert not report.pairs  # by its declaration, and so by its plan, it reads none
