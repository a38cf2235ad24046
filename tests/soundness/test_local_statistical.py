"""The statistical audit on reports: near ε for the honest encoder, above it for one that tells too much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.audit.statistical import audit_curator
from discreet.mechanisms import curator
from discreet.mechanisms.bits import BitStream
from discreet.mechanisms.local import stages
from discreet.mechanisms.local.multi_bit import MultiBit
from discreet.mechanisms.local.randomized_response import RandomizedResponse
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import LocalLevel
from discreet.privacy.plan import Plan, make_plan
from discreet.queries.reports import LABELS

RUNS = 2500


def plan(mechanism: str = "multi-bit", epsilon: float = 1.0) -> Plan:
    delta = 1e-3 if mechanism == "gaussian" else None
    features = stages.feature_stage(
        "features", mechanism, (2, 4), epsilon=epsilon, feature_range=(0, 1), outside="refuse", delta=delta
    )
    labels = stages.label_stage("labels", 2, 3, epsilon)
    privacy = Privacy(LocalLevel(), 2 * epsilon, delta or "auto")
    return make_plan("m", privacy, 2, [features, labels], "weights+predictions")


@pytest.mark.parametrize(("mechanism", "least"), [("multi-bit", 0.5), ("laplace", 0.1)])
def test_honest_reports_stay_below_epsilon(
    mechanism: str, least: float, record_property: Callable[[str, object], None]
) -> None:
    report = audit_curator(plan(mechanism), runs=RUNS, alpha=1e-6)
    assert report.curator is not None
    record_property("epsilon of 2 shown", report.curator.epsilon)
    assert least < report.curator.epsilon <= 2.0


class TellsTooMuch(MultiBit):
    """Signs at ε/m each for m reported features, as if one were reported: the share of m forgotten."""

    def _draw_plus_signs(self, values: np.ndarray, bits: BitStream) -> np.ndarray:
        return MultiBit(2.5 * self.epsilon, self.width, self.feature_range, self.sampled)._draw_plus_signs(values, bits)


@pytest.mark.chance
def test_an_encoder_that_tells_too_much_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaky(value: Any, stage: Any, stream: BitStream) -> Any:
        honest = stages.encoder_of(stage)
        return TellsTooMuch(honest.epsilon, honest.width, honest.feature_range, 1).encode_rows(value, stream)

    monkeypatch.setitem(curator.MECHANISMS, "local multi-bit", leaky)
    report = audit_curator(plan(), runs=RUNS)
    assert report.curator is not None
    assert report.curator.epsilon > 2.0


@pytest.mark.chance
def test_labels_kept_too_often_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaky(value: Any, stage: Any, stream: BitStream) -> Any:
        return RandomizedResponse(3.0, 3).encode_rows(value, stream).astype(np.float64)

    monkeypatch.setitem(curator.MECHANISMS, LABELS, leaky)
    report = audit_curator(plan(), runs=RUNS)
    assert report.curator is not None
    assert report.curator.epsilon > 2.0
