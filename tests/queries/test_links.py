"""Links between classes and between labels: bounds by brute force, worst pairs that attain them, planted faults."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from discreet.graph.synthetic import csbm
from discreet.ops.degrees import BoundedLevel
from discreet.privacy.levels import EdgeLevel, NodeLevel
from discreet.queries import links as links_module
from discreet.queries.kept_edges import entries_of_a_unit
from discreet.queries.links import LinkTable
from discreet.queries.reach import is_null
from tests.queries.edge_neighbours import neighbours
from tests.queries.evidence_pairs import (
    FAILURE,
    LEVELS,
    everyone_of,
    link_query,
    links,
    moving_teller,
    random_graph,
    surviving_key,
    turning_teller,
)

Record = Callable[[str, object], None]


@pytest.mark.parametrize("directed", [False, True])
def test_links_by_brute_force(directed: bool, record_property: Record) -> None:
    rng = np.random.default_rng(0)
    told = [np.eye(3)[[0, 0, 0, 0]], np.eye(3)[[0, 1, 2, 0]], *rng.dirichlet(np.ones(3), (3, 4))]
    query = LinkTable(EdgeLevel(directed), 3)
    worst = max(
        float(np.linalg.norm(query.answer(one, rows=rows) - query.answer(two, rows=rows)))
        for one, two, _ in neighbours(directed)
        for rows in told
    )
    declared = query.bound().sensitivity
    record_property("tightness", worst / declared)
    assert 0.999 * declared <= worst <= declared * (1 + 1e-12)


# ------------------------------------------------------------------------ private labels


def largest_move(level: BoundedLevel, pairs: int) -> float:
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(pairs):
        one = random_graph(rng, level)
        two = level.neighbor(one, rng)
        training, key = rng.random(one.num_nodes) < 0.6, rng.bytes(16)
        if training.any():
            moved = links(one, level, training, key) - links(two, level, training, key)
            worst = max(worst, float(np.linalg.norm(moved)))
    return worst


@pytest.mark.parametrize("level", LEVELS, ids=[level.spec for level in LEVELS])
def test_no_neighbour_moves_further_than_the_bound(level: BoundedLevel, record_property: Record) -> None:
    found, declared = largest_move(level, 500), link_query(level).bound().sensitivity
    record_property("links", found / declared)
    assert found <= declared * (1 + 1e-9)
    if level.edges == "owned":
        assert found >= (0.999 if is_null(level) else 0.8) * declared


@pytest.mark.parametrize("degree", [1, 12, 60])
@pytest.mark.parametrize("change", ["null", "replace"])
def test_links_are_attained_on_a_promise(degree: int, change: str) -> None:
    level = NodeLevel(degree, edges="promised", change=change)  # type: ignore[arg-type]
    one, two = moving_teller(degree, change)
    training, _ = everyone_of(one)
    found = np.linalg.norm(links(one, level, training) - links(two, level, training))
    assert found == pytest.approx(link_query(level).bound().sensitivity, rel=1e-9)


@pytest.mark.parametrize(("d_max", "p"), [(12, 0.5), (60, 0.9)])
def test_the_thinned_bound_is_attained_by_some_key_under_null(d_max: int, p: float, record_property: Record) -> None:
    """All coins of a unit's list fall its way more often than the bound may fail, and then nothing is left over."""
    level = NodeLevel(edges="thinned", d_max=d_max, p=p, change="null")
    assert entries_of_a_unit(level, FAILURE) == d_max
    one, two = moving_teller(d_max, "null")
    key, (training, _) = surviving_key(level, one, two), everyone_of(one)
    moved = links(one, level, training, key) - links(two, level, training, key)
    share = float(np.linalg.norm(moved)) / link_query(level).bound().sensitivity
    record_property("links", share)
    assert share == pytest.approx(1, rel=1e-9)


def test_links_are_all_but_attained_by_a_teller_that_turns_clipped_sums(record_property: Record) -> None:
    level = NodeLevel(1000, change="replace")
    one, two = turning_teller(200)
    training, _ = everyone_of(one)
    share = np.linalg.norm(links(one, level, training) - links(two, level, training))
    share /= link_query(level).bound().sensitivity
    record_property("links", share)
    assert 0.99 <= share <= 1


def test_the_turning_constant_is_the_maximum_that_the_docstring_names() -> None:
    p, q = np.meshgrid(np.linspace(0, 1, 2001), np.linspace(0, 1, 2001))
    square = 2 - p**2 - q**2 + 2 * q * np.sqrt(1 - q**2) * (1 - p**2) + 2 * p * np.sqrt(1 - p**2) * (1 - q**2)
    bound = link_query(NodeLevel(3, change="replace")).bound().sensitivity ** 2
    assert square.max() <= bound <= square.max() * (1 + 1e-5)


# ------------------------------------------------------------------------ planted faults


def test_two_roles_at_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links_module, "roles", lambda training: (training, training))
    level = NodeLevel(3, change="null")
    assert largest_move(level, 200) > 1.1 * link_query(level).bound().sensitivity


def test_sums_that_are_not_clipped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links_module, "cut_rows", lambda rows, norm: rows)
    level = NodeLevel(3, change="null")
    assert largest_move(level, 200) > 1.1 * link_query(level).bound().sensitivity


def test_a_table_over_weights_is_exact() -> None:
    """Against fractions: rows on 12 binary places, what is told on 23."""
    rng = np.random.default_rng(0)
    graph = csbm(40, seed=0)
    ends = graph.edges()
    graph = graph.with_edges(*ends, edge_weights=rng.random(graph.num_entries))
    rows = np.trunc(rng.dirichlet(np.ones(3), 40) * 2**12) / 2**12
    _, private = EdgeLevel().split(graph)
    table = np.zeros((3, 3), dtype=object)
    entries = graph.weighted_adjacency.tocoo()
    for receiver, sender, weight in zip(*entries.coords, entries.data, strict=True):
        told = [Fraction(int(float(weight) * value * 2**23), 2**23) for value in rows[sender]]
        table += np.outer([Fraction(value) for value in rows[receiver]], told)
    found = LinkTable(EdgeLevel(), 3).answer(private, rows=rows)
    assert np.abs(found - (table / 2).astype(np.float64)).max() <= 2.0**-40
