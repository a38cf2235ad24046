"""Links and what nodes hear: bounds that are met, by brute force over all small graphs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from discreet.graph.graph import Graph
from discreet.ops.evidence import heard, heard_sensitivity, link_counts, link_sensitivity, message_bound
from discreet.privacy.levels import EdgeLevel

Record = Callable[[str, object], None]


def graph_of(edges: list[tuple[int, int]], directed: bool) -> Graph:
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Graph.from_edges(ends[:, 0], ends[:, 1], np.eye(4), directed=directed)


def neighbours(directed: bool) -> Iterator[tuple[Graph, Graph, tuple[int, int]]]:
    """Every graph of four nodes (sampled if directed) beside itself without one edge."""
    rng = np.random.default_rng(0)
    pairs = list((itertools.permutations if directed else itertools.combinations)(range(4), 2))
    for number in range(300 if directed else 64):
        present = rng.integers(0, 2, len(pairs)) if directed else [number >> i & 1 for i in range(len(pairs))]
        chosen = [pair for pair, on in zip(pairs, present, strict=True) if on]
        for gone in chosen:
            yield graph_of(chosen, directed), graph_of([pair for pair in chosen if pair != gone], directed), gone


@pytest.mark.parametrize("directed", [False, True])
def test_links_by_brute_force(directed: bool, record_property: Record) -> None:
    rng = np.random.default_rng(0)
    told = [np.eye(3)[[0, 0, 0, 0]], np.eye(3)[[0, 1, 2, 0]], *rng.dirichlet(np.ones(3), (3, 4))]
    worst = max(
        float(np.linalg.norm(link_counts(one, rows) - link_counts(two, rows)))
        for one, two, _ in neighbours(directed)
        for rows in told
    )
    declared, _ = link_sensitivity(EdgeLevel(directed))
    record_property("tightness", worst / declared)
    assert 0.999 * declared <= worst <= declared * (1 + 1e-12)


@pytest.mark.parametrize("directed", [False, True])
def test_what_is_heard_by_brute_force(directed: bool, record_property: Record) -> None:
    """Labels, opinions, and messages far longer than the bound; every set of receivers; met in each of three cases."""
    rng = np.random.default_rng(0)
    bound = message_bound(3)
    messages = [np.eye(3)[[0, 1, 2, 0]] - 1 / 3, rng.dirichlet(np.ones(3), 4) - 1 / 3, 9 * rng.normal(size=(4, 5))]
    declared, _ = heard_sensitivity(EdgeLevel(directed), bound)
    worst = {0: 0.0, 1: 0.0, 2: 0.0}
    for one, two, (u, v) in neighbours(directed):
        for rows in messages:
            receivers = rng.random(4) < 0.5
            moved = heard(one, rows, receivers, bound) - heard(two, rows, receivers, bound)
            case = int(receivers[u]) + int(receivers[v])
            worst[case] = max(worst[case], float(np.linalg.norm(moved)))
    record_property("tightness by number of receivers", {case: found / declared for case, found in worst.items()})
    for found in worst.values():
        assert 0.999 * declared <= found <= declared * (1 + 1e-12)


def test_who_hears_whom() -> None:
    """Nodes 0 and 1 receive; 2 and 3 do not."""
    graph = graph_of([(0, 1), (0, 2), (2, 3)], directed=False)
    rows = heard(graph, np.eye(4), np.array([True, True, False, False]), 1.0)
    half = 2**-0.5
    assert np.allclose(rows, [[0, half, 1, 0], [half, 0, 0, 0], [0, 0, 0, half], [0, 0, half, 0]])


def test_a_short_message_of_a_receiver_is_told_as_it_is() -> None:
    graph = graph_of([(0, 1)], directed=False)
    rows = heard(graph, 0.5 * np.eye(4), np.ones(4, dtype=bool), 1.0)
    assert np.allclose(rows[:2, :2], [[0, 0.5], [0.5, 0]])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("message", [np.nan, np.inf, 1e200])
def test_no_message_reveals_its_edges_by_being_no_number(directed: bool, message: float) -> None:
    rows = np.full((4, 3), message)
    for receivers in (np.ones(4, dtype=bool), np.zeros(4, dtype=bool)):
        assert np.isfinite(heard(graph_of([(0, 1), (1, 2)], directed), rows, receivers, message_bound(3))).all()


@pytest.mark.parametrize("directed", [False, True])
def test_with_one_class_nothing_is_told(directed: bool) -> None:
    """The bound is 0 there, and 0/0 would say who has a neighbour."""
    rows = heard(graph_of([(0, 1), (1, 2)], directed), np.zeros((4, 1)), np.ones(4, dtype=bool), message_bound(1))
    assert (rows == 0).all()


def test_rounding_stays_below_the_bound() -> None:
    """A hub of many neighbours: what it hears changes by one message, and not by more than the bound."""
    size, bound = 30_000, message_bound(3)
    leaves = np.arange(1, size)
    rows = np.tile(np.eye(3)[0] - 1 / 3, (size, 1))
    graphs = [
        Graph.from_edges(np.zeros_like(ends), ends, np.ones((size, 1)), directed=False) for ends in (leaves, leaves[1:])
    ]
    one, two = (heard(graph, rows, np.arange(size) == 0, bound) for graph in graphs)
    assert 0.999 * bound <= float(np.linalg.norm(one - two)) <= bound
