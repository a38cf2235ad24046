"""Row bounds hold in floating point, for any input."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.ops.rows import (
    LENGTH_COLUMNS,
    PRODUCT_PLACES,
    SUM_PLACES,
    clip_rows,
    cut_on_lattice,
    cut_rows,
    cut_sparse_rows,
    damp_rows,
    lattice_products,
    normalize_rows,
    on_lattice,
    rows_of_norm,
)

rows = st.lists(st.lists(st.floats(-(2.0**50), 2.0**50, width=32), min_size=5, max_size=5), min_size=1, max_size=8).map(
    lambda values: torch.tensor(values, dtype=torch.float32)
)


@settings(max_examples=200, deadline=None)
@given(rows)
def test_normalised_rows_never_exceed_one(x: torch.Tensor) -> None:
    norms = torch.linalg.vector_norm(normalize_rows(x).double(), dim=1)
    assert (norms <= 1).all()
    long = torch.linalg.vector_norm(x, dim=1) > 1e-15
    assert (norms[long] > 1 - 1e-5).all()


@settings(max_examples=200, deadline=None)
@given(rows, st.floats(1e-3, 1e3))
def test_clipped_rows_never_exceed_the_bound(x: torch.Tensor, bound: float) -> None:
    clipped = clip_rows(x, bound)
    assert (torch.linalg.vector_norm(clipped.double(), dim=1) <= bound).all()
    short = torch.linalg.vector_norm(x, dim=1) < bound * 0.99
    assert torch.equal(clipped[short], x[short])


@pytest.mark.parametrize("size", [1e-44, 1e-38, 1e-23, 1e-10, 1e12, 1e30])
def test_normalised_rows_of_any_size(size: float) -> None:
    """Squares vanish below 1e-23 in single precision; the bound must not."""
    x = torch.randn(50, 512, generator=torch.Generator().manual_seed(0)) * size
    norms = torch.linalg.vector_norm(normalize_rows(x).double(), dim=1)
    assert (norms <= 1).all()
    assert (norms > 0.5).all()


@pytest.mark.parametrize("bound", [1e-6, 1e-3, 0.1, 1.0, 1e6])
def test_clipped_rows_of_any_size(bound: float) -> None:
    """Up to the largest numbers of single precision, where it holds no factor that is near enough."""
    for size in (3.4e38, 1e38, 1e30, 1.0, 1e-44):
        norms = torch.linalg.vector_norm(clip_rows(size * torch.linspace(1e-3, 1, 500)[:, None], bound).double(), dim=1)
        assert (norms <= bound).all()
        assert size < bound or norms.max() > bound * (1 - 1e-5)


def test_zero_rows_stay_zero() -> None:
    zero = torch.zeros(2, 3)
    for bounded in (normalize_rows(zero), clip_rows(zero, 1.0), damp_rows(zero)):
        assert torch.equal(bounded, zero)


def test_clip_norm_must_be_positive() -> None:
    with pytest.raises(ParameterError, match="clip norm"):
        clip_rows(torch.ones(1, 2), 0.0)


def test_rows_get_one_norm_each_by_itself() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((6, 5)).astype(np.float32) * np.array([[1e-30], [1], [1e30], [0], [3], [1]], np.float32)
    found = rows_of_norm(rows, 4.5)
    norms = np.linalg.norm(found.astype(np.float64), axis=1)
    assert np.allclose(norms, [4.5, 4.5, 4.5, 0, 4.5, 4.5], rtol=1e-5)
    assert np.allclose(rows_of_norm(sp.csr_array(rows), 4.5).toarray(), found)
    changed = rows.copy()
    changed[1] = 7
    assert np.array_equal(rows_of_norm(changed, 4.5)[[0, 2, 3, 4, 5]], found[[0, 2, 3, 4, 5]])
    assert rows_of_norm(np.zeros((2, 0), np.float32), 4.5).shape == (2, 0)


def test_rows_say_how_long_they_were() -> None:
    """Columns of one norm, the same for rows of one length; between two powers of two a length moves evenly."""
    rng = np.random.default_rng(0)
    lengths = np.array([0.0, 1e-9, 2.0**-8, 0.3, 1.0, 1.5, 2.0, 3.0, 400.0, 1e12])
    rows = rng.standard_normal((10, 7))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True) * lengths[:, None]).astype(np.float32)
    found = rows_of_norm(rows, 4.5, 2.0)
    assert found.dtype == np.float32
    assert np.array_equal(found[:, :7], rows_of_norm(rows, 4.5))
    assert np.allclose(rows_of_norm(sp.csr_array(rows), 4.5, 2.0).toarray(), found)
    told = found[:, 7:]
    assert told.shape[1] == LENGTH_COLUMNS
    assert np.allclose(np.linalg.norm(told, axis=1), 2.0)
    assert [np.flatnonzero(row > 1e-3).tolist() for row in told] == [
        [0], [0], [0], [6, 7], [8], [8, 9], [9], [9, 10], [16, 17], [17]
    ]  # fmt: skip
    assert told[5][8] == pytest.approx(told[5][9], rel=1e-5)
    changed = rows.copy()
    changed[3] = 1e6
    assert np.array_equal(np.delete(rows_of_norm(changed, 4.5, 2.0), 3, 0), np.delete(found, 3, 0))


def test_cut_rows_hold_for_every_input_dense_or_sparse() -> None:
    """Too long, short, too long to measure, and not finite; CSR with an entry given twice counts as their sum."""
    given = np.array([[3.0, 4.0], [0.1, 0.0], [1e200, 1e200], [np.nan, 1.0], [0.0, -np.inf], [0.0, 0.0]])
    expected = np.array([[1.2, 1.6], [0.1, 0.0], [0, 0], [0, 0], [0, 0], [0, 0]])
    for found in (cut_rows(given, 2.0), cut_sparse_rows(sp.csr_array(given), 2.0).toarray()):
        assert np.allclose(found, expected)
        assert (np.linalg.norm(found, axis=1) <= 2.0).all()
    twice = sp.csr_array((np.array([3.0, 3.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    assert cut_sparse_rows(twice, 1.0).toarray().tolist() == [[0.0, pytest.approx(1.0)]]
    assert twice.data.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("width", [64, 1024, 4096, 20_000])
def test_norms_hold_at_every_width(width: int) -> None:
    """A few ones, then entries whose squares vanish beside them in single precision one at a time, not together."""
    row = torch.full((1, width), 2.0**-12)
    row[:, :4] = 1.0
    for bounded in (normalize_rows(row), clip_rows(row, 1.0), clip_rows(1e3 * row, 1.0)):
        assert float(torch.linalg.vector_norm(bounded.double())) <= 1.0


def test_rows_on_a_lattice_are_no_longer_and_their_sums_are_exact() -> None:
    """The same rows, added in any order, give the same bits, though other doubles do not."""
    rng = np.random.default_rng(0)
    rows = cut_rows(rng.standard_normal((20_000, 3)) * 10.0 ** rng.integers(-6, 3, (20_000, 1)), 1.0)
    found = on_lattice(rows, SUM_PLACES)
    assert (np.abs(found) <= np.abs(rows)).all()
    assert np.abs(found - rows).max() < 2.0**-SUM_PLACES
    orders = [rng.permutation(len(rows)) for _ in range(5)]
    assert len({np.cumsum(found[order], axis=0)[-1].tobytes() for order in orders}) == 1
    assert len({np.cumsum(rows[order], axis=0)[-1].tobytes() for order in orders}) > 1


@pytest.mark.parametrize("norm", [1.0, 0.5, 2**-0.5])
def test_single_precision_holds_rows_on_a_lattice_exactly(norm: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40_000, 3)) * 10.0 ** rng.integers(-9, 3, (40_000, 1))
    rows[:3] = np.eye(3)
    rows[3] = np.nan
    found = cut_on_lattice(rows, norm, SUM_PLACES)
    assert found.dtype == np.float32
    assert np.array_equal(found.astype(np.float64), on_lattice(cut_rows(rows, norm), SUM_PLACES))
    single = rows[4:].astype(np.float32) / 1e4
    assert np.array_equal(on_lattice(single, SUM_PLACES), on_lattice(single.astype(np.float64), SUM_PLACES))


def test_tables_of_products_are_rounded_once() -> None:
    """Nodes with up to 2³⁰ neighbours, several portions, cells of either sign that all but cancel."""
    rng, scale = np.random.default_rng(0), 2**PRODUCT_PLACES
    rows = on_lattice(rng.uniform(-1, 1, (35_000, 2)), PRODUCT_PLACES).astype(np.float32)
    sums = on_lattice(rng.uniform(-1, 1, (35_000, 2)) * 2.0 ** rng.integers(0, 31, (35_000, 1)), PRODUCT_PLACES)
    rows[:, 1], sums[:, 1] = np.abs(rows[:, 1]), np.abs(sums[:, 1])
    whole = [[int(value) for value in column] for column in (rows.astype(np.float64) * scale).T]
    added = [[int(value) for value in column] for column in (sums * scale).T]
    exact = [[Fraction(sum(map(int.__mul__, one, two)), scale**2) for two in added] for one in whole]
    rounded = np.array([[float(cell) for cell in row] for row in exact])
    assert np.array_equal(lattice_products(rows, sums), rounded)
    assert not np.array_equal(rows.T.astype(np.float64) @ sums, rounded)
