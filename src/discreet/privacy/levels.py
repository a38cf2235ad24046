"""What is protected: which two graphs count as neighbours, in words, as text, as data, and as a sampler.

Every level draws neighbours by the definition that its certificate states, so tests and audits use the
very relation that is promised.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.errors import PrivacyError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.graph.parts import (
    EDGES,
    EVERYTHING_PUBLIC,
    FEATURES,
    LABELS,
    PARTS,
    PrivatePart,
    PublicPart,
    check_declared,
)
from discreet.limits import DEGREE, PROBABILITY, shown
from discreet.privacy.moves import (
    all_but,
    change_one_edge,
    null_record,
    pick_node,
    replace_record,
    reweigh,
    toggle,
    with_new_edges,
    within_degree,
    without_edges,
)

Basis = Literal["owned", "promised", "thinned"]
Change = Literal["null", "replace"]
Protects = Literal["both", "features", "labels"]


@dataclass(frozen=True)
class Level(ABC):
    """A neighbouring relation on graphs. ``kind`` groups levels; ``spec`` is what the command line takes.

    ``private`` is what is protected of ``edges``, ``features`` and ``labels``: the one place that says so.
    """

    kind: ClassVar[str]
    private: ClassVar[frozenset[str]] = EVERYTHING_PUBLIC

    @property
    @abstractmethod
    def spec(self) -> str:
        """The level as one word with options; :func:`parse_level` reads it back."""

    @property
    def relation(self) -> str:
        """The neighbouring relation as one word: releases whose levels share it add up, others do not.

        A bound on owned edges is a matter of how they are read, not of which graphs are neighbours, so it is left out.
        """
        options = self.spec.split(",")
        owned = getattr(self, "edges", None) == "owned"
        return ",".join(option for option in options if not (owned and option.startswith("max_degree=")))

    @abstractmethod
    def describe(self) -> str:
        """The neighbouring relation in words, for the certificate."""

    def describe_on(self, weighted: bool) -> str:
        """The same on graphs whose edges have weights, if they do: a weight is a part of its edge."""
        if not weighted or EDGES not in self.private:
            return self.describe()
        return (
            f"{self.describe()}. Edges have weights in [0, 1]: an edge with another weight is another edge, and moving "
            "the weight of an edge that stays is one change, as adding or removing the edge is"
        )

    @abstractmethod
    def public_knowledge(self) -> str:
        """What the guarantee takes as known to everyone, in words."""

    @abstractmethod
    def neighbor(self, graph: Graph, rng: np.random.Generator) -> Graph:
        """Draw a neighbour of the graph, worst cases included."""

    def view(self, graph: Graph) -> Graph:
        """The graph as this level reads it; the same object where nothing changes."""
        return graph

    def split(self, graph: Graph) -> tuple[PublicPart, PrivatePart]:
        """The public part, for the estimator, and the private one, for the curator.

        Guarantee: the public part holds no array that :attr:`private` names; on two neighbours it is the same. A graph
        whose split was chosen by labels is refused where those are private, for its masks are public.
        Classes, direction, ranges and categories that were read off a private part are refused too.
        """
        if graph.split_reads_labels and LABELS in self.private:
            raise UnsupportedError(
                "the split was chosen by looking at labels, and this level protects labels: use per cent, 75/10/15 for "
                "example"
            )
        seen = self.view(graph)
        check_declared(seen, self.private)
        return PublicPart(seen, self.private), PrivatePart(seen)

    def opened(self, graph: Graph, parts: frozenset[str]) -> PublicPart:
        """The graph as a prediction may read it: what is public, and these ``parts`` (see ``coverage.READS``).

        Guarantee: open features are for row v of a prediction to read row v alone, open edges to read those at v alone.
        That a method keeps to its own row is checked by the replay audit; that it reads nothing else is enforced here.
        """
        return PublicPart(self.view(graph), self.private, parts)

    def check(self, graph_directed: bool) -> None:  # noqa: B027  (most levels take any graph)
        """Refuse a graph whose edges this level does not describe."""

    def check_size(self, num_nodes: int) -> None:  # noqa: B027  (most levels take any graph)
        """Refuse a graph that is too small for the level to mean anything."""


@dataclass(frozen=True)
class NoPrivacy(Level):
    """Nothing is protected: ε = ∞, and every output says so."""

    kind: ClassVar[str] = "none"

    @property
    def spec(self) -> str:
        """``none``."""
        return "none"

    def describe(self) -> str:
        """Say loudly that there is no guarantee."""
        return "no guarantee: nothing is protected (ε = ∞)"

    def public_knowledge(self) -> str:
        """Everything."""
        return "everything"

    def neighbor(self, graph: Graph, rng: np.random.Generator) -> Graph:
        """Without a guarantee there is no neighbour to draw."""
        raise UnsupportedError("level none has no neighbouring relation")


@dataclass(frozen=True)
class EdgeLevel(Level):
    """One edge present or absent. Features, labels and the number of nodes are public.

    An undirected edge is *two* adjacency entries; a directed one is a single entry.
    """

    directed: bool = False
    kind: ClassVar[str] = "edge"
    private: ClassVar[frozenset[str]] = frozenset({EDGES})

    def __post_init__(self) -> None:
        """A word such as "undirected" would count as true, and halve what an edge is taken to change."""
        if not isinstance(self.directed, bool):
            raise PrivacyError(f"directed must be True or False, not {shown(self.directed)}")

    @property
    def spec(self) -> str:
        """``edge`` or ``edge:directed``."""
        return "edge:directed" if self.directed else "edge"

    def describe(self) -> str:
        """One edge added or removed."""
        if self.directed:
            return "two graphs are neighbours if they differ in one directed edge (one adjacency entry)"
        return "two graphs are neighbours if they differ in one undirected edge (two adjacency entries)"

    def public_knowledge(self) -> str:
        """All but the edges."""
        return "the nodes, their features and labels, the split, and whether the graph is directed"

    def check(self, graph_directed: bool) -> None:
        """The level and the graph must agree on what one edge is."""
        if graph_directed and not self.directed:
            raise UnsupportedError(
                "level edge protects undirected edges, but the graph is directed: use level edge:directed, "
                "or make it undirected (--undirected on the command line, graph.to_undirected() in Python)"
            )
        if self.directed and not graph_directed:
            raise UnsupportedError(
                "level edge:directed protects single entries, but the graph is undirected, where one edge is "
                "two entries: use level edge, or read the graph with its directions (--directed, directed=True)"
            )

    def neighbor(self, graph: Graph, rng: np.random.Generator) -> Graph:
        """Toggle one edge: any pair, an existing edge, at the hub, or at a node of least degree.

        Where edges have weights, half of the time one that is there gets another weight instead.
        """
        if graph.num_nodes < 2:
            raise UnsupportedError("a graph of one node has no edge to add or remove")
        return change_one_edge(graph, rng, both_ways=not self.directed)


@dataclass(frozen=True)
class NeighborLevel(Level):
    """One node's features and label, and up to k of its edges (the DPDGC paper, definition 4.1)."""

    k: int
    max_degree: int | None = None
    edges: Basis = "owned"
    kind: ClassVar[str] = "neighbor"
    private: ClassVar[frozenset[str]] = PARTS

    def __post_init__(self) -> None:
        """k and the degree bound must be positive."""
        _require_positive("k", self.k)
        if self.max_degree is not None:
            _require_positive("max_degree", self.max_degree)
        _require_word("edges at level neighbor", self.edges, ("owned", "promised"))

    @property
    def spec(self) -> str:
        """``neighbor:K`` with its options."""
        options = [] if self.max_degree is None else [f"max_degree={self.max_degree}"]
        options += [] if self.edges == "owned" else [f"edges={self.edges}"]
        return ",".join([f"neighbor:{self.k}", *options])

    def describe(self) -> str:
        """Features, label and k edges of one node."""
        which = "outgoing edges" if self.edges == "owned" else "edges"
        return (
            "two graphs are neighbours if one can be had from the other by replacing the features and the "
            f"label of one node and adding or removing at most {self.k} of its {which}"
            + _degree_words(self.max_degree, self.edges)
        )

    def public_knowledge(self) -> str:
        """The node ids and the split."""
        return "the number of nodes, the split of node ids, and the feature and class lists"

    def view(self, graph: Graph) -> Graph:
        """On the owned basis every entry belongs to its source alone."""
        return graph.as_directed() if self.edges == "owned" else graph

    def check_size(self, num_nodes: int) -> None:
        """No node has more than n entries to toggle."""
        if self.k > num_nodes:
            raise PrivacyError(
                f"level neighbor:{self.k} speaks of {self.k} edges of one node, but the graph has only {num_nodes} "
                "nodes: give a smaller k, or use level node, which protects all edges of a node"
            )

    def neighbor(self, graph: Graph, rng: np.random.Generator) -> Graph:
        """Replace one node's record and toggle up to k of its edges, within the degree bound.

        Where edges have weights, half of the time those of the k that are there get other weights, and the rest stays.
        """
        graph = self.view(graph)
        node = pick_node(graph, rng)
        changed = replace_record(graph, node, rng)
        others = all_but(node, graph.num_nodes)
        toggled = rng.choice(others, size=min(self.k, len(others)), replace=False)
        both_ways = self.edges == "promised" and not graph.directed
        if graph.edge_weights is not None and rng.integers(2):
            return reweigh(changed, node, toggled, rng, both_ways=both_ways)
        if self.edges == "promised" and self.max_degree:
            toggled = within_degree(changed, node, toggled, self.max_degree)
        return toggle(changed, node, toggled, both_ways=both_ways)


@dataclass(frozen=True)
class NodeLevel(Level):
    """One whole node: features, label and edges, on one of three bases for the degree bound.

    *owned*: a node owns its outgoing edges, an undirected edge being two entries; the ``max_degree``
    of smallest keyed hash are kept. *promised*: a node has all its edges; no degree exceeds the public
    ``max_degree``, or the graph is refused. *thinned*: no degree exceeds the public ``d_max``; every
    entry survives with probability ``p``.
    """

    max_degree: int | None = None
    edges: Basis = "owned"
    change: Change = "null"
    d_max: int | None = None
    p: float | None = None
    kind: ClassVar[str] = "node"
    private: ClassVar[frozenset[str]] = PARTS
    default_max_degree: ClassVar[int] = 10

    def __post_init__(self) -> None:
        """Each basis has the bounds that it needs, and no other."""
        _require_word("edges", self.edges, ("owned", "promised", "thinned"))
        _require_word("change", self.change, ("null", "replace"))
        if self.edges == "thinned":
            self._check_thinned()
            return
        if self.d_max is not None or self.p is not None:
            raise PrivacyError(f"d_max and p belong to edges=thinned, not to edges={self.edges}")
        if self.max_degree is None:
            object.__setattr__(self, "max_degree", self.default_max_degree)
        _require_positive("max_degree", self.max_degree)

    def _check_thinned(self) -> None:
        if self.max_degree is not None:
            raise PrivacyError("edges=thinned takes d_max and p, not max_degree")
        if self.d_max is None or self.p is None:
            raise PrivacyError("edges=thinned needs d_max (a public bound on degrees) and p (survival probability)")
        _require_positive("d_max", self.d_max)
        PROBABILITY.check("p", self.p, PrivacyError)

    @property
    def spec(self) -> str:
        """``node:BASIS`` with its options."""
        thinned = self.edges == "thinned"
        bounds = f"d_max={self.d_max},p={self.p}" if thinned else f"max_degree={self.max_degree}"
        return f"node:{self.edges},{bounds},change={self.change}"

    def describe(self) -> str:
        """One node with its edges."""
        unit = {
            "owned": "features, label and outgoing edges of one node (an undirected edge being two, each owned "
            "by its source, so that a friendship stands in two units)",
            "promised": "features, label and all edges of one node",
            "thinned": "features, label and all edges of one node",
        }[self.edges]
        verb = "removing" if self.change == "null" else "replacing"
        bound = self.d_max if self.edges == "thinned" else self.max_degree
        return (
            f"two graphs are neighbours if one can be had from the other by {verb} the {unit}; "
            "the number of nodes does not change" + _degree_words(bound, self.edges)
        )

    def public_knowledge(self) -> str:
        """The node ids and the split."""
        return "the number of nodes, the split of node ids, and the feature and class lists"

    def view(self, graph: Graph) -> Graph:
        """On the owned basis every entry belongs to its source alone."""
        return graph.as_directed() if self.edges == "owned" else graph

    def neighbor(self, graph: Graph, rng: np.random.Generator) -> Graph:
        """Remove or replace one node's record: a random node or the hub, its edges kept, moved or dropped."""
        graph = self.view(graph)
        node = pick_node(graph, rng)
        if self.change == "null":
            return without_edges(null_record(graph, node), node, both_ways=self.edges != "owned")
        changed = replace_record(graph, node, rng)
        choice = int(rng.integers(3))
        if choice == 0 and graph.edge_weights is not None:
            others = all_but(node, graph.num_nodes)
            return reweigh(changed, node, others, rng, both_ways=self.edges != "owned")
        if choice == 0:
            return changed
        bare = without_edges(changed, node, both_ways=self.edges != "owned")
        if choice == 1:
            return bare
        bound = self.d_max if self.edges == "thinned" else self.max_degree
        return with_new_edges(bare, node, rng, None if self.edges == "owned" else bound or 0)


@dataclass(frozen=True)
class LocalLevel(Level):
    """Every node perturbs its own record before it leaves it; the topology is public.

    ``protects`` says which part of a record is private: ``both`` features and label, or one of them; the other is
    then public, and every output says so.
    """

    protects: Protects = "both"
    kind: ClassVar[str] = "local"
    private: ClassVar[frozenset[str]] = frozenset({FEATURES, LABELS})

    def __post_init__(self) -> None:
        """Refuse a part that records do not have."""
        _require_word("protects", self.protects, ("both", "features", "labels"))
        if self.protects != "both":
            object.__setattr__(self, "private", frozenset({self.protects}))

    @property
    def spec(self) -> str:
        """``local``, ``local:features`` or ``local:labels``."""
        return "local" if self.protects == "both" else f"local:{self.protects}"

    def describe(self) -> str:
        """One node's own record, or a part of it."""
        part = {"both": "features and the label", "features": "features", "labels": "label"}[self.protects]
        return (
            f"two graphs are neighbours if they differ in the {part} of one node; what leaves "
            "each node is already private, so no curator is trusted" + self._exposed()
        )

    def _exposed(self) -> str:
        if self.protects == "both":
            return ""
        other = "LABELS" if self.protects == "features" else "FEATURES"
        return f". {other} ARE NOT PROTECTED"

    def public_knowledge(self) -> str:
        """The topology, and what is not protected."""
        known = {
            "both": "the nodes and all edges, the range of the features, and the class list",
            "features": "the nodes and all edges, ALL LABELS, the range of the features, and the class list",
            "labels": "the nodes and all edges, ALL FEATURES, and the class list",
        }
        return known[self.protects]

    def neighbor(self, graph: Graph, rng: np.random.Generator) -> Graph:
        """Replace one node's features and label, or the part that is protected."""
        changed = replace_record(graph, int(rng.integers(graph.num_nodes)), rng)
        if self.protects == "features":
            return changed.with_labels(graph.labels)
        return changed if self.protects == "both" else graph.with_labels(changed.labels)


def _require_word(name: str, value: str, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        raise PrivacyError(f"{name} must be {', '.join(words[:-1])} or {words[-1]}, not {shown(value)}")


def _require_positive(name: str, value: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PrivacyError(f"{name} must be a whole number of at least 1, not {shown(value)}")
    DEGREE.check(name, value, PrivacyError)


def _degree_words(bound: int | None, basis: Basis) -> str:
    if bound is None:
        return ""
    return {
        "owned": f"; of each node's outgoing edges the {bound} of smallest keyed hash are used",
        "promised": f"; the data holder promises that no degree exceeds {bound}",
        "thinned": f"; the data holder promises that no degree exceeds {bound}, and edges are thinned",
    }[basis]


# -------------------------------------------------------------------- levels as text

FORMS = (
    "none, edge, edge:directed, neighbor:K[,max_degree=D][,edges=owned|promised], "
    "node[:owned|promised][,max_degree=D][,change=null|replace], node:thinned,d_max=D,p=P, "
    "local[:features|labels]"
)
_WHOLE = {"max_degree", "d_max"}
_REAL = {"p"}
_WORD = {"change", "edges"}


def parse_level(spec: str) -> Level:
    """Read a level; the inverse of ``level.spec``."""
    if not isinstance(spec, str):
        raise PrivacyError(f"a level is written as a text, not as {shown(spec)}: {FORMS}")
    head, *pairs = (part.strip() for part in spec.strip().split(","))
    kind, _, argument = head.partition(":")
    if "=" in argument:  # node:max_degree=10 is node,max_degree=10
        argument, pairs = "", [argument, *pairs]
    options = _options(pairs, spec)
    if kind == "none" and not argument and not options:
        return NoPrivacy()
    if kind == "local" and not options:
        return LocalLevel(argument or "both")  # type: ignore[arg-type]  # the level checks the word
    if kind == "edge" and argument in ("", "directed") and not options:
        return EdgeLevel(directed=argument == "directed")
    if kind == "neighbor" and argument:
        return _build(NeighborLevel, spec, k=_whole("k", argument), **options)
    if kind == "node":
        return _build(NodeLevel, spec, **_options([f"edges={argument}", *pairs] if argument else pairs, spec))
    raise PrivacyError(f"level {spec!r} is not known; write one of: {FORMS}")


def _build(kind: type[Level], spec: str, **options: Any) -> Level:
    try:
        return kind(**options)
    except TypeError as error:
        raise PrivacyError(f"level {spec!r} has an option that it does not take; write one of: {FORMS}") from error


def _options(pairs: Sequence[str], spec: str) -> dict[str, Any]:
    """Each option once: of two words about what is protected none may win in silence."""
    options: dict[str, Any] = {}
    for key, value in (_option(pair, spec) for pair in pairs):
        if key in options:
            raise PrivacyError(f"level {spec!r} says {key} twice: leave one out")
        options[key] = value
    return options


def _option(pair: str, spec: str) -> tuple[str, Any]:
    key, equals, value = pair.partition("=")
    if not equals:
        raise PrivacyError(f"level {spec!r}: {pair!r} is not of the form key=value; write one of: {FORMS}")
    if key in _WHOLE:
        return key, _whole(key, value)
    if key in _REAL:
        try:
            return key, float(value)
        except ValueError:
            raise PrivacyError(f"level option {key} must be a number, not {value!r}") from None
    if key in _WORD:
        return key, value
    known = ", ".join(sorted(_WHOLE | _REAL | _WORD))
    raise PrivacyError(f"level {spec!r} has no option {key!r}; the options are {known}")


def _whole(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise PrivacyError(f"level option {key} must be a whole number, not {shown(value)}") from None
