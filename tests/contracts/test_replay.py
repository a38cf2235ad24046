"""Every method at every private level goes through the replay audit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import reads_entries, small_graph
from discreet.graph.graph import Graph
from discreet.privacy.level_specs import parse_level
from tests.contracts.cases import every_private_case, make


@every_private_case
def test_replay_audit(name: str, spec: str, record_property: Callable[[str, object], None]) -> None:
    level = parse_level(spec)

    def graphs(rng: np.random.Generator) -> Graph:
        return small_graph(rng, directed=reads_entries(level, rng))

    report = replay_audit(make(name, spec), graphs, pairs=25)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]
