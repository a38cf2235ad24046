"""Every method at every private level goes through the replay audit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from discreet.audit.replay import ADVERSARIES, TOLERANCE, ReplayReport, replay_audit, replay_pair
from discreet.audit.small_graphs import reads_entries, small_graph
from discreet.graph.graph import Graph
from discreet.privacy.level_specs import parse_level
from discreet.privacy.moves import null_record, without_edges
from tests.contracts.cases import are_labels_private, every_private_case, graph_for, make


@every_private_case
def test_replay_audit(name: str, spec: str, record_property: Callable[[str, object], None]) -> None:
    level = parse_level(spec)

    def graphs(rng: np.random.Generator) -> Graph:
        return small_graph(rng, directed=reads_entries(level, rng))

    report = replay_audit(make(name, spec), graphs, pairs=25)
    record_property("ratio", report.ratio)
    assert report.pairs == 25
    assert report.passed, report.violations[:3]


@every_private_case
def test_the_only_label_may_go(name: str, spec: str) -> None:
    """One training node has a label, and loses it, with the rest of its record where units come and go."""
    if not are_labels_private(spec):
        pytest.skip("labels are public")
    graph = parse_level(spec).view(graph_for(spec))
    node = int(np.flatnonzero(graph.mask("train"))[0])
    one = graph.with_labels(np.where(np.arange(graph.num_nodes) == node, 0, -1))
    none = one.with_labels(np.full(graph.num_nodes, -1))
    if "change=null" in spec:
        none = without_edges(null_record(one, node), node, both_ways="owned" not in spec)
    report = ReplayReport()
    for adversary in ADVERSARIES:
        replay_pair(make(name, spec), one, none, adversary=adversary, report=report)
        replay_pair(make(name, spec), none, one, adversary=adversary, report=report)
    assert report.passed, report.violations[:3]
    assert 0 < report.tightness <= 1 + TOLERANCE
