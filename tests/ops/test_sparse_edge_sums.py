"""Sums over edges against plain algebra and against scipy's bits, whatever the threads and the portions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from discreet.arrays import FloatArray
from discreet.graph.synthetic import csbm
from discreet.ops import sparse as module
from discreet.ops.sparse import Aggregation, edge_sums, hop_matrix, neighbour_sums


@pytest.fixture
def adjacency() -> sp.csr_array:
    return csbm(3000, 4, average_degree=12.0).adjacency


def rows_for(count: int, width: int = 5) -> FloatArray:
    return np.random.default_rng(0).standard_normal((count, width)) * 10.0 ** np.arange(-6, width - 6)


@pytest.mark.parametrize("width", [1, 2, 4, 5, 8, 16, 17])
def test_machine_code_has_the_bits_of_plain_sums(
    width: int, adjacency: sp.csr_array, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_for(3000, width)
    plain = edge_sums(adjacency, rows)
    monkeypatch.setattr(module, "_FEW_NUMBERS", 0)
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            assert np.array_equal(edge_sums(adjacency, rows), plain)
    finally:
        torch.set_num_threads(before)


def test_rows_do_not_depend_on_which_others_are_asked_for(
    adjacency: sp.csr_array, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, some = rows_for(3000), np.flatnonzero(np.random.default_rng(2).random(3000) < 0.3)
    whole = edge_sums(adjacency, rows)
    assert np.array_equal(edge_sums(adjacency, rows, some), whole[some])
    monkeypatch.setattr(module, "_FEW_NUMBERS", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert np.array_equal(edge_sums(adjacency, rows, some), whole[some])
    assert edge_sums(adjacency, rows, some[:1]).shape == (1, 5)


@pytest.mark.parametrize("small", [0, 1 << 30])
def test_rows_in_single_precision_are_added_as_doubles(
    adjacency: sp.csr_array, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FEW_NUMBERS", small)
    rows = rows_for(3000).astype(np.float32)
    assert np.array_equal(edge_sums(adjacency, rows), edge_sums(adjacency, rows.astype(np.float64)))
    assert edge_sums(adjacency, rows).dtype == np.float64


def test_portions_hold_all_rows_in_order(adjacency: sp.csr_array) -> None:
    ends = module.row_portions(adjacency.indptr, np.arange(3000), 16)
    assert ends[0] == 0
    assert ends[-1] == 3000
    assert ends == sorted(ends)
    entries = np.diff(adjacency.indptr[ends])
    assert entries.max() < 2 * entries.mean()


@pytest.mark.parametrize("aggregation", ["sum", "mean", "symmetric"])
def test_one_hop_is_what_the_hop_matrix_says(aggregation: Aggregation) -> None:
    graph, rows = csbm(300, 4), rows_for(300)
    expected = (hop_matrix(graph, aggregation).double() @ torch.from_numpy(rows)).numpy()
    assert np.allclose(neighbour_sums(graph, rows, aggregation), expected, rtol=1e-6)
