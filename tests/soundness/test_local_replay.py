"""Faults that local privacy invites, planted: each must be caught."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.audit.replay import replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.graph.graph import Graph
from discreet.mechanisms import curator, local_stages
from discreet.methods.lpgnn import LPGNN
from discreet.methods.noisy_labels import TrainingReports
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import LocalLevel


def audit(kind: type[LPGNN], **options: Any) -> list[str]:
    settings = {"feature_range": (-2.0, 2.0), "outside": "clip", "epochs": 2, "hidden": 4, "x_steps": 1, **options}
    return replay_audit(kind(Privacy(LocalLevel(), 2.0), **settings), small_graph, pairs=40).violations


class PredictsFromRecords(LPGNN):
    def _probabilities(self, graph: Graph) -> np.ndarray:
        return self._predicted(graph, self._in_units(graph))


class LearnsFromRecords(LPGNN):
    def _collect(self, curator: Any, name: str, records: Any) -> Any:
        super()._collect(curator, name, records)
        return records


class StopsByLabels(LPGNN):
    def _told(self, graph: Graph, curator: Any) -> TrainingReports:
        told = super()._told(graph, curator)
        told.reported[told.train] = (
            TrainingReports.of(
                graph.labels, graph.train_mask, graph.train_mask, np.eye(graph.num_classes), self._device
            )
            .reported[told.train]
            .clamp(min=0)
        )
        return told


def test_the_method_itself_passes() -> None:
    assert audit(LPGNN) == []
    assert audit(LPGNN, features="random", feature_range=None) == []


@pytest.mark.parametrize("fault", [PredictsFromRecords, LearnsFromRecords, StopsByLabels])
def test_records_that_slip_past_the_encoder_are_caught(fault: type[LPGNN]) -> None:
    assert any("although every stage answered the same" in violation for violation in audit(fault))


def test_a_range_read_from_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Published code takes min and max over all records: another node's record then moves every report."""

    def leaky(value: Any, stage: Any, rng: np.random.Generator) -> Any:
        if value.ndim == 1:
            return local_stages.release(value, stage, rng)
        low, high = value.min(), value.max()
        return local_stages.release(((value - low) / (high - low + 1e-9) * 4 - 2).astype(np.float32), stage, rng)

    for name in curator.MECHANISMS:
        if name in local_stages.FEATURES:
            monkeypatch.setitem(curator.MECHANISMS, name, leaky)
    assert any("moved with another node's record" in v for v in audit(LPGNN, mechanism="one-bit"))
