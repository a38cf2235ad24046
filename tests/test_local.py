"""``discreet.local``: what a device runs, and what the range may never come from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import discreet
from discreet.errors import ParameterError

local = discreet.local
RECORD = [0.0, 1.0, 0.25]


@pytest.mark.parametrize("mechanism", local.FEATURE_MECHANISMS)
def test_reports_and_their_rectification(mechanism: str) -> None:
    options = {"feature_range": (0, 1), "epsilon": 2.0, "mechanism": mechanism, "delta": 1e-5}
    report = local.encode(RECORD, **options)
    assert report.shape == (3,)
    rows = local.encode_many(np.tile(RECORD, (20_000, 1)), **options)
    sparse = local.encode_many(sp.csr_array(np.tile(RECORD, (20_000, 1))), **options)
    for many in (rows, sparse):
        features = local.rectify(many, **options)
        error = features.std(axis=0) / np.sqrt(20_000)
        assert (np.abs(features.mean(axis=0) - RECORD) < 5 * error).all()


def test_the_range_cannot_be_read_from_data() -> None:
    """No function has a default for it, None is refused, and no word asks for the data's own."""
    for function in (local.encode, local.encode_many, local.rectify, local.feature_encoder):
        parameter = inspect.signature(function).parameters["feature_range"]
        assert parameter.default is inspect.Parameter.empty
    for given in (None, "auto", "data", (1,), (0, 0), (1, 0), (0, np.inf), (np.nan, 1), 3):
        with pytest.raises(ParameterError, match="feature_range must be"):
            local.encode(RECORD, feature_range=given, epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        local.encode(RECORD, epsilon=1.0)  # type: ignore[call-arg]


def test_the_report_does_not_move_with_another_record_in_the_batch() -> None:
    """A range, mean or norm taken over the batch would show: the other rows must stay as they are."""
    rows = np.random.default_rng(0).random((30, 6))
    wild = rows.copy()
    wild[4] = 1.0
    for mechanism in local.FEATURE_MECHANISMS:
        a, b = (
            local.encode_many(
                r, feature_range=(0, 1), epsilon=1.0, mechanism=mechanism, delta=1e-5,
                insecure_rng=np.random.default_rng(1),
            )
            for r in (rows, wild)
        )  # fmt: skip
        a, b = (np.asarray(m.toarray() if sp.issparse(m) else m) for m in (a, b))
        assert set(np.flatnonzero((a != b).any(axis=1))) <= {4}


def test_randomness_is_fresh() -> None:
    reports = {local.encode(np.full(50, 0.5), feature_range=(0, 1), epsilon=8.0).tobytes() for _ in range(20)}
    assert len(reports) == 20


@pytest.mark.parametrize("mechanism", local.FEATURE_MECHANISMS)
@pytest.mark.parametrize("ends", [(0, 1e300), (-1e308, 0), (0, 1e-300), (-1e16, 1e16), (1e200, 2e200)])
def test_extreme_ranges_are_refused_in_a_sentence(mechanism: str, ends: tuple[float, float]) -> None:
    with pytest.raises(ParameterError, match="feature_range"):
        local.encode([ends[0]], feature_range=ends, epsilon=1.0, mechanism=mechanism, delta=1e-5)


@pytest.mark.parametrize("ends", [(-1e15, 1e15), (0, 1e-15)])
@pytest.mark.parametrize("epsilon", [1e-9, 500.0])
def test_reports_at_the_limits_are_finite(ends: tuple[float, float], epsilon: float) -> None:
    record = np.full(50, ends[0])
    for mechanism in ("one-bit", "laplace"):
        assert np.isfinite(local.encode(record, feature_range=ends, epsilon=epsilon, mechanism=mechanism)).all()


@pytest.mark.parametrize("epsilon", [0, -1, float("inf"), float("nan"), "1", True, 1e-10])
def test_bad_epsilon(epsilon: object) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        local.encode(RECORD, feature_range=(0, 1), epsilon=epsilon)  # type: ignore[arg-type]


def test_bad_records_and_labels() -> None:
    with pytest.raises(ParameterError, match="a feature lies outside"):
        local.encode([0.0, 7.0], feature_range=(0, 1), epsilon=1.0)
    local.encode([0.0, 7.0], feature_range=(0, 1), epsilon=1.0, outside="clip")
    with pytest.raises(ParameterError, match="or is no number"):
        local.encode([np.nan], feature_range=(0, 1), epsilon=1.0)
    with pytest.raises(ParameterError, match="flat"):
        local.encode([[0.0]], feature_range=(0, 1), epsilon=1.0)
    with pytest.raises(ParameterError, match="at least one feature"):
        local.encode([], feature_range=(0, 1), epsilon=1.0)
    with pytest.raises(ParameterError, match="mechanism"):
        local.encode(RECORD, feature_range=(0, 1), epsilon=1.0, mechanism="many-bit")
    with pytest.raises(ParameterError, match="a label is no class"):
        local.encode_label(7, num_classes=7, epsilon=1.0)
    with pytest.raises(ParameterError, match="whole number"):
        local.encode_label(0.5, num_classes=7, epsilon=1.0)  # type: ignore[arg-type]


def test_labels() -> None:
    told = local.encode_labels(np.full(20_000, 2), num_classes=4, epsilon=1.0)
    expected = local.label_confusion(num_classes=4, epsilon=1.0)[2]
    assert np.bincount(told) / 20_000 == pytest.approx(expected, abs=0.02)
    assert local.encode_label(2, num_classes=4, epsilon=29.0) == 2


RANGE: dict[str, Any] = {"feature_range": (0, 1), "epsilon": 1.0}


@pytest.mark.parametrize(
    "call",
    [
        lambda: local.encode("x", **RANGE),
        lambda: local.encode([1j], **RANGE),
        lambda: local.encode([10**400], **RANGE),
        lambda: local.encode(np.ma.masked_array([0.5], [True]), **RANGE),
        lambda: local.encode_many("x", **RANGE),
        lambda: local.rectify(None, **RANGE),
        lambda: local.rectify([1j], **RANGE),
        lambda: local.encode([0.5], feature_range=(0, 10**400), epsilon=1.0),
        lambda: local.encode([0.5], feature_range=(0, 1), epsilon=10**400),
        lambda: local.encode([0.5], **RANGE, mechanism="gaussian", delta="x"),
        lambda: local.encode([0.5], **RANGE, outside=np.array(["clip", "refuse"])),
        lambda: local.encode([0.5], **RANGE, insecure_rng=3),
        lambda: local.encode_label(1, num_classes="x", epsilon=1.0),
        lambda: local.encode_label(1, num_classes=2, epsilon="x"),
        lambda: local.encode_labels([0, 1], num_classes=2, epsilon=None),
        lambda: local.label_confusion(num_classes=2, epsilon=10**400),
    ],
)
def test_what_is_no_record_and_no_setting(call: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError):
        call()
