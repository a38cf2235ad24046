"""Evidence and links where nodes are protected: how tests ask for them, and pairs of graphs that are worst for them."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.ops.degrees import BoundedLevel
from discreet.ops.keyed_hash import hash_pairs
from discreet.privacy.levels import NeighborLevel, NodeLevel
from discreet.queries.evidence import ReceivedLabels
from discreet.queries.kept_edges import KEY, entries_of_a_unit
from discreet.queries.links import LabelLinks, roles

SOME_KEY = bytes(range(16))
FAILURE = 1e-6
CLASSES = 3
LEVELS: list[BoundedLevel] = [
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


class Guesses(nn.Module):
    """A node model that has made up its mind about every node."""

    def __init__(self, classes: np.ndarray) -> None:
        super().__init__()
        self.scores = torch.eye(CLASSES)[torch.from_numpy(np.asarray(classes))]

    def forward(self, features: object) -> torch.Tensor:
        return self.scores


def private_part(graph: Graph, level: BoundedLevel, training: np.ndarray, key: bytes = SOME_KEY) -> PrivatePart:
    _, private = level.split(graph.with_masks(training, None, None))
    private.entrust(KEY, key)
    return private


def evidence_query(level: BoundedLevel, receivers: int = 0) -> ReceivedLabels:
    return ReceivedLabels(level, receivers, CLASSES, FAILURE)


def link_query(level: BoundedLevel) -> LabelLinks:
    return LabelLinks(level, CLASSES, FAILURE)


def evidence(
    graph: Graph, level: BoundedLevel, receivers: np.ndarray, guesses: np.ndarray, key: bytes = SOME_KEY
) -> np.ndarray:
    """Every id is for training: labels are told, and a guess where there is none.

    (A null record still has an opinion, which it tells nobody.)
    """
    private = private_part(graph, level, np.ones(graph.num_nodes, dtype=bool), key)
    query = evidence_query(level, int(receivers.sum()))
    return query.answer(private, node_model=Guesses(guesses), receivers=receivers)


def links(graph: Graph, level: BoundedLevel, training: np.ndarray, key: bytes = SOME_KEY) -> np.ndarray:
    return link_query(level).answer(private_part(graph, level, training, key))


def everyone_of(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """A mask of all nodes, and a guess for each."""
    return np.ones(graph.num_nodes, dtype=bool), np.zeros(graph.num_nodes, dtype=np.int64)


def random_graph(rng: np.random.Generator, level: BoundedLevel) -> Graph:
    """Up to eight nodes, dense or sparse, with every label known."""
    n = int(rng.integers(3, 9))
    keep = np.triu(rng.random((n, n)) < rng.choice([0.3, 0.9]), 1)
    source, target = np.nonzero(keep)
    labels = rng.integers(0, rng.integers(1, CLASSES + 1), n)
    return level.view(Graph.from_edges(source, target, np.eye(n), labels, directed=True, num_classes=CLASSES))


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


def turned_rows(level: BoundedLevel) -> tuple[Graph, Graph]:
    """The pair of :func:`turning_row` for a level's own degree and clip."""
    clip = evidence_query(level).bound().clip
    assert clip is not None
    return turning_row(entries_of_a_unit(level, FAILURE), clip)


def swapped_sender(degree: int) -> tuple[Graph, Graph]:
    """Receivers stay and hear another label, but for one whose place another takes, with another label to tell back."""
    labels = np.r_[0, np.arange(degree - 1) % CLASSES, 0, 1]
    stay = list(range(1, degree))
    one = star([0] * degree, [*stay, degree], labels, directed=False)
    two = star([0] * degree, [*stay, degree + 1], labels, directed=False)
    return one, two.with_labels(np.where(np.arange(degree + 2) == 0, 1, labels))


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


# ------------------------------------------------------------------------ keys


def survives(level: BoundedLevel, one: Graph, two: Graph, key: bytes) -> bool:
    """Whether every entry out of the unit, the node with most, survives on both sides."""
    assert isinstance(level, NodeLevel)
    assert level.p is not None
    unit = int(one.out_degree().argmax())
    source, target = (np.concatenate(parts) for parts in zip(one.edges(), two.edges(), strict=True))
    mine = source == unit
    return bool((hash_pairs(key, source[mine], target[mine]) < np.uint64(math.floor(level.p * 2**64))).all())


def surviving_key(level: BoundedLevel, one: Graph, two: Graph) -> bytes:
    rng = np.random.default_rng(0)
    return next(key for key in (rng.bytes(16) for _ in range(100_000)) if survives(level, one, two, key))
