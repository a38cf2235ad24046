"""Rows of a product are the same bits in every company: over many shapes, subsets and places."""

from __future__ import annotations

import itertools

import pytest
import torch

from discreet.ops import rows
from discreet.ops.rows import row_product

WIDTHS = [1, 2, 3, 5, 7, 10, 16, 17, 33, 40, 64, 100, 128, 300]


def subsets(count, generator):
    """Nearly all rows, all but the first, few, one, none: each row then stands at another place, in another shape."""
    yield torch.arange(1, count)
    for rate in (0.95, 0.5, 0.1, 0.02):
        yield torch.nonzero(torch.rand(count, generator=generator) < rate).squeeze(1)
    yield torch.tensor([count // 3])
    yield torch.arange(0)


def forward_and_backward(rows, weight, gradient):
    given = rows.clone().requires_grad_()
    product = row_product(given, weight)
    return [product.detach(), *torch.autograd.grad(product, given, gradient), row_product(rows, weight)]


def differing(inputs, outputs, count=430):
    """How many products have a row that depends on its company."""
    generator = torch.Generator().manual_seed(inputs * 1000 + outputs)
    rows, gradient, weight = (
        torch.randn(size, generator=generator) for size in ((count, inputs), (count, outputs), (inputs, outputs))
    )
    whole = forward_and_backward(rows, weight, gradient)
    assert torch.allclose(whole[0], rows @ weight, rtol=1e-4, atol=1e-4)
    assert torch.allclose(whole[1], gradient @ weight.T, rtol=1e-4, atol=1e-4)
    return sum(
        not torch.equal(one, all_of_them[chosen])
        for chosen in subsets(count, generator)
        for one, all_of_them in zip(forward_and_backward(rows[chosen], weight, gradient[chosen]), whole, strict=True)
    )


def test_a_row_is_the_same_bits_in_every_company():
    assert not any(differing(*sizes) for sizes in itertools.product([*WIDTHS[::2], 33, 767], WIDTHS))


def test_plain_products_are_not(monkeypatch):
    """What the tiles are for: without them this test's own measure finds rows that differ."""
    monkeypatch.setattr(rows, "TILE", 1)
    assert any(differing(*sizes) for sizes in itertools.product(WIDTHS, WIDTHS))


def test_blocks_of_a_fixed_shape(monkeypatch):
    """The way of other devices, on this one."""
    monkeypatch.setattr(rows, "_on_processor", rows._in_blocks)
    monkeypatch.setattr(rows, "BLOCK", 64)
    assert not any(differing(*sizes) for sizes in itertools.product([3, 16, 100], [1, 7, 40]))


@pytest.mark.parametrize("shape", [(5, 4, 6), (0, 6), (2, 0, 6), (3, 0)])
def test_shapes(shape):
    rows, weight = torch.randn(shape), torch.randn(shape[-1], 9)
    assert row_product(rows, weight).shape == (*shape[:-1], 9)
    given = rows.clone().requires_grad_()
    row_product(given, weight).sum().backward()
    assert given.grad.shape == given.shape


def test_the_weight_has_its_gradient():
    rows, weight = torch.randn(37, 6), torch.randn(6, 9, requires_grad=True)
    (found,) = torch.autograd.grad(row_product(rows, weight).square().sum(), weight)
    assert torch.allclose(found, 2 * rows.T @ (rows @ weight), rtol=1e-4, atol=1e-4)
