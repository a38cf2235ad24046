"""Edge-level GAP under the replay audit: tight over a thousand pairs. (Planted faults: ``test_planted_faults``.)"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from discreet.audit.replay import ReplayReport, replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.methods.gap.estimator import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel

RecordProperty = Callable[[str, object], None]


def audit(directed: bool = False, pairs: int = 60, **parameters: object) -> ReplayReport:
    estimator = GAP(Privacy(EdgeLevel(directed), 1.0), hops=2, epochs=0, hidden=4, **parameters)  # type: ignore[arg-type]
    return replay_audit(estimator, partial(small_graph, directed=directed), pairs=pairs)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.slow
def test_tight_over_a_thousand_pairs(directed: bool, record_property: RecordProperty) -> None:
    report = audit(directed, pairs=1000)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]
    assert report.pairs == 1000
    assert all(0.99 <= ratio <= 1 for ratio in report.ratio.values())


@pytest.mark.slow  # ``tests/contracts/test_queries.py`` meets both aggregations in every run
@pytest.mark.parametrize("aggregation", ["mean", "symmetric"])
def test_other_aggregations(aggregation: str) -> None:
    report = audit(pairs=200, aggregation=aggregation)
    assert report.passed, report.violations[:3]
    assert report.tightness > 0.9
