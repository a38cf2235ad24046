"""The contract of a query: on neighbouring graphs, for every released input, it moves no further than its bound says.

The check is brute force: all graphs of few nodes, random larger ones and the shapes that are worst for a level; inputs
of every kind, from zeros to numbers that are none. It falsifies; the proof stands in the query's docstring.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.audit.recording import dense
from discreet.audit.replay import METRICS
from discreet.audit.small_graphs import graph_at, with_weights
from discreet.audit.worst_pairs import shaped_pairs
from discreet.errors import GraphError
from discreet.graph.graph import Graph, PublicFacts
from discreet.graph.parts import PrivatePart, PublicPart
from discreet.mechanisms.dpsgd import term_distance
from discreet.privacy.levels import Level, parse_level
from discreet.privacy.plan import Stage
from discreet.privacy.query import Query
from discreet.queries.gradients import GradientSteps

HOSTILITY = ("random", "zeros", "huge", "flipped", "aligned", "cancelling", "not finite")
"""How hostile released inputs are: see :class:`QueryCase`."""
TOLERANCE = 1e-6
"""What single precision may add to a distance, relative to the bound."""

Pair = tuple[Graph, Graph]


@dataclass(frozen=True)
class QueryCase:
    """A query at a level, as the contract asks it.

    Parameters
    ----------
    name
        What reports call it.
    level
        The level as text, ``node:owned,max_degree=3`` for example.
    make
        The query for graphs of these facts.
    inputs
        Released inputs for a graph: ``inputs(public, rng, hostility)`` with a word of :data:`HOSTILITY`. They must be
        made of what is public, the random numbers and the word.
    keys
        The purposes for which the query reads a secret key.
    weighted
        Whether edges have weights, which neighbours may move.
    """

    name: str
    level: str
    make: Callable[[PublicFacts], Query]
    inputs: Callable[[PublicPart, np.random.Generator, str], dict[str, Any]]
    keys: tuple[str, ...] = ("edges kept",)
    weighted: bool = False

    def __str__(self) -> str:
        """For test ids."""
        return f"{self.name}{', weighted' if self.weighted else ''} at {self.level}"


@dataclass(frozen=True)
class Effort:
    """How hard to try: all graphs up to so many nodes, and so many random larger ones."""

    exhaustive: int = 3
    random: int = 60
    seed: int = 0


@dataclass
class QueryReport:
    """What the brute force saw: ``tightness`` is the largest change over the bound, 1 if the bound is attained."""

    case: str
    pairs: int = 0
    tightness: float = 0.0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """One line."""
        found = f"{self.case}: {self.pairs} pairs, tightness {self.tightness:.4f}"
        return found if not self.violations else f"{found}; VIOLATED: {self.violations[0]}"


def check_query(case: QueryCase, effort: Effort | None = None) -> QueryReport:
    """Ask the query on many pairs of neighbours with the same inputs and keys, and compare.

    The report holds every violation found; nothing is raised.
    """
    effort = Effort() if effort is None else effort
    level, rng = parse_level(case.level), np.random.default_rng(effort.seed)
    report = QueryReport(str(case))
    for number, pair in enumerate(_pairs(level, effort, rng, case.weighted)):
        _check_pair(case, level, pair, HOSTILITY[number % len(HOSTILITY)], rng, report)
    return report


def _check_pair(
    case: QueryCase, level: Level, pair: Pair, hostility: str, rng: np.random.Generator, report: QueryReport
) -> None:
    split = [level.split(graph) for graph in pair]
    if split[0][0].facts != split[1][0].facts:
        raise ValueError("neighbours must have the same public facts")
    keys = {purpose: rng.bytes(16) for purpose in case.keys}
    try:
        query = case.make(split[0][0].facts)
    except GraphError:  # no such question on this graph: no example to step on
        return
    inputs = case.inputs(split[0][0], rng, hostility)
    found = []
    for _, private in split:
        for purpose, key in keys.items():
            private.entrust(purpose, key)
        try:
            found.append(_value(query, private, inputs))
        except GraphError:  # a broken promise is refused, and says nothing about the bound
            return
    report.pairs += 1
    ratio, fault = _compare(query, *found)
    report.tightness = max(report.tightness, ratio)
    if fault is not None:
        report.violations.append(f"{fault} (inputs: {hostility})")


def _value(query: Query, private: PrivatePart, inputs: dict[str, Any]) -> Array:
    if isinstance(query, GradientSteps):
        return query.terms(private, **inputs)
    return dense(query.answer(private, **inputs))


def _compare(query: Query, one: Array, two: Array) -> tuple[float, str | None]:
    """The change over the bound, and what is wrong, if anything."""
    if one.dtype != two.dtype or one.shape != two.shape:
        return np.inf, f"the value is {one.dtype}{one.shape} on one side and {two.dtype}{two.shape} on the other"
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        return np.inf, "the value is not finite"
    bound = query.bound()
    if isinstance(query, GradientSteps):
        return term_distance(Stage("checked", query, bound, query.event(1.0, 1)), one, two, TOLERANCE)
    if one.shape != query.shape:
        return np.inf, f"the value has shape {one.shape}, not {query.shape} as planned"
    moved = METRICS[bound.metric](one, two)
    ratio = moved / bound.sensitivity if bound.sensitivity else float(moved > 0)
    if ratio > 1 + TOLERANCE:
        return ratio, f"moved by {ratio:.6g} times the bound {bound.sensitivity:.6g} ({bound.metric})"
    return ratio, None


# -------------------------------------------------------------------- graphs


def _pairs(level: Level, effort: Effort, rng: np.random.Generator, weighted: bool) -> Iterator[Pair]:
    larger = (graph_at(level, rng, int(rng.integers(4, 13))) for _ in range(effort.random))
    for graph in itertools.chain(_all_graphs(level, effort.exhaustive, rng), larger):
        yield _ordered(with_weights(graph, rng) if weighted else graph, level, rng)
    for one, two in shaped_pairs(level):
        kinds = itertools.cycle([(one, two), (_with_like_others(one), _with_like_others(two))])
        for pair in itertools.islice(kinds, len(HOSTILITY)):
            yield (_whole_edges(pair[0]), _whole_edges(pair[1])) if weighted else pair


def _whole_edges(graph: Graph) -> Graph:
    """The same graph whose edges have weights, all of them 1."""
    return graph.with_edges(*graph.edges(), np.ones(graph.num_entries))


def _with_like_others(graph: Graph) -> Graph:
    """The same edges, where every node but the first, which shaped pairs change, has the record of the second.

    What neighbours of one class and direction send to the first, or hear from it, adds up to the most.
    """
    record = np.minimum(np.arange(graph.num_nodes), 1)
    return graph.with_features(np.asarray(graph.features)[record]).with_labels(graph.labels[record])


def _ordered(graph: Graph, level: Level, rng: np.random.Generator) -> Pair:
    """The graph and a neighbour, in either order."""
    seen = level.view(graph)
    pair = seen, level.neighbor(seen, rng)
    return pair if rng.integers(2) else pair[::-1]


def _all_graphs(level: Level, most: int, rng: np.random.Generator) -> Iterator[Graph]:
    """Every graph of 2 to ``most`` nodes, one way or both ways as the level reads edges, with random records.

    Each is drawn once under random names: graphs that differ by the names of nodes are the same case.
    """
    directed = getattr(level, "directed", False) or getattr(level, "edges", None) == "owned"
    for n in range(2, most + 1):
        for adjacency in _up_to_names(n, directed):
            names = rng.permutation(n)
            yield _with_records(names[np.argwhere(adjacency)], n, directed, rng)


@cache
def _up_to_names(n: int, directed: bool) -> tuple[Array, ...]:
    """One matrix for each class of graphs that are equal but for the names of their ``n`` nodes."""
    cells = [(u, v) for u in range(n) for v in range(n) if (u != v if directed else u < v)]
    renamings = [np.array(names) for names in itertools.permutations(range(n))]
    found: dict[bytes, Array] = {}
    for chosen in itertools.product((False, True), repeat=len(cells)):
        adjacency = np.zeros((n, n), dtype=np.bool_)
        for cell, here in zip(cells, chosen, strict=True):
            adjacency[cell] = here
        whole = adjacency if directed else adjacency | adjacency.T
        found.setdefault(min(whole[np.ix_(names, names)].tobytes() for names in renamings), adjacency)
    return tuple(found.values())


def _with_records(ends: Array, n: int, directed: bool, rng: np.random.Generator) -> Graph:
    features = rng.standard_normal((n, 4)) * 10.0 ** rng.integers(-2, 3)
    labels = rng.integers(-1, 3, n)
    graph = Graph.from_edges(ends[:, 0], ends[:, 1], features, labels, directed=directed, num_classes=3)
    order = rng.permutation(n)
    cut = max(1, (2 * n) // 3)
    return graph.with_masks(order[:cut], order[cut:], None)
