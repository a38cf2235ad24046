"""Pairs as whole numbers: every pair once, and back again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from discreet.ops.cells import Cells


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("directed", [False, True])
def test_every_pair_has_one_number(n: int, directed: bool) -> None:
    cells = Cells(n, directed)
    pairs = list(itertools.permutations(range(n), 2) if directed else itertools.combinations(range(n), 2))
    sources, targets = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    numbers = cells.numbers(sources, targets)
    assert sorted(numbers) == list(range(cells.count))
    if not directed:
        assert np.array_equal(cells.numbers(targets, sources), numbers)
    again = np.array(cells.ends(numbers)).T
    assert np.array_equal(again if directed else np.sort(again, axis=1), np.array(pairs).reshape(-1, 2))


@pytest.mark.parametrize("directed", [False, True])
def test_adjacency(directed: bool) -> None:
    matrix = Cells(5, directed).adjacency(Cells(5, directed).numbers(np.array([0, 3]), np.array([4, 1]))).toarray()
    wanted = np.zeros((5, 5))
    wanted[4, 0] = wanted[1, 3] = 1
    assert np.array_equal(matrix, wanted if directed else wanted + wanted.T)


def test_numbers_of_large_graphs_do_not_wrap() -> None:
    cells, last = Cells(3_000_000, False), np.array([2_999_999], dtype=np.int32)
    number = cells.numbers(last, np.array([1_499_998], dtype=np.int32))
    assert 0 <= number[0] < cells.count
    assert {int(end[0]) for end in cells.ends(number)} == {2_999_999, 1_499_998}
