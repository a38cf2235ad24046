"""A method that refuses one of two neighbouring graphs tells them apart by that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.audit.replay import ReplayReport, replay_audit, replay_pair
from discreet.audit.report import Effort, _replay_shapes, run_audit
from discreet.audit.small_graphs import graph_at, small_graph
from discreet.audit.subjects import Subject
from discreet.audit.worst_pairs import shaped_pairs, worst_pair
from discreet.errors import GraphError, UnsupportedError
from discreet.methods.hop_bayes import HopBayes
from discreet.privacy.budget import Privacy
from discreet.privacy.level_specs import parse_level
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.moves import toggle
from tests.contracts.cases import every_private_case, make


class Refuses(HopBayes):
    """Refuses by a private fact, before or after its stages, or by a public one."""

    when = "before"

    def _learn(self, graphs: Any, curator: Any, progress: Any) -> None:
        if self.when == "always" or (self.when == "before" and graphs[0].num_edges):
            raise GraphError("there is an edge")
        super()._learn(graphs, curator, progress)
        if self.when == "after" and graphs[0].num_edges:
            raise GraphError("there is an edge")


class RefusesAfter(Refuses):
    when = "after"


class RefusesAlways(Refuses):
    when = "always"


def estimator(kind: type[Refuses]) -> Refuses:
    return kind(Privacy(EdgeLevel(), 1.0, 1e-3), epochs=0, hidden=3)


@pytest.mark.parametrize("kind", [Refuses, RefusesAfter])
def test_a_refusal_of_one_side_is_a_violation(kind: type[Refuses]) -> None:
    for graph, neighbor in (shaped_pairs(EdgeLevel())[0], shaped_pairs(EdgeLevel())[0][::-1]):
        report = replay_pair(estimator(kind), graph, neighbor)
        assert report.pairs == 1
        assert report.violations == [
            "one of two neighbouring graphs is refused (there is an edge) and the other is not"
        ]


def test_where_both_are_refused_the_pair_does_not_count() -> None:
    first = shaped_pairs(EdgeLevel())[0][1]
    report = ReplayReport()
    with pytest.raises(GraphError, match="there is an edge"):
        replay_pair(estimator(Refuses), first, toggle(first, 2, np.array([3]), both_ways=True), report=report)
    assert report == ReplayReport()
    with pytest.raises(UnsupportedError, match="every small graph"):
        replay_audit(estimator(RefusesAlways), lambda rng: small_graph(rng), pairs=3)


def test_hand_made_pairs_the_search_and_the_whole_audit_say_so() -> None:
    by_hand, searched = ReplayReport(), ReplayReport()
    _replay_shapes(estimator(Refuses), by_hand)
    assert (by_hand.pairs, len(by_hand.violations)) == (1, 1)  # of the other pair both sides have edges
    with pytest.raises(UnsupportedError):
        worst_pair(estimator(Refuses), tries=0, report=searched)
    assert len(searched.violations) == 1
    audited = run_audit(Subject(estimator(Refuses), estimator(Refuses)), Effort(pairs=12, fits=0, samples=0, tries=0))
    assert not audited.passed
    assert "is refused (there is an edge)" in audited.to_json()["violations"][0]


@every_private_case
def test_pairs_made_by_hand_pass_the_replay_of_every_method(name: str, spec: str) -> None:
    report = ReplayReport()
    _replay_shapes(make(name, spec), report)
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
    report = replay_audit(make("gap", spec), lambda rng: graph_at(level, rng, 8), pairs=15)
    assert report.pairs == 15
    assert report.passed, report.violations[:3]
    assert max(graph_at(level, np.random.default_rng(seed), 8).in_degree().max() for seed in range(10)) == 2
