"""Gradients that are worked out directly are those of autograd."""

from __future__ import annotations

import pytest
import scipy.sparse as sp
import torch
from torch import nn

from discreet.ops.sparse import SparseMatrix
from discreet.training.descent import TrainOptions, train, train_on_rows
from discreet.training.direct import DirectGradients, direct_gradients
from discreet.training.networks import MLP, Head, Linear

CLASSES = 3
MLP_WIDTHS = ([10, 64, CLASSES], [10, CLASSES], [10, 32, 64, CLASSES])


def network_of(kind: str, widths: list[int], dropout: float = 0.5) -> MLP | Head:
    generator = torch.Generator().manual_seed(1)
    return (Head if kind == "head" else MLP)(widths, "relu", dropout, generator)


def rows_of(count: int, inputs: int, *, sparse: bool) -> torch.Tensor | SparseMatrix:
    dense = torch.randn(count, inputs, generator=torch.Generator().manual_seed(2))
    return SparseMatrix(sp.csr_array((dense * (dense > 0.5)).numpy())) if sparse else dense


def labels_of(count: int) -> torch.Tensor:
    return torch.randint(CLASSES, (count,), generator=torch.Generator().manual_seed(3))


def by_autograd(network, rows, labels, weights):
    loss = nn.functional.cross_entropy(network(rows), labels, weights)
    return torch.autograd.grad(loss, list(network.parameters()))


@pytest.mark.parametrize("weights", [None, torch.tensor([1.0, 5.0, 0.2])])
@pytest.mark.parametrize("count", [256, 220, 5])
@pytest.mark.parametrize(
    ("kind", "widths", "sparse"),
    [
        *(("mlp", widths, sparse) for widths in MLP_WIDTHS for sparse in (False, True)),
        ("head", [10, 64, CLASSES], False),  # heads read dense rows
    ],
)
def test_the_gradients_of_autograd_to_the_same_bits(kind, widths, sparse, count, weights):
    network, rows, labels = network_of(kind, widths).train(), rows_of(count, 10, sparse=sparse), labels_of(count)
    dropout = (network.network if isinstance(network, Head) else network).dropout
    drawn = dropout.generator.get_state()
    expected = by_autograd(network, rows, labels, weights)
    dropout.generator.set_state(drawn)
    found = DirectGradients(network, weights)(rows, labels)
    assert [part.shape for part in found] == [p.shape for p in network.parameters()]
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def test_hidden_widths_that_fill_no_tile_agree_up_to_rounding():
    network, rows, labels = (
        network_of("head", [7, 21, 33, CLASSES], dropout=0.0),
        rows_of(50, 7, sparse=False),
        labels_of(50),
    )
    for one, other in zip(
        DirectGradients(network)(rows, labels), by_autograd(network, rows, labels, None), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


def test_training_ends_at_the_same_weights():
    rows, labels, options = rows_of(300, 10, sparse=False), labels_of(300), TrainOptions(3, 0.01, 5e-4, 64)
    one, other = network_of("mlp", [10, 64, CLASSES]), network_of("mlp", [10, 64, CLASSES])
    order = [torch.Generator().manual_seed(4) for _ in range(2)]
    train_on_rows(one, lambda batch: rows[batch], labels, torch.arange(300), options, order[0])
    train(other, lambda batch: other(rows[batch]), labels, torch.arange(300), options, order[1])
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))
    assert not one.training


def test_other_networks_are_left_to_autograd():
    generator = torch.Generator()
    assert direct_gradients(MLP([4, 8, 2], "tanh", 0.0, generator), None) is None
    assert (
        direct_gradients(nn.Sequential(MLP([4, 8, 4], "relu", 0.0, generator), Linear(4, 2, generator)), None) is None
    )
    assert direct_gradients(nn.Sequential(MLP([4, 8, 2], "relu", 0.0, generator), nn.Identity()), None) is not None
