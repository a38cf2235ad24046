"""Edge-level GAP under the replay audit: tight over a thousand pairs, and faults that must be caught."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from discreet.audit.replay import ReplayReport, replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.graph.graph import Graph
from discreet.methods import gap
from discreet.methods.gap import GAP
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel

RecordProperty = Callable[[str, object], None]


def audit(directed: bool = False, pairs: int = 60, kind: type[GAP] = GAP, **parameters: object) -> ReplayReport:
    estimator = kind(Privacy(EdgeLevel(directed), 1.0), hops=2, epochs=0, hidden=4, **parameters)  # type: ignore[arg-type]
    return replay_audit(estimator, partial(small_graph, directed=directed), pairs=pairs)


@pytest.mark.parametrize("directed", [False, True])
def test_tight_over_a_thousand_pairs(directed: bool, record_property: RecordProperty) -> None:
    report = audit(directed, pairs=1000)
    record_property("ratio", report.ratio)
    assert report.passed, report.violations[:3]
    assert report.pairs == 1000
    assert all(0.99 <= ratio <= 1 for ratio in report.ratio.values())


@pytest.mark.parametrize("aggregation", ["mean", "symmetric"])
def test_other_aggregations(aggregation: str) -> None:
    report = audit(pairs=200, aggregation=aggregation)
    assert report.passed, report.violations[:3]
    assert report.tightness > 0.9


# ------------------------------------------------------------------------ planted faults


def test_sensitivity_one_for_an_undirected_edge_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gap, "edge_sensitivity", lambda aggregation, level: (1.0, "as published"))
    report = audit()
    assert any("declared sensitivity" in violation for violation in report.violations)
    assert report.tightness == pytest.approx(2**0.5, rel=1e-3)


def test_rows_that_are_not_normalised_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gap, "normalize_rows", lambda rows: rows)
    assert any("declared sensitivity" in violation for violation in audit().violations)


def test_normalising_a_throw_away_copy_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_a_copy(rows: torch.Tensor) -> torch.Tensor:
        copy = rows.clone()
        copy /= copy.norm(dim=1, keepdim=True)
        return rows

    monkeypatch.setattr(gap, "normalize_rows", in_a_copy)
    assert not audit().passed


class ReadsCleanHops(GAP):
    """The release holds what was measured before noise."""

    def _noisy_hops(self, graph: Graph, number: int, curator: object) -> list[torch.Tensor]:
        noisy = super()._noisy_hops(graph, number, curator)  # type: ignore[arg-type]
        return [*noisy[:-1], self._plain_hops(graph)[-1]]


def test_a_clean_cache_is_caught() -> None:
    assert any("of the release differs" in violation for violation in audit(kind=ReadsCleanHops).violations)


class PredictsFromEdges(GAP):
    """Prediction aggregates again, without noise and unpaid."""

    def _probabilities(self, graph: Graph) -> np.ndarray:
        self.caches_ = [self._plain_hops(graph) for _ in self.caches_]
        return super()._probabilities(graph)


def test_edges_read_at_prediction_are_caught() -> None:
    assert any("covered predictions differ" in violation for violation in audit(kind=PredictsFromEdges).violations)


class SeedsFromDegrees(GAP):
    """Training randomness that depends on the edges."""

    def _learn(self, graphs: list[Graph], curator: object, progress: object) -> None:  # type: ignore[override]
        self._generator.manual_seed(int(graphs[0].num_entries))
        super()._learn(graphs, curator, progress)  # type: ignore[arg-type]


def test_public_state_that_reads_edges_is_caught() -> None:
    assert any("at the entry of stage" in violation for violation in audit(kind=SeedsFromDegrees).violations)


class PlansFromEdges(GAP):
    """More hops for denser graphs: a plan that looks at private data through the back door."""

    density = 0

    def _hops(self) -> int:
        return 1 + self.density % 2

    def plan(self, public: object, extra: tuple = ()) -> object:  # type: ignore[override,type-arg]
        type(self).density += 1  # what a read of the graph would do
        return super().plan(public, extra)  # type: ignore[arg-type]


def test_a_plan_that_moves_is_caught() -> None:
    assert any("plans differ" in violation for violation in audit(kind=PlansFromEdges, pairs=2).violations)
