"""Laplace and Gaussian reports: the noise is what ε asks for, and rows are independent."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import ParameterError
from discreet.mechanisms.local.additive_reports import AdditiveReports, GaussianReports, LaplaceReports
from discreet.mechanisms.local.multi_bit import MultiBit
from discreet.privacy.events.gaussian import gaussian_epsilon

ENCODERS = [LaplaceReports(2.0, 3, (-1.0, 1.0)), GaussianReports(2.0, 3, (-1.0, 1.0), delta=1e-5)]


def test_laplace_ratio_is_epsilon_between_the_ends() -> None:
    """The density of all-α against all-β at a report beyond both: exactly ε."""
    encoder = ENCODERS[0]
    assert isinstance(encoder, LaplaceReports)
    report, low, high = np.full(3, 5.0), np.full(3, -1.0), np.full(3, 1.0)
    assert (np.abs(report - low) - np.abs(report - high)).sum() / encoder.laplace_scale == pytest.approx(2.0)


def test_gaussian_is_exact() -> None:
    distance = np.linalg.norm(np.full(3, 2.0))
    assert gaussian_epsilon(float(distance / ENCODERS[1].noise_std), 1e-5) == pytest.approx(2.0, rel=1e-9)
    assert ENCODERS[1].epsilon >= gaussian_epsilon(float(distance / ENCODERS[1].noise_std), 1e-5) * (1 - 1e-12)


@pytest.mark.parametrize("encoder", ENCODERS, ids=["laplace", "gaussian"])
def test_unbiased_with_the_stated_variance(encoder: AdditiveReports) -> None:
    record, draws = np.array([-1.0, 0.3, 1.0]), 10_000
    rng = np.random.default_rng(0)
    paths = [
        np.array([encoder.encode(record, rng) for _ in range(draws)]),
        encoder.encode_rows(np.tile(record, (draws, 1)), rng),
        encoder.encode_rows(sp.csr_array(np.tile(record, (draws, 1))), rng),
    ]
    for reports in paths:
        features = encoder.rectify(reports)
        assert np.abs(features.mean(axis=0) - record).max() < 5 * encoder.noise_std / np.sqrt(draws)
        assert features.var(axis=0) == pytest.approx(encoder.noise_std**2, rel=0.1)


@pytest.mark.parametrize("encoder", ENCODERS, ids=["laplace", "gaussian"])
def test_clipped_refused_and_row_by_row(encoder: AdditiveReports) -> None:
    rows = np.zeros((5, 3))
    rows[2, 1] = 9.0
    with pytest.raises(ParameterError, match="a feature lies outside"):
        encoder.encode_rows(rows, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="a feature lies outside"):
        encoder.encode(rows[2], np.random.default_rng(0))
    a = encoder.encode_rows(rows, np.random.default_rng(1), outside="clip")
    rows[2, 1] = 1.0
    assert np.array_equal(a, encoder.encode_rows(rows, np.random.default_rng(1)))
    rows[2, 1] = 0.0
    assert set(np.flatnonzero((a != encoder.encode_rows(rows, np.random.default_rng(1))).any(axis=1))) == {2}


def test_multi_bit_is_the_quietest_when_records_are_wide() -> None:
    width = 1000
    multi = MultiBit(1.0, width, (0.0, 1.0)).noise_std
    assert multi < GaussianReports(1.0, width, (0.0, 1.0), delta=1e-5).noise_std
    assert multi < LaplaceReports(1.0, width, (0.0, 1.0)).noise_std
    assert multi < MultiBit(1.0, width, (0.0, 1.0), width).noise_std


def test_nonsense_is_refused() -> None:
    with pytest.raises(ParameterError, match="delta"):
        GaussianReports(1.0, 3, (0.0, 1.0))
    with pytest.raises(ParameterError, match="epsilon"):
        LaplaceReports(0.0, 3, (0.0, 1.0))
