"""Rows of a table in slots: the same products, norms and sums as with the rows written out; bits that stand alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from discreet.ops import inner_products, slot_rows
from discreet.ops.clipping import ClipRule, clipped_sum
from discreet.ops.slot_rows import RowTable, SlotRows, SlotsOnDevice, slot_grams
from discreet.ops.sparse import SparseMatrix
from discreet.training.networks import Linear
from tests.ops import exact_rows

WIDTH, NODES = 23, 60


def table_of(rng, sparse, nodes=NODES):
    rows = (rng.standard_normal((nodes, WIDTH)) * (rng.random((nodes, WIDTH)) < 0.3)).astype(np.float32)
    rows[-1] = 0
    return RowTable(SparseMatrix(sp.csr_array(rows)) if sparse else torch.tensor(rows)), rows


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("examples", [1, 5, 40])
def test_products_norms_and_sums(examples, sparse):
    rng = np.random.default_rng(examples)
    table, rows = table_of(rng, sparse)
    index = rng.integers(0, NODES, (examples, 4))
    written = rows[index.reshape(-1)].astype(np.float64)
    slots, weight, dense = SlotRows(table, index), torch.randn(WIDTH, 7), torch.randn(examples * 4, 5).double()
    assert torch.allclose(slots @ weight, torch.tensor(written).float() @ weight, atol=1e-5)
    assert np.allclose(slots.row_squares, (written**2).sum(1))
    assert np.allclose(slots.transposed_times(dense), written.T @ dense.numpy())
    blocks = written.reshape(examples, 4, WIDTH)
    assert np.allclose(slot_grams(table, index), blocks @ blocks.transpose(0, 2, 1))
    assert torch.equal(slots.grams(0, examples), slot_grams(table, index))
    assert np.array_equal(slots.dense(), written)


def test_sparse_inner_products_are_added_up_along_the_columns(monkeypatch):
    """In portions too, and where an example holds a row twice or nobody's."""
    monkeypatch.setattr(inner_products, "_PORTION", 3 * 16)
    rng = np.random.default_rng(2)
    table, rows = table_of(rng, sparse=True)
    index = rng.integers(0, NODES, (20, 4))
    index[0] = [5, 5, NODES - 1, NODES - 1]
    found = slot_grams(table, index).numpy()
    for example, one, other in np.ndindex(found.shape):
        total = 0.0
        for left, right in zip(rows[index[example, one]], rows[index[example, other]], strict=True):
            total += float(left) * float(right)
        assert found[example, one, other] == total


@pytest.mark.parametrize("sparse", [False, True])
def test_a_slot_has_the_bits_of_its_row_in_every_company(sparse):
    """Whether the whole table is read or a part of it."""
    rng = np.random.default_rng(0)
    table, _ = table_of(rng, sparse, 500)
    index, weight = rng.integers(0, 500, (300, 4)), torch.randn(WIDTH, 20)
    whole = (SlotRows(table, index) @ weight).view(300, 4, -1)
    for chosen in ([0], [7, 299], np.arange(1, 60), np.arange(1, 300)):
        assert torch.equal((SlotRows(table, index[chosen]) @ weight).view(-1, 4, 20), whole[chosen])


@pytest.mark.parametrize("nodes", [NODES, 2000])
def test_places_on_the_device_give_the_same(nodes, monkeypatch):
    """Whether the whole table is read or rows are copied out of it, a few at a time."""
    monkeypatch.setattr(slot_rows, "_MOST_COPIED", 50 * WIDTH)
    rng = np.random.default_rng(1)
    table, rows = table_of(rng, False, nodes)
    index, weight = rng.integers(0, nodes, (40, 4)), torch.randn(WIDTH, 7)
    dense = torch.randn(160, 5).double()
    host = SlotRows(table, index)
    device = SlotsOnDevice(table, torch.from_numpy(index), slot_grams(table, index))
    assert device.shape == host.shape
    assert device._reads_whole == (nodes == NODES)
    assert torch.equal(device @ weight, host @ weight)
    assert torch.equal(device.row_squares, host.row_squares)
    assert torch.equal(device.grams(3, 9), host.grams(3, 9))
    assert torch.equal(device.dense(), host.dense())
    assert np.allclose(device.transposed_times(dense), rows[index.reshape(-1)].T.astype(np.float64) @ dense.numpy())


class Given(nn.Module):
    """One layer over slots, whose outputs' gradients are given."""

    def __init__(self, rows, gradients):
        super().__init__()
        self.layer = Linear(WIDTH, gradients.shape[2], torch.Generator().manual_seed(0))
        self.rows, self.gradients = rows, gradients

    def losses(self):
        out = self.layer(self.rows).view(self.gradients.shape)
        return (out * self.gradients).sum((1, 2))


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_terms_are_clipped_however_slots_cancel(sparse, kept):
    """Against exact arithmetic: own row big + p, another's −big + p, as in the rows that broke single precision."""
    rng = np.random.default_rng(3)
    big = 1e4 * rng.standard_normal(WIDTH)
    rows = np.stack([big + rng.standard_normal(WIDTH), -big + rng.standard_normal(WIDTH), rng.standard_normal(WIDTH)])
    rows = np.concatenate([rows, np.zeros((1, WIDTH))]).astype(np.float32)
    table = RowTable(SparseMatrix(sp.csr_array(rows)) if sparse else torch.tensor(rows))
    index = np.array([[0, 1, 3], [0, 0, 1], [2, 3, 3], [2, 0, 1], [1, 2, 0]])
    gradients = torch.ones(5, 3, 2) * torch.randn(5, 1, 2)
    model = Given(SlotRows(table, index, slot_grams(table, index) if kept else None), gradients)
    plain = Given(torch.tensor(rows[index.reshape(-1)]), gradients)
    rule = ClipRule.flat(0.5)
    found, expected = (clipped_sum(m, m.losses, rule, terms=True) for m in (model, plain))
    assert torch.allclose(found.flat, expected.flat, rtol=1e-9, atol=1e-12)
    assert torch.allclose(found.terms.sum(0), found.flat, atol=1e-9)
    assert all(exact_rows.length(term.numpy()) <= 0.5 for term in found.terms)
    assert max(exact_rows.length(term.numpy()) for term in found.terms) > 0.49


def test_an_example_that_overflows_leaves_the_others_alone():
    rng = np.random.default_rng(4)
    table, _ = table_of(rng, sparse=False)
    index, gradients = rng.integers(0, NODES, (6, 3)), torch.randn(6, 3, 2)
    gradients[2, 1, 0] = torch.inf
    model, rest = Given(SlotRows(table, index), gradients), [0, 1, 3, 4, 5]
    others = Given(SlotRows(table, index[rest]), gradients[rest])
    rule = ClipRule.flat(0.5)
    found = clipped_sum(model, model.losses, rule).flat
    assert torch.allclose(found, clipped_sum(others, others.losses, rule).flat, atol=1e-9)


def test_narrow_features_are_written_out_whatever_they_hold():
    """By shape alone: two graphs that differ in one record must not go different ways."""
    empty, full = (sp.csr_array(np.full((9, 30), value, dtype=np.float32)) for value in (0, 1))
    assert all(isinstance(RowTable.of(given, "cpu").rows, torch.Tensor) for given in (empty, full, full.toarray()))
    wide = sp.csr_array((9, 5000), dtype=np.float32)
    assert isinstance(RowTable.of(wide, "cpu").rows, SparseMatrix)
