"""The multi-bit mechanism: exact privacy by enumeration, no bias, the stated variance, one law for all paths."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.errors import ParameterError
from discreet.mechanisms.bits import BitStream, exp_bounds
from discreet.mechanisms.local.multi_bit import BEST_SHARE, MultiBit, _distinct, best_sampled

CASES = [
    (epsilon, width, sampled)
    for epsilon in (0.01, 1.0, 3.0, 8.0)
    for width in (1, 2, 3, 4)
    for sampled in range(1, width + 1)
]


def probability(encoder: MultiBit, report: np.ndarray, record: np.ndarray) -> float:
    """The exact probability of a report, given the record."""
    at = np.flatnonzero(report)
    if len(at) != encoder.sampled:
        return 0.0
    plus = encoder.chance_of_plus(np.asarray(record, dtype=np.float64)[at])
    return float(np.prod(np.where(report[at] > 0, plus, 1 - plus)) / math.comb(encoder.width, encoder.sampled))


def outputs(width: int, sampled: int) -> list[np.ndarray]:
    """Every report there can be."""
    found = []
    for at in itertools.combinations(range(width), sampled):
        for signs in itertools.product((-1, 1), repeat=sampled):
            report = np.zeros(width, dtype=np.int8)
            report[list(at)] = signs
            found.append(report)
    return found


@pytest.mark.parametrize(("epsilon", "width", "sampled"), CASES)
def test_largest_log_ratio_is_epsilon(
    epsilon: float, width: int, sampled: int, record_property: Callable[[str, object], None]
) -> None:
    """All reports under all records with features at α, between, and at β; the two ends attain ε."""
    encoder = MultiBit(epsilon, width, (-1.0, 3.0), sampled)
    records = [np.array(values) for values in itertools.product((-1.0, 0.5, 3.0), repeat=width)]
    logs = np.log([[probability(encoder, report, record) for record in records] for report in outputs(width, sampled)])
    largest = float((logs.max(axis=1) - logs.min(axis=1)).max())
    record_property("share of epsilon", largest / epsilon)
    assert largest == pytest.approx(epsilon, rel=1e-9)
    assert np.exp(logs).sum(axis=0) == pytest.approx(1)


@pytest.mark.parametrize(("epsilon", "width", "sampled"), CASES)
def test_unbiased_with_the_stated_variance(epsilon: float, width: int, sampled: int) -> None:
    """Exactly, by summing over all reports."""
    encoder = MultiBit(epsilon, width, (-1.0, 3.0), sampled)
    record = np.array([-1.0, 0.3, 3.0, 1.0])[:width]
    reports = outputs(width, sampled)
    chances = np.array([probability(encoder, report, record) for report in reports])
    features = np.array([encoder.rectify(report) for report in reports])
    mean = chances @ features
    assert mean == pytest.approx(record, abs=1e-9 * encoder.scale)
    assert chances @ (features - mean) ** 2 == pytest.approx(encoder.variance(record))
    half, share = 2.0, epsilon / sampled
    formula = width / sampled * (half / math.tanh(share / 2)) ** 2 - (record - 1.0) ** 2
    assert encoder.variance(record) == pytest.approx(formula)


def test_one_record_and_many_have_the_enumerated_law() -> None:
    """Device, dense rows and sparse rows: every frequency within five standard errors of its exact probability."""
    encoder = MultiBit(3.0, 3, (0.0, 1.0), 2)
    record, draws = np.array([0.0, 0.8, 1.0]), 40_000
    reports = outputs(3, 2)
    exact = np.array([probability(encoder, report, record) for report in reports])
    rng = np.random.default_rng(0)
    many = np.tile(record, (draws, 1))
    found = {
        "device": np.array([encoder.encode(record, rng) for _ in range(draws // 4)]),
        "dense": np.asarray(encoder.encode_rows(many, rng)),
        "sparse": np.asarray(encoder.encode_rows(sp.csr_array(many), rng)),
    }
    for path, rows in found.items():
        frequency = np.array([(rows == report).all(axis=1).mean() for report in reports])
        error = np.sqrt(exact * (1 - exact) / len(rows))
        assert (np.abs(frequency - exact) < 5 * error).all(), path
        assert frequency.sum() == pytest.approx(1), path


@pytest.mark.parametrize(("width", "size"), [(5, 1), (5, 2), (5, 3), (5, 5), (40, 3)])
def test_all_subsets_are_equally_likely(width: int, size: int) -> None:
    chosen = _distinct(20_000, width, size, BitStream(bytes(32)))
    assert (np.diff(chosen, axis=1) > 0).all()
    counts = np.bincount(chosen.ravel(), minlength=width)
    share = size / width
    assert np.abs(counts / 20_000 - share).max() < 5 * math.sqrt(share * (1 - share) / 20_000) + 1e-12
    subsets = np.unique(chosen, axis=0, return_counts=True)[1]
    expected = 20_000 / math.comb(width, size)
    spread = (subsets - expected) ** 2 / expected
    missing = (math.comb(width, size) - len(subsets)) * expected
    freedom = math.comb(width, size) - 1
    assert abs(spread.sum() + missing - freedom) < 5 * math.sqrt(2 * freedom) + 1e-9


def test_sparse_and_dense_rows_agree_draw_by_draw() -> None:
    rows = np.random.default_rng(2).integers(0, 2, (50, 30)).astype(np.float32)
    encoder = MultiBit(2.0, 30, (0.0, 1.0))
    dense = encoder.encode_rows(rows, np.random.default_rng(3))
    sparse = encoder.encode_rows(sp.csr_array(rows), np.random.default_rng(3))
    assert sp.issparse(dense)  # a report is sparse however the records came
    assert (dense != sparse).nnz == 0
    assert encoder.admits(dense)
    assert not encoder.admits(2 * dense)
    assert not encoder.admits(rows)


@pytest.mark.parametrize("sampled", [1, 2, 20, 30])
def test_one_record_changes_one_report(sampled: int) -> None:
    """With one generator state nothing but the changed record's row moves."""
    rng = np.random.default_rng(4)
    one = rng.random((20, 30))
    two = one.copy()
    two[7] = 1 - two[7]
    encoder = MultiBit(3.0, 30, (0.0, 1.0), sampled)
    a, b = (encoder.encode_rows(rows, np.random.default_rng(5)) for rows in (one, two))
    apart = np.asarray(abs(sp.csr_array(a) - sp.csr_array(b)).sum(axis=1)).ravel()
    assert (np.flatnonzero(apart) == 7).all()


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.5, 3.0, 4.0, 5.0, 6.3, 10.0, 28.0])
def test_the_number_of_features_is_the_best(epsilon: float) -> None:
    width = 12
    spread = [MultiBit(epsilon, width, (0.0, 1.0), m).variance(0.5) for m in range(1, width + 1)]
    assert best_sampled(epsilon, width) == 1 + int(np.argmin(spread))


def test_the_floor_alone_costs_a_third() -> None:
    """What published code does: max(1, ⌊ε/2.18⌋); worst just below ε = 4.35, where it takes one feature, not two."""

    def variance(epsilon: float, sampled: int) -> float:
        return float(MultiBit(epsilon, 50, (0.0, 1.0), sampled).variance(0.5))

    epsilons = [float(e) for e in np.linspace(0.1, 10, 500)]
    ratios = [variance(e, max(1, int(e / BEST_SHARE))) / variance(e, 0) for e in epsilons]
    assert max(ratios) == pytest.approx(4 / 3, abs=0.01)
    assert min(ratios) >= 1


@pytest.mark.parametrize("rows", [np.array([[0.0, 2.5], [1.0, 0.0]]), sp.csr_array(np.array([[0.0, 2.5], [1.0, 0.0]]))])
def test_a_feature_outside_is_refused_without_its_name_or_clipped(rows: object) -> None:
    encoder = MultiBit(1.0, 2, (0.0, 1.0))
    with pytest.raises(ParameterError, match=r"a feature lies outside the public range \[0, 1\] or is no number"):
        encoder.encode_rows(rows, np.random.default_rng(0))
    encoder.encode_rows(rows, np.random.default_rng(0), outside="clip")
    with pytest.raises(ParameterError, match="outside must be"):
        encoder.encode_rows(rows, np.random.default_rng(0), outside="ignore")  # type: ignore[arg-type]


def test_zeros_that_are_not_stored_lie_in_the_range_or_not() -> None:
    rows = sp.csr_array(np.array([[2.0, 3.0], [2.0, 0.0]]))
    with pytest.raises(ParameterError, match="a feature lies outside"):
        MultiBit(1.0, 2, (1.0, 4.0)).encode_rows(rows, np.random.default_rng(0))


def test_clipping_is_what_a_clipped_record_reports() -> None:
    wild = np.array([[-5.0, 1e12, 0.5, np.nan]])
    tame = np.array([[0.0, 1.0, 0.5, 0.5]])
    encoder = MultiBit(2.0, 4, (0.0, 1.0), 4)
    for seed in range(20):
        a, b = (encoder.encode_rows(r, np.random.default_rng(seed), outside="clip") for r in (wild, tame))
        assert np.array_equal(a, b)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_nonsense_is_refused(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        MultiBit(epsilon, 2, (0.0, 1.0))
    for width, sampled in ((0, 0), (2, 3), (2, -1)):
        with pytest.raises(ParameterError):
            MultiBit(1.0, width, (0.0, 1.0), sampled)


def test_the_less_likely_sign_is_never_rounded_below_its_bound() -> None:
    """Against exact bounds of e^(ε/m), most of all where its quotient has the coarsest last place, just below 30."""
    rng, bits = np.random.default_rng(0), 200
    for _ in range(300):
        sampled = int(rng.integers(1, 17))
        epsilon = sampled * float(rng.choice([rng.uniform(16, 29.99), rng.uniform(0.1, 16)]))
        encoder = MultiBit(epsilon, 16, (-1.0, 1.0), sampled)
        low, high = exp_bounds(Fraction(epsilon) / sampled, bits)  # around 2²⁰⁰·e^(−ε/m)
        assert Fraction(encoder.least_chance) * ((1 << bits) + low) >= high
