"""Inner products in machine code against exact ones, in one thread and in several."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from discreet.ops import inner_products
from discreet.ops.inner_products import outer_squares, row_grams, row_squares, scale_rows
from discreet.ops.layer_rows import Sizes, gamma, joint_factor


def rows_of(count: int, width: int) -> torch.Tensor:
    drawn = torch.randn(count, width, generator=torch.Generator().manual_seed(width))
    return drawn * 10.0 ** torch.arange(-8, 8).repeat(width)[:width]


def exact(one: torch.Tensor, other: torch.Tensor) -> Fraction:
    return sum((Fraction(a) * Fraction(b) for a, b in zip(one.tolist(), other.tolist(), strict=True)), Fraction(0))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("width", [1, 7, 64, 501])
def test_they_err_by_less_than_is_proved(width: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inner_products, "_PORTION", 4 * width)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rows, slots = rows_of(12, width), 3
    squares, grams = row_squares(rows), row_grams(rows, slots)
    for number, row in enumerate(rows):
        wanted = exact(row, row)
        assert abs(Fraction(float(squares[number])) - wanted) <= Fraction(gamma(width)) * wanted
        for other in range(slots):
            beside = rows[number - number % slots + other]
            lengths = Fraction(float(row.double().norm() * beside.double().norm() * (1 + 1e-9)))
            found = Fraction(float(grams[number // slots, number % slots, other]))
            assert abs(found - exact(row, beside)) <= Fraction(gamma(width)) * lengths


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("beside", [0.0, 1.0])
def test_squares_of_outer_products_err_by_less_than_is_proved(
    beside: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inner_products, "_PORTION", 100)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rows, others, factor = rows_of(12, 37), rows_of(12, 7), 1 + 2.0**-30
    for row, other, found in zip(rows, others, outer_squares(rows, others, beside, factor), strict=True):
        wanted = (exact(row, row) + Fraction(beside)) * exact(other, other) * Fraction(factor)
        assert abs(Fraction(float(found)) - wanted) <= Fraction(gamma(37 + 7 + 3)) * wanted


def test_an_outer_product_that_is_not_finite_is_none() -> None:
    rows, others = torch.ones(3, 5), torch.ones(3, 2)
    rows[0, 1], others[1, 0] = float("inf"), float("nan")
    assert torch.isfinite(outer_squares(rows, others, 1.0, 1.0)).tolist() == [False, False, True]


def test_scaled_rows_are_exact_but_for_one_rounding_and_their_sum_for_one_more_per_row() -> None:
    rows, factors, total = (
        rows_of(11, 9),
        torch.linspace(0.1, 0.9, 11, dtype=torch.float64),
        torch.full((9,), 5.0).double(),
    )
    scaled = torch.cat(
        [scale_rows(rows[:6], factors[:6], total), scale_rows(rows[6:], factors[6:], total, goes_on=True)]
    )
    assert torch.equal(scaled, rows.double() * factors.unsqueeze(1))
    for column, found in zip(scaled.T, total, strict=True):
        wanted = sum((Fraction(number) for number in column.tolist()), Fraction(0))
        together = sum((Fraction(abs(number)) for number in column.tolist()), Fraction(0))
        assert abs(Fraction(float(found)) - wanted) <= Fraction(gamma(11)) * together
    half = torch.empty(9, dtype=torch.float64)
    assert torch.equal(scale_rows(rows.bfloat16(), factors, half), rows.bfloat16().double() * factors.unsqueeze(1))


def test_factors_over_all_layers_are_those_of_the_sizes_together() -> None:
    drawn = torch.rand(3, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    drawn[0, 3], drawn[1, 4], drawn[:, 5] = float("inf"), float("nan"), 0.0
    layers = [Sizes(square, square) for square in drawn]
    found = joint_factor(layers, 1.5)
    assert torch.allclose(found, Sizes.of_layers(layers).factor(1.5), rtol=4e-16, atol=0)
    assert found[3] == 0
    assert found[4] == 0
    assert found[5] == 1
    cancelling = [Sizes(square, square + 1e6) for square in drawn]
    assert (joint_factor(cancelling, 1.5) < found).any()


def test_what_is_not_finite_stays_so_and_touches_its_own_example_alone() -> None:
    rows = rows_of(9, 20)
    rows[4, 3], rows[7, 1] = float("inf"), float("nan")
    squares, grams = row_squares(rows), row_grams(rows, 3)
    assert torch.isfinite(squares).tolist() == [number not in (4, 7) for number in range(9)]
    assert torch.isfinite(grams).flatten(1).all(1).tolist() == [True, False, False]


def test_a_row_has_the_same_bits_wherever_it_stands() -> None:
    rows = rows_of(30, 37)
    assert torch.equal(row_squares(rows[5:]), row_squares(rows)[5:])
    assert torch.equal(row_grams(rows[6:18], 3), row_grams(rows, 3)[2:6])


def test_rows_in_half_precision_are_taken_too() -> None:
    rows = rows_of(6, 5).half()
    wanted = rows.double().reshape(2, 3, -1)
    assert torch.allclose(row_grams(rows, 3), wanted @ wanted.mT)
    assert torch.allclose(row_squares(rows), rows.double().square().sum(1))
