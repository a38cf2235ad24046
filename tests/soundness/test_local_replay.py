"""Faults that local privacy invites, planted: each must be caught. (Records cannot be read past the encoder at all.)"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.audit.small_graphs import small_graph
from discreet.mechanisms import curator
from discreet.mechanisms.local import stages
from discreet.methods.lpgnn.estimator import LPGNN
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import LocalLevel
from tests.effort import caught, replay_until


def audit(kind: type[LPGNN], **options: Any) -> list[str]:
    settings = {"feature_range": (-2.0, 2.0), "outside": "clip", "epochs": 2, "hidden": 4, "x_steps": 1, **options}
    return replay_until(caught, kind(Privacy(LocalLevel(), 2.0), **settings), small_graph, most=20).violations


def test_the_method_itself_passes() -> None:
    assert audit(LPGNN) == []
    assert audit(LPGNN, features="random", feature_range=None) == []


def test_a_range_read_from_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Published code takes min and max over all records: another node's record then moves every report."""

    def leaky(value: Any, stage: Any, rng: np.random.Generator) -> Any:
        if value.ndim == 1:
            return stages.release(value, stage, rng)
        low, high = value.min(), value.max()
        return stages.release(((value - low) / (high - low + 1e-9) * 4 - 2).astype(np.float32), stage, rng)

    for name in curator.MECHANISMS:
        if name in stages.FEATURES:
            monkeypatch.setitem(curator.MECHANISMS, name, leaky)
    assert any("moved with another node's record" in v for v in audit(LPGNN, mechanism="one-bit"))
