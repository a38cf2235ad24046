"""Evidence and links where nodes are protected: bounds by brute force, worst pairs that attain them, planted faults."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from discreet.errors import GraphError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.ops import node_evidence
from discreet.ops.keyed_hash import hash_pairs
from discreet.ops.node_evidence import (
    entries_between,
    label_links,
    label_links_bound,
    reached,
    roles,
    told_bound,
    told_sums,
)
from discreet.privacy.levels import NeighborLevel, NodeLevel

Level = NodeLevel | NeighborLevel
Record = Callable[[str, float], None]
KEY = bytes(range(16))
FAILURE = 1e-6
CLASSES = 3
LEVELS: list[Level] = [
    NodeLevel(3, change="null"),
    NodeLevel(3, change="replace"),
    NeighborLevel(2),
    NeighborLevel(2, max_degree=2),
    NodeLevel(7, edges="promised", change="null"),
    NodeLevel(7, edges="promised", change="replace"),
    NeighborLevel(2, max_degree=7, edges="promised"),
    NodeLevel(edges="thinned", d_max=7, p=0.5, change="null"),
    NodeLevel(edges="thinned", d_max=7, p=0.5, change="replace"),
]
every_level = pytest.mark.parametrize("level", LEVELS, ids=[level.spec for level in LEVELS])


def one_hot(labels: np.ndarray) -> np.ndarray:
    rows = np.zeros((len(labels), CLASSES))
    rows[labels >= 0, labels[labels >= 0]] = 1
    return rows


def told(graph: Graph, guesses: np.ndarray) -> np.ndarray:
    """Labels, and a guess where there is none: a null record still has an opinion, which it tells nobody."""
    return one_hot(np.where(graph.labels >= 0, graph.labels, guesses))


def evidence(graph: Graph, level: Level, receivers: np.ndarray, guesses: np.ndarray, key: bytes = KEY) -> np.ndarray:
    entries = entries_between(graph, level, key, None, receivers)
    clip = told_bound(level, CLASSES, FAILURE).clip
    return told_sums(entries, told(graph, guesses), receivers, level, clip)


def links(graph: Graph, level: Level, training: np.ndarray, key: bytes = KEY) -> np.ndarray:
    tells, hears = roles(training)
    return label_links(entries_between(graph, level, key, tells, hears), one_hot(graph.labels), level)


def random_graph(rng: np.random.Generator, level: Level) -> Graph:
    """Up to eight nodes, dense or sparse, with every label known."""
    n = int(rng.integers(3, 9))
    keep = np.triu(rng.random((n, n)) < rng.choice([0.3, 0.9]), 1)
    source, target = np.nonzero(keep)
    labels = rng.integers(0, rng.integers(1, CLASSES + 1), n)
    return level.view(Graph.from_edges(source, target, np.eye(n), labels, num_classes=CLASSES))


def largest_moves(level: Level, pairs: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    worst = [0.0, 0.0]
    for _ in range(pairs):
        one = random_graph(rng, level)
        two = level.neighbor(one, rng)
        chosen, guesses = rng.random(one.num_nodes) < 0.6, rng.integers(0, CLASSES, one.num_nodes)
        key = rng.bytes(16)
        moves = (
            evidence(one, level, chosen, guesses, key) - evidence(two, level, chosen, guesses, key),
            links(one, level, chosen, key) - links(two, level, chosen, key),
        )
        worst = [max(w, float(np.linalg.norm(m))) for w, m in zip(worst, moves, strict=True)]
    return worst[0], worst[1]


@every_level
def test_no_neighbour_moves_further_than_the_bound(level: Level, record_property: Record) -> None:
    found = largest_moves(level, 500)
    bounds = told_bound(level, CLASSES, FAILURE), label_links_bound(level, FAILURE)
    for name, moved, bound in zip(("evidence", "links"), found, bounds, strict=True):
        record_property(name, moved / bound.sensitivity)
        assert moved <= bound.sensitivity * (1 + 1e-9)
    if level.edges == "owned":
        assert found[0] >= 0.999 * bounds[0].sensitivity
        assert found[1] >= (0.999 if told_is_null(level) else 0.8) * bounds[1].sensitivity


def told_is_null(level: Level) -> bool:
    return isinstance(level, NodeLevel) and level.change == "null"


# ------------------------------------------------------------------------ worst pairs


def star(sources: list[int], targets: list[int], labels: np.ndarray, *, directed: bool) -> Graph:
    return Graph.from_edges(
        sources, targets, np.zeros((len(labels), 1)), labels, num_classes=CLASSES, directed=directed
    )


def moving_teller(degree: int, change: str = "replace") -> tuple[Graph, Graph]:
    """A teller with D hearers of its class leaves, or becomes another with D others of that class."""
    hub, first = 2 * degree * 2, np.arange(degree)
    n = 2 * hub + 2
    hears = np.flatnonzero(roles(np.ones(n, dtype=bool))[1])
    before, after = hears[first], hears[degree + first]
    labels = np.zeros(n, dtype=np.int64)
    labels[after] = 1
    one = star([hub] * degree, before.tolist(), labels, directed=False)
    if change == "null":
        return one, one.with_edges([], []).with_labels(np.where(np.arange(n) == hub, -1, labels))
    moved = np.where(np.arange(n) == hub, 1, labels)
    return one, star([hub] * degree, after.tolist(), moved, directed=False)


def another_label(degree: int) -> tuple[Graph, Graph]:
    """A teller keeps its D hearers and takes another label."""
    one, _ = moving_teller(degree, "null")
    return one, one.with_labels(np.where(one.out_degree() == degree, 1, one.labels))


@pytest.mark.parametrize("degree", [1, 12, 60])
@pytest.mark.parametrize("change", ["null", "replace"])
def test_links_are_attained_on_a_promise(degree: int, change: str) -> None:
    level = NodeLevel(degree, edges="promised", change=change)  # type: ignore[arg-type]
    one, two = moving_teller(degree, change)
    training = np.ones(one.num_nodes, dtype=bool)
    found = np.linalg.norm(links(one, level, training) - links(two, level, training))
    assert found == pytest.approx(label_links_bound(level).sensitivity, rel=1e-9)


def test_evidence_is_attained_on_a_promise_under_null() -> None:
    degree = 16
    level = NodeLevel(degree, edges="promised", change="null")
    one = star([0] * degree, list(range(1, degree + 1)), np.zeros(degree + 1, dtype=np.int64), directed=False)
    two = one.with_edges([], []).with_labels(np.r_[-1, np.zeros(degree, dtype=np.int64)])
    everyone, guesses = np.ones(degree + 1, dtype=bool), np.zeros(degree + 1, dtype=np.int64)
    found = np.linalg.norm(evidence(one, level, everyone, guesses) - evidence(two, level, everyone, guesses))
    assert found == pytest.approx(told_bound(level, CLASSES).sensitivity, rel=1e-9)


def turning_row(degree: int, clip: float) -> tuple[Graph, Graph]:
    """Most receivers stay and hear another label; a few senders change, and turn the unit's own row around."""
    enough = clip / math.sqrt(1 - 1 / CLASSES)
    against = 2 * math.ceil(enough / 3)
    turning = math.ceil(enough + against / 2)
    turning += (degree - turning - against) % CLASSES
    steady = np.arange(1, degree - turning + 1)
    out, into = degree - turning + 1 + np.arange(turning), degree + 1 + np.arange(turning)
    labels = np.zeros(degree + turning + 1, dtype=np.int64)
    labels[steady] = np.r_[np.arange(len(steady) - against) % CLASSES, 1 + np.arange(against) % 2]
    labels[into] = 1 + np.arange(turning) % 2
    changed = np.where(np.arange(len(labels)) == 0, 1, labels)
    one = star([0] * degree, np.r_[steady, out].tolist(), labels, directed=False)
    two = star([0] * degree, np.r_[steady, into].tolist(), changed, directed=False)
    return one, two


def turned_rows(level: Level) -> tuple[Graph, Graph]:
    """The pair of :func:`turning_row` for a level's own degree and clip."""
    clip = told_bound(level, CLASSES, FAILURE).clip
    assert clip is not None
    return turning_row(reached(level, FAILURE), clip)


def swapped_sender(degree: int) -> tuple[Graph, Graph]:
    """Receivers stay and hear another label, but for one whose place another takes, with another label to tell back."""
    labels = np.r_[0, np.arange(degree - 1) % CLASSES, 0, 1]
    stay = list(range(1, degree))
    one = star([0] * degree, [*stay, degree], labels, directed=False)
    two = star([0] * degree, [*stay, degree + 1], labels, directed=False)
    return one, two.with_labels(np.where(np.arange(degree + 2) == 0, 1, labels))


BUILT: dict[str, tuple[Level, Callable[[Level], tuple[Graph, Graph]]]] = {
    "promised, replace": (NodeLevel(240, edges="promised", change="replace"), turned_rows),
    "promised, 2 neighbours": (NeighborLevel(2, 240, "promised"), lambda level: swapped_sender(240)),
    "promised, 60 neighbours": (NeighborLevel(60, 240, "promised"), turned_rows),
    "thinned, replace": (NodeLevel(edges="thinned", d_max=240, p=0.995, change="replace"), turned_rows),
}


@pytest.mark.parametrize("name", BUILT)
def test_evidence_is_all_but_attained_where_the_own_row_turns(name: str, record_property: Record) -> None:
    level, build = BUILT[name]
    one, two = build(level)
    key = surviving_key(level, one, two) if level.edges == "thinned" else KEY
    everyone, guesses = np.ones(one.num_nodes, dtype=bool), np.zeros(one.num_nodes, dtype=np.int64)
    found = np.linalg.norm(evidence(one, level, everyone, guesses, key) - evidence(two, level, everyone, guesses, key))
    share = found / told_bound(level, CLASSES, FAILURE).sensitivity
    record_property("evidence", share)
    assert 0.99 <= share <= 1


def survives(level: Level, one: Graph, two: Graph, key: bytes) -> bool:
    """Whether every entry out of the unit, the node with most, survives on both sides."""
    assert isinstance(level, NodeLevel)
    assert level.p is not None
    unit = int(one.out_degree().argmax())
    source, target = (np.concatenate(parts) for parts in zip(one.edges(), two.edges(), strict=True))
    mine = source == unit
    return bool((hash_pairs(key, source[mine], target[mine]) < np.uint64(math.floor(level.p * 2**64))).all())


def surviving_key(level: Level, one: Graph, two: Graph) -> bytes:
    rng = np.random.default_rng(0)
    return next(key for key in (rng.bytes(16) for _ in range(100_000)) if survives(level, one, two, key))


@pytest.mark.parametrize(("d_max", "p"), [(12, 0.5), (60, 0.9)])
def test_the_thinned_bounds_are_attained_by_some_key_under_null(d_max: int, p: float, record_property: Record) -> None:
    """All coins of a unit's list fall its way more often than the bound may fail, and then nothing is left over."""
    level = NodeLevel(edges="thinned", d_max=d_max, p=p, change="null")
    assert reached(level, FAILURE) == d_max
    one, two = moving_teller(d_max, "null")
    key, everyone = surviving_key(level, one, two), np.ones(one.num_nodes, dtype=bool)
    guesses = np.zeros(one.num_nodes, dtype=np.int64)
    told_moved = evidence(one, level, everyone, guesses, key) - evidence(two, level, everyone, guesses, key)
    links_moved = links(one, level, everyone, key) - links(two, level, everyone, key)
    for name, moved, bound in (
        ("evidence", told_moved, told_bound(level, CLASSES, FAILURE)),
        ("links", links_moved, label_links_bound(level, FAILURE)),
    ):
        share = float(np.linalg.norm(moved)) / bound.sensitivity
        record_property(name, share)
        assert share == pytest.approx(1, rel=1e-9)


def turning_teller(receivers: int) -> tuple[Graph, Graph]:
    """What hearers hear lies on the ball, 67.5° from the label that leaves and from the one that comes."""
    near, far = round(receivers * math.cos(3 * math.pi / 8)), round(receivers * math.sin(3 * math.pi / 8))
    groups = [(0, near), (1, far), (0, far), (1, near)]
    n = 2 * (1 + sum(count for _, count in groups) + 2 * receivers)
    tells, hears = (np.flatnonzero(part) for part in roles(np.ones(n, dtype=bool)))
    before, after = hears[:receivers], hears[receivers : 2 * receivers]
    labels = np.zeros(n, dtype=np.int64)
    source, target, used = [], [], 1
    for number, (label, count) in enumerate(groups):
        for teller in tells[used : used + count]:
            labels[teller] = label
            source += [teller] * receivers
            target += (before if number < 2 else after).tolist()
        used += count
    one, two = (
        star([*source, *[tells[0]] * receivers], [*target, *heard.tolist()], labels, directed=True)
        for heard in (before, after)
    )
    return one, two.with_labels(np.where(np.arange(n) == tells[0], 1, labels))


def test_links_are_all_but_attained_by_a_teller_that_turns_clipped_sums(record_property: Record) -> None:
    level = NodeLevel(1000, change="replace")
    one, two = turning_teller(200)
    training = np.ones(one.num_nodes, dtype=bool)
    share = np.linalg.norm(links(one, level, training) - links(two, level, training))
    share /= label_links_bound(level).sensitivity
    record_property("links", share)
    assert 0.99 <= share <= 1


def test_the_turning_constant_is_the_maximum_that_the_docstring_names() -> None:
    p, q = np.meshgrid(np.linspace(0, 1, 2001), np.linspace(0, 1, 2001))
    square = 2 - p**2 - q**2 + 2 * q * np.sqrt(1 - q**2) * (1 - p**2) + 2 * p * np.sqrt(1 - p**2) * (1 - q**2)
    bound = label_links_bound(NodeLevel(3, change="replace")).sensitivity ** 2
    assert square.max() <= bound <= square.max() * (1 + 1e-5)


# ------------------------------------------------------------------------ refusals and planted faults


def test_what_cannot_be_bounded_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="max_degree"):
        told_bound(NeighborLevel(2, edges="promised"), CLASSES)
    crowded = star([0] * 5, [1, 2, 3, 4, 5], np.zeros(6, dtype=np.int64), directed=False)
    everyone = np.ones(6, dtype=bool)
    with pytest.raises(GraphError, match="promised"):
        entries_between(crowded, NodeLevel(4, edges="promised"), KEY, None, everyone)


def test_a_thinned_list_of_either_direction_stays_within_the_bound() -> None:
    """Both the entries from a unit and those to it must survive within one D."""
    level = NodeLevel(edges="thinned", d_max=40, p=0.3, change="null")
    bound = reached(level, 1e-4)
    hub = star([0] * 40, list(range(1, 41)), np.zeros(41, dtype=np.int64), directed=False)
    everyone, rng = np.ones(41, dtype=bool), np.random.default_rng(0)
    for _ in range(300):
        kept = entries_between(hub, level, rng.bytes(16), None, everyone)
        assert max(kept.out_degree()[0], kept.in_degree()[0]) <= bound


def test_a_bound_that_forgets_the_own_row_is_caught() -> None:
    """The swapped sender moves more than the told rows alone are allowed."""
    level = NeighborLevel(2, 240, "promised")
    one, two = swapped_sender(240)
    everyone, guesses = np.ones(one.num_nodes, dtype=bool), np.zeros(one.num_nodes, dtype=np.int64)
    found = np.linalg.norm(evidence(one, level, everyone, guesses) - evidence(two, level, everyone, guesses))
    assert found > math.sqrt(2 * 240) * (1 + 1e-4)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_wrong_division_is_caught(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dividing by nothing, or by half of the degree."""
    right = Graph.out_degree
    monkeypatch.setattr(Graph, "out_degree", lambda graph: share * right(graph))
    level = NeighborLevel(2)  # without a cap, which would count entries too
    assert largest_moves(level, 100)[0] > 1.1 * told_bound(level, CLASSES).sensitivity


def test_two_roles_at_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.ops.test_node_evidence.roles", lambda training: (training, training))
    level = NodeLevel(3, change="null")
    assert largest_moves(level, 200)[1] > 1.1 * label_links_bound(level).sensitivity


def test_sums_that_are_not_clipped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_evidence, "_clipped", lambda rows, norm: rows)
    level = NodeLevel(3, change="null")
    assert largest_moves(level, 200)[1] > 1.1 * label_links_bound(level).sensitivity
