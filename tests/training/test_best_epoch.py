"""The epoch that is kept, and dropout of sparse features."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from discreet.methods.metrics import balanced_accuracy
from discreet.ops.sparse import SparseMatrix
from discreet.training.best_epoch import BestEpoch
from discreet.training.networks import Dropout, Linear


def test_the_best_epoch_is_put_back() -> None:
    network = Linear(1, 2, torch.Generator().manual_seed(0))
    inputs, labels = torch.ones(4, 1), torch.tensor([0, 0, 0, 1])
    best = BestEpoch(network, lambda rows: network(inputs[rows]), labels, torch.arange(4), every=1)
    biases = [
        torch.tensor([-9.0, 9.0]),
        torch.tensor([9.0, -9.0]),
        torch.tensor([1.0, -1.0]),
        torch.tensor([-1.0, 1.0]),
    ]
    for bias in biases:
        with torch.no_grad():
            network.weight.zero_()
            network.bias.copy_(bias)
        best.look()
    best.restore()
    assert torch.equal(network.bias, biases[2])  # three of four right, with less loss than the second


def test_another_measure_keeps_another_epoch() -> None:
    """One class throughout is right four times of five; balanced accuracy prefers who finds the other."""
    network = Linear(1, 2, torch.Generator().manual_seed(0))
    inputs, labels = torch.tensor([[1.0], [1.0], [-1.0], [-1.0], [-1.0]]), torch.tensor([0, 0, 0, 0, 1])
    rows, kept = torch.arange(5), []
    for measure in (None, balanced_accuracy):
        best = BestEpoch(network, lambda at: network(inputs[at]), labels, rows, every=1, measure=measure)
        kept.append(_kept(network, best))
    assert kept == [0, 1]


def _kept(network: Linear, best: BestEpoch) -> int:
    states = [(torch.zeros(1, 2), torch.tensor([9.0, -9.0])), (torch.tensor([[1.0, -1.0]]), torch.zeros(2))]
    best.look()  # the first epoch is not judged before it has run
    for weight, bias in states:
        with torch.no_grad():
            network.weight.copy_(weight)
            network.bias.copy_(bias)
        best.look()
    best.restore()
    return next(place for place, state in enumerate(states) if torch.equal(network.weight, state[0]))


def test_without_validation_nodes_the_last_epoch_stays() -> None:
    network = Linear(1, 2, torch.Generator().manual_seed(0))
    best = BestEpoch(network, lambda rows: network(torch.ones(0, 1)), torch.empty(0), torch.empty(0), every=1)
    before = network.weight.clone()
    best.look()
    best.restore()
    assert torch.equal(network.weight, before)


def test_dropout_of_sparse_features_drops_stored_entries() -> None:
    matrix = SparseMatrix(sp.csr_array(np.ones((50, 40), dtype=np.float32)))
    dropout = Dropout(0.25, torch.Generator().manual_seed(0))
    kept = dropout(matrix).csr.to_dense()
    assert set(kept.unique().tolist()) == {0.0, np.float32(1 / 0.75)}
    assert abs(float((kept > 0).float().mean()) - 0.75) < 0.05
    assert dropout.eval()(matrix) is matrix
