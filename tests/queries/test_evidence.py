"""What nodes receive: bounds by brute force, worst pairs that attain them, who hears whom, planted faults."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from discreet.errors import GraphError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.ops.degrees import BoundedLevel
from discreet.privacy.levels import EdgeLevel, NeighborLevel, NodeLevel
from discreet.queries.evidence import ReceivedLabels, ReceivedMessages, arranged_sums, message_bound
from discreet.queries.kept_edges import entries_between, entries_of_a_unit
from tests.queries.edge_neighbours import graph_of, neighbours, private_of
from tests.queries.evidence_pairs import (
    CLASSES,
    FAILURE,
    LEVELS,
    Guesses,
    everyone_of,
    evidence,
    evidence_query,
    moving_teller,
    private_part,
    random_graph,
    star,
    surviving_key,
    swapped_sender,
    turned_rows,
)

Record = Callable[[str, object], None]

# ------------------------------------------------------------------------ messages


@pytest.mark.parametrize("directed", [False, True])
def test_received_messages_by_brute_force(directed: bool, record_property: Record) -> None:
    """Labels, opinions, and messages far longer than the bound; every set of receivers; met in each of three cases."""
    rng = np.random.default_rng(0)
    messages = [np.eye(3)[[0, 1, 2, 0]] - 1 / 3, rng.dirichlet(np.ones(3), 4) - 1 / 3, 9 * rng.normal(size=(4, 3))]
    query = ReceivedMessages(EdgeLevel(directed), "messages", 4, 3)
    declared = query.bound().sensitivity
    worst = {0: 0.0, 1: 0.0, 2: 0.0}
    for one, two, (u, v) in neighbours(directed):
        for rows in messages:
            receivers = rng.random(4) < 0.5
            moved = np.subtract(*(query.answer(part, messages=rows, receivers=receivers) for part in (one, two)))
            case = int(receivers[u]) + int(receivers[v])
            worst[case] = max(worst[case], float(np.linalg.norm(moved)))
    record_property("tightness by number of receivers", {case: found / declared for case, found in worst.items()})
    for found in worst.values():
        assert 0.999 * declared <= found <= declared * (1 + 1e-12)


def test_who_hears_whom() -> None:
    """Nodes 0 and 1 receive; 2 and 3 do not."""
    graph = graph_of([(0, 1), (0, 2), (2, 3)], directed=False)
    rows = arranged_sums(graph, np.eye(4), np.array([True, True, False, False]), 1.0)
    half = 2**-0.5
    assert np.allclose(rows, [[0, half, 1, 0], [half, 0, 0, 0], [0, 0, 0, half], [0, 0, half, 0]])


def test_a_short_message_of_a_receiver_is_told_as_it_is() -> None:
    graph = graph_of([(0, 1)], directed=False)
    rows = arranged_sums(graph, 0.5 * np.eye(4), np.ones(4, dtype=bool), 1.0)
    assert np.allclose(rows[:2, :2], [[0, 0.5], [0.5, 0]])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("message", [np.nan, np.inf, 1e200])
def test_no_message_reveals_its_edges_by_being_no_number(directed: bool, message: float) -> None:
    rows, query = np.full((4, 3), message), ReceivedMessages(EdgeLevel(directed), "messages", 4, 3)
    private = private_of(graph_of([(0, 1), (1, 2)], directed))
    for receivers in (np.ones(4, dtype=bool), np.zeros(4, dtype=bool)):
        assert np.isfinite(query.answer(private, messages=rows, receivers=receivers)).all()


@pytest.mark.parametrize("directed", [False, True])
def test_with_one_class_nothing_is_told(directed: bool) -> None:
    """The bound is 0 there, and 0/0 would say who has a neighbour."""
    query = ReceivedMessages(EdgeLevel(directed), "messages", 4, 1)
    private = private_of(graph_of([(0, 1), (1, 2)], directed))
    assert (query.answer(private, messages=np.zeros((4, 1)), receivers=np.ones(4, dtype=bool)) == 0).all()


def test_rounding_stays_below_the_bound() -> None:
    """A hub of many neighbours: what it hears changes by one message, and not by more than the bound."""
    size, bound = 30_000, message_bound(3)
    leaves = np.arange(1, size)
    rows = np.tile(np.eye(3)[0] - 1 / 3, (size, 1))
    graphs = [
        Graph.from_edges(np.zeros_like(ends), ends, np.ones((size, 1)), directed=False) for ends in (leaves, leaves[1:])
    ]
    one, two = (arranged_sums(graph, rows, np.arange(size) == 0, bound) for graph in graphs)
    assert 0.999 * bound <= float(np.linalg.norm(one - two)) <= bound


# ------------------------------------------------------------------------ labels


def largest_move(level: BoundedLevel, pairs: int) -> float:
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(pairs):
        one = random_graph(rng, level)
        two = level.neighbor(one, rng)
        receivers, guesses = rng.random(one.num_nodes) < 0.6, rng.integers(0, CLASSES, one.num_nodes)
        key = rng.bytes(16)
        moved = evidence(one, level, receivers, guesses, key) - evidence(two, level, receivers, guesses, key)
        worst = max(worst, float(np.linalg.norm(moved)))
    return worst


@pytest.mark.parametrize("level", LEVELS, ids=[level.spec for level in LEVELS])
def test_no_neighbour_moves_further_than_the_bound(level: BoundedLevel, record_property: Record) -> None:
    found, declared = largest_move(level, 250), evidence_query(level).bound().sensitivity
    record_property("evidence", found / declared)
    assert found <= declared * (1 + 1e-9)
    if level.edges == "owned":
        assert found >= 0.999 * declared


def test_training_ids_tell_their_labels_and_others_what_the_model_guesses() -> None:
    """Nodes 0 to 2 tell node 3: a training label, a label that is not for training, and none."""
    graph = star([0, 1, 2], [3, 3, 3], np.array([0, 0, -1, -1]), directed=True)
    training = np.array([True, False, True, False])
    private, receivers = private_part(graph, NodeLevel(3), training), np.array([False, False, False, True])
    query = ReceivedLabels(NodeLevel(3), 1, CLASSES)
    sums = query.answer(private, node_model=Guesses(np.array([2, 1, 2, 2])), receivers=receivers)
    assert np.allclose(sums, np.ones((1, 3)) - 1)


def test_the_model_sees_rows_of_the_norm_that_was_planned() -> None:
    graph = star([0], [1], np.array([-1, -1]), directed=True).with_features(np.array([[30.0], [0.0]]))
    private, seen = private_part(graph, NodeLevel(3), np.zeros(2, dtype=bool)), []

    class Looks(Guesses):
        def forward(self, features: object) -> torch.Tensor:
            seen.append(features)
            return super().forward(features)

    receivers = np.array([False, True])
    for norm in (None, 4.5):
        query = ReceivedLabels(NodeLevel(3), 1, CLASSES, row_norm=norm)
        query.answer(private, node_model=Looks(np.zeros(2, dtype=np.int64)), receivers=receivers)
    assert [rows[0, 0].item() for rows in seen] == [30.0, 4.5]


def test_evidence_is_attained_on_a_promise_under_null() -> None:
    degree = 16
    level = NodeLevel(degree, edges="promised", change="null")
    one = star([0] * degree, list(range(1, degree + 1)), np.zeros(degree + 1, dtype=np.int64), directed=False)
    two = one.with_edges([], []).with_labels(np.r_[-1, np.zeros(degree, dtype=np.int64)])
    found = np.linalg.norm(evidence(one, level, *everyone_of(one)) - evidence(two, level, *everyone_of(one)))
    assert found == pytest.approx(evidence_query(level).bound().sensitivity, rel=1e-9)


BUILT: dict[str, tuple[BoundedLevel, Callable[[BoundedLevel], tuple[Graph, Graph]]]] = {
    "promised, replace": (NodeLevel(240, edges="promised", change="replace"), turned_rows),
    "promised, 2 neighbours": (NeighborLevel(2, 240, "promised"), lambda level: swapped_sender(240)),
    "promised, 60 neighbours": (NeighborLevel(60, 240, "promised"), turned_rows),
    "thinned, replace": (NodeLevel(edges="thinned", d_max=240, p=0.995, change="replace"), turned_rows),
}


@pytest.mark.parametrize("name", BUILT)
def test_evidence_is_all_but_attained_where_the_own_row_turns(name: str, record_property: Record) -> None:
    level, build = BUILT[name]
    one, two = build(level)
    key = surviving_key(level, one, two) if level.edges == "thinned" else bytes(16)
    found = np.linalg.norm(evidence(one, level, *everyone_of(one), key) - evidence(two, level, *everyone_of(one), key))
    share = found / evidence_query(level).bound().sensitivity
    record_property("evidence", share)
    assert 0.99 <= share <= 1


@pytest.mark.parametrize(("d_max", "p"), [(12, 0.5), (60, 0.9)])
def test_the_thinned_bound_is_attained_by_some_key_under_null(d_max: int, p: float, record_property: Record) -> None:
    """All coins of a unit's list fall its way more often than the bound may fail, and then nothing is left over."""
    level = NodeLevel(edges="thinned", d_max=d_max, p=p, change="null")
    assert entries_of_a_unit(level, FAILURE) == d_max
    one, two = moving_teller(d_max, "null")
    key = surviving_key(level, one, two)
    moved = evidence(one, level, *everyone_of(one), key) - evidence(two, level, *everyone_of(one), key)
    share = float(np.linalg.norm(moved)) / evidence_query(level).bound().sensitivity
    record_property("evidence", share)
    assert share == pytest.approx(1, rel=1e-9)


# ------------------------------------------------------------------------ refusals and planted faults


def test_what_cannot_be_bounded_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="max_degree"):
        evidence_query(NeighborLevel(2, edges="promised")).bound()
    crowded = star([0] * 5, [1, 2, 3, 4, 5], np.zeros(6, dtype=np.int64), directed=False)
    with pytest.raises(GraphError, match="promised"):
        evidence(crowded, NodeLevel(4, edges="promised"), *everyone_of(crowded))


def test_a_thinned_list_of_either_direction_stays_within_the_bound() -> None:
    """Both the entries from a unit and those to it must survive within one D."""
    level = NodeLevel(edges="thinned", d_max=40, p=0.3, change="null")
    bound = entries_of_a_unit(level, 1e-4)
    hub = star([0] * 40, list(range(1, 41)), np.zeros(41, dtype=np.int64), directed=False)
    everyone, rng = np.ones(41, dtype=bool), np.random.default_rng(0)
    for _ in range(300):
        kept = entries_between(private_part(hub, level, everyone, rng.bytes(16)), level, None, everyone)
        assert max(kept.out_degree()[0], kept.in_degree()[0]) <= bound


def test_a_bound_that_forgets_the_own_row_is_caught() -> None:
    """The swapped sender moves more than the told rows alone are allowed."""
    level = NeighborLevel(2, 240, "promised")
    one, two = swapped_sender(240)
    found = np.linalg.norm(evidence(one, level, *everyone_of(one)) - evidence(two, level, *everyone_of(one)))
    assert found > math.sqrt(2 * 240) * (1 + 1e-4)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_wrong_division_is_caught(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dividing by nothing, or by half of the degree."""
    right = Graph.out_degree
    monkeypatch.setattr(Graph, "out_degree", lambda graph: share * right(graph))
    level = NeighborLevel(2)  # without a cap, which would count entries too
    assert largest_move(level, 100) > 1.1 * evidence_query(level).bound().sensitivity
