"""Every method at every private level goes through the replay audit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from tests.contracts.cases import every_private_case, make


@every_private_case
def test_replay_audit(name: str, spec: str, record_property: Callable[[str, object], None]) -> None:
    graphs = partial(small_graph, directed=spec == "edge:directed")
    report = replay_audit(make(name, spec), graphs, pairs=25)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]
