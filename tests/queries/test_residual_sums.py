"""Residuals added up along reversed entries: what one edge moves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.errors import UnsupportedError
from discreet.privacy.levels import EdgeLevel, NodeLevel
from discreet.queries.residual_sums import ResidualSums
from tests.plain_graphs import make_graph


def test_a_sender_gathers_what_its_receivers_have() -> None:
    _, private = EdgeLevel(True).split(make_graph([(0, 1), (0, 2)], 3))
    rows = np.array([[9.0], [0.5], [0.25]])
    assert ResidualSums(EdgeLevel(True), 3, 1).answer(private, residuals=rows).tolist() == [[0.75], [0.0], [0.0]]


@pytest.mark.parametrize("directed", [False, True])
def test_one_edge_attains_the_bound(directed: bool) -> None:
    level = EdgeLevel(directed)
    query = ResidualSums(level, 3, 1)
    with_edge, without = (
        query.answer(level.split(make_graph(pairs, 3, directed))[1], residuals=np.full((3, 1), 5.0))
        for pairs in ([(0, 1), (1, 2)], [(1, 2)])
    )
    assert query.bound().sensitivity == pytest.approx(1.0 if directed else math.sqrt(2))
    assert np.linalg.norm(with_edge - without) == pytest.approx(query.bound().sensitivity)


def test_sums_over_many_edges_are_exact() -> None:
    _, private = EdgeLevel(True).split(make_graph([(0, receiver) for receiver in range(1, 999)], 999))
    rows = np.random.default_rng(0).uniform(0.5, 1.0, (999, 1))
    found = ResidualSums(EdgeLevel(True), 999, 1).answer(private, residuals=rows)[0, 0]
    assert found * 2**23 == sum(math.floor(row * 2**23) for row in rows[1:, 0])


def test_private_labels_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="labels"):
        ResidualSums(NodeLevel(3), 3, 1).bound()
