"""The immutable graph: CSR edges, features, labels, masks, and the facts that are public."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.arrays import Array, BoolArray, IntArray, SingleArray
from discreet.errors import GraphError, UnsupportedError
from discreet.graph.clean import (
    UNLABELLED,
    Features,
    check_edge_count,
    check_entries,
    check_one_weight,
    check_sizes,
    clean_endpoints,
    clean_features,
    clean_ids,
    clean_labels,
    clean_mask,
    clean_split,
    clean_weights,
    clean_whole_numbers,
    narrow_ids,
    rows_by_receiver,
    settle_direction,
    settle_weights,
)
from discreet.graph.given import as_count, as_names, as_text, as_truth
from discreet.graph.schema import Schema
from discreet.limits import shown

MASKS = ("train", "val", "test")
CLASS_LIST, DIRECTION, COLUMNS, WEIGHTS = "classes", "direction", "columns", "weights"
"""What may have been read off the data, or left open in a draft, where nobody declared it; see ``Graph.inferred``."""


class NamedSplit(NamedTuple):
    """A split that came with the data: 0 for a node outside it, then 1, 2, 3 for train, val, test."""

    name: str
    part: npt.NDArray[np.int8]


OWN_SPLIT = "own"
"""The word for masks that came with the data."""


class SplitBy(NamedTuple):
    """How ``discreet.split`` chose masks: the text and the seed that it was given."""

    spec: str
    seed: int


@dataclass(frozen=True)
class PublicFacts:
    """What every level takes as public, and the only thing a plan may look at.

    The number of edges is absent on purpose: it is private at every level but `local` and `none`.
    Which node *ids* are in the training and validation sets is taken as public, the labels on them are not.
    ``num_val`` counts the validation ids that are not training ids too. ``weighted`` says whether edges have weights:
    that was declared, the weights themselves are as private as the edges.
    """

    num_nodes: int
    num_features: int
    num_classes: int
    num_train: int
    directed: bool
    num_val: int = 0
    weighted: bool = False


NO_ROWS = (
    "a graph is no table of rows, and every fit on a private one costs budget, so searches, cross-validation and "
    "pipelines of scikit-learn cannot be used; search settings with discreet.tune, which charges for all trials, and "
    "on public graphs loop over discreet.split(graph, seed=…)"
)
"""What to use in the place of ``GridSearchCV``, ``cross_val_score`` and the like."""


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A homogeneous graph for node classification, validated once and never changed.

    Edges are stored by *receiver*: row ``v`` of the CSR arrays lists, in rising order, the senders
    ``u`` of the edges ``u → v`` along which data reaches ``v``. An undirected graph holds both
    directions of every edge. There are no self-loops or duplicates. An edge may have a weight in [0, 1].

    Build one with :meth:`from_edges`, or from files and other libraries with ``discreet.graph.io``
    and ``discreet.graph.convert``; the plain constructor takes arrays already in this form and checks them.

    Parameters
    ----------
    indptr, indices
        CSR rows of senders, by receiver. Senders are held in 32 bits where ids fit.
    features
        One row per node: a dense float32 array, or a ``scipy.sparse.csr_array`` that stays sparse.
    labels
        Class ids from 0, or -1 for a node without a label.
    num_classes
        The public number of classes (a class may have no node).
    directed
        Whether an edge ``u → v`` may stand without ``v → u``.
    train_mask, val_mask, test_mask
        Boolean arrays, or None where there is no split. A masked node may lack a label; training and
        scoring skip it.
    node_ids
        The caller's own names of the nodes, if any; row order.
    class_names, feature_names
        The caller's own names of the classes and of the features, if any.
    named_splits
        Published splits that came with the data, for ``discreet.split`` to choose from.
    split_by
        How ``discreet.split`` chose the masks; None where they came with the data.
    split_reads_labels
        Whether ``discreet.split`` chose the masks by looking at labels: levels that protect labels refuse such a graph.
    edge_weights
        A weight in [0, 1] for each of ``indices``, or None where every edge counts the same. It is a part of the edge:
        an edge with another weight is another edge.
    schema
        What the columns of the tables mean from which the features were made, if they came from tables.
    inferred
        What nobody declared and was read off the data: ``classes`` (from labels), ``direction`` (from edges),
        ``columns`` (from the values of features). A level that protects these refuses such a graph. In a draft
        ``weights`` says that nobody declared whether a column of weights is read.

    Guarantee: the arrays are read-only and share no memory that a caller could still write to.
    """

    in_blocks: ClassVar[bool] = False
    """Whether edges lie in blocks elsewhere, and can only be summed over (``graph.graph_in_blocks``)."""

    indptr: IntArray
    indices: IntArray
    features: Features
    labels: IntArray
    num_classes: int
    directed: bool
    train_mask: BoolArray | None = None
    val_mask: BoolArray | None = None
    test_mask: BoolArray | None = None
    node_ids: Array | None = None
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    named_splits: tuple[NamedSplit, ...] = ()
    name: str = "graph"
    split_reads_labels: bool = False
    split_by: SplitBy | None = None
    schema: Schema | None = None
    inferred: frozenset[str] = frozenset()
    edge_weights: SingleArray | None = None
    _checked: bool = field(default=False, repr=False)
    public: PublicFacts = field(init=False)
    """The facts that a plan may use."""

    def __post_init__(self) -> None:
        """Validate what did not come through a method of this class, and freeze every array."""
        if not self._checked:
            self._clean_arrays()
            check_entries(self.indptr, self.indices, self.features.shape[0], self.directed)
            if self.edge_weights is not None and not self.directed:
                check_one_weight(self.indptr, self.indices, self.edge_weights)
        check_edge_count(len(self.indices))
        object.__setattr__(self, "indices", narrow_ids(self.indices, self.features.shape[0]))
        self._clean_rest()
        _check_nodes(self)
        _check_masks(self)
        object.__setattr__(self, "public", _public_facts(self))
        object.__setattr__(self, "_checked", False)  # a later dataclasses.replace checks again
        _freeze(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Freeze again after unpickling or copying, which gives writeable arrays."""
        self.__dict__.update(state)
        _freeze(self)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        """Refuse to be taken for a table, as scikit-learn's searches would."""
        raise UnsupportedError(NO_ROWS)

    def _clean_arrays(self) -> None:
        """Bring what the plain constructor was given into this class's types, in memory of its own."""
        features = clean_features(self.features)
        cleaned = {
            "features": features,
            "labels": clean_labels(self.labels, features.shape[0]),
            "indptr": clean_whole_numbers(self.indptr, "indptr"),
            "indices": clean_whole_numbers(self.indices, "indices"),
        }
        if self.edge_weights is not None:
            cleaned["edge_weights"] = clean_weights(self.edge_weights, len(cleaned["indices"]))
        for name, value in cleaned.items():
            object.__setattr__(self, name, value)

    def _clean_rest(self) -> None:
        n = self.features.shape[0]
        object.__setattr__(self, "num_classes", as_count(self.num_classes, "the number of classes"))
        object.__setattr__(self, "directed", as_truth(self.directed, "directed"))
        as_text(self.name, "the name of a graph")
        for name in MASKS:
            given = getattr(self, f"{name}_mask")
            if given is not None:
                object.__setattr__(self, f"{name}_mask", clean_mask(given, n, name))
        if self.node_ids is not None:
            object.__setattr__(self, "node_ids", clean_ids(self.node_ids, n))
        for names in ("class_names", "feature_names"):
            if getattr(self, names) is not None:
                object.__setattr__(self, names, as_names(getattr(self, names), names.replace("_", " ")))
        object.__setattr__(self, "named_splits", tuple(_clean_splits(self.named_splits, n)))

    # ---------------------------------------------------------------- building

    @classmethod
    def from_edges(
        cls,
        sources: npt.ArrayLike,
        targets: npt.ArrayLike,
        features: npt.ArrayLike | sp.spmatrix | sp.sparray,
        labels: npt.ArrayLike | None = None,
        *,
        directed: bool | None = None,
        num_classes: int | None = None,
        edge_weights: npt.ArrayLike | None = None,
        **rest: Any,
    ) -> Graph:
        """Build a graph from endpoint arrays, one entry an edge ``source → target``.

        Self-loops and duplicates are dropped. ``directed=False`` reads every entry as an undirected
        edge; ``directed=True`` keeps directions; ``None`` decides by looking: a symmetric edge set is
        undirected, any other is directed. The decision is remembered in ``graph.directed``.
        ``num_classes`` defaults to the largest label plus one; pass it where the class list is public
        and a class may be absent. ``edge_weights`` has one number for each entry, which is clipped to [0, 1]; of
        duplicates the largest counts. What was not given is noted in ``graph.inferred``: a level that protects edges
        needs ``directed``, and one that protects labels needs ``num_classes``.
        """
        features = clean_features(features)
        num_nodes = features.shape[0]
        directed = None if directed is None else as_truth(directed, "directed")
        inferred = set(rest.pop("inferred", ()))
        inferred |= {what for what, given in ((DIRECTION, directed), (CLASS_LIST, num_classes)) if given is None}
        source, target = clean_endpoints(sources, targets, num_nodes)
        source, target, directed = settle_direction(source, target, num_nodes, directed)
        indptr, indices = rows_by_receiver(source, target, num_nodes)
        if edge_weights is not None:
            given = clean_weights(edge_weights, len(np.asarray(sources)))
            settled_ends = indices, np.repeat(np.arange(num_nodes), np.diff(indptr))
            rest["edge_weights"] = settle_weights((sources, targets), given, settled_ends, num_nodes, directed)
        label = clean_labels(labels, num_nodes)
        if num_classes is None:
            num_classes = int(label.max(initial=-1)) + 1
        settled = {"inferred": frozenset(inferred), "_checked": True, **rest}
        return cls(indptr, indices, features, label, num_classes, directed, **settled)

    def with_edges(
        self, sources: npt.ArrayLike, targets: npt.ArrayLike, edge_weights: npt.ArrayLike | None = None
    ) -> Graph:
        """The same nodes under other edges, directed or undirected as before.

        Where edges have weights, those that stay keep theirs and new ones count in full, unless weights are given.
        """
        source, target = clean_endpoints(sources, targets, self.num_nodes)
        source, target, _ = settle_direction(source, target, self.num_nodes, self.directed)
        indptr, indices = rows_by_receiver(source, target, self.num_nodes)
        weights = self._weights_at(source, target)
        if edge_weights is not None:
            given = clean_weights(edge_weights, len(np.asarray(sources)))
            weights = settle_weights((sources, targets), given, (source, target), self.num_nodes, self.directed)
        return self._derive(indptr=indptr, indices=indices, edge_weights=weights)

    def with_entries(self, keep: BoolArray) -> Graph:
        """The same nodes under some of the entries, each standing by itself: directed graphs alone."""
        if not self.directed:
            raise GraphError("entries of an undirected graph do not stand by themselves: use with_edges")
        indptr = np.concatenate([[0], np.cumsum(keep)])[self.indptr]
        weights = None if self.edge_weights is None else self.edge_weights[keep]
        return self._derive(indptr=indptr, indices=self.indices[keep], edge_weights=weights)

    def _weights_at(self, source: IntArray, target: IntArray) -> SingleArray | None:
        """The weights that these entries have here; 1 for those that are not here."""
        if self.edge_weights is None:
            return None
        found = np.ones(len(source), dtype=np.float32)
        senders, receivers = self.edges()
        keys, wanted = receivers * self.num_nodes + senders, target * self.num_nodes + source
        place = np.searchsorted(keys, wanted)
        here = np.flatnonzero(np.isin(wanted, keys, assume_unique=True))
        found[here] = self.edge_weights[place[here]]
        return found

    def without_weights(self) -> Graph:
        """The same edges, each counting in full."""
        return self if self.edge_weights is None else self._derive(edge_weights=None)

    def with_features(self, features: npt.ArrayLike | sp.spmatrix | sp.sparray) -> Graph:
        """The same graph with other features; their names and their schema stay where there are as many."""
        cleaned = clean_features(features)
        if cleaned.shape[0] != self.num_nodes:
            raise GraphError(f"features have {cleaned.shape[0]} rows, but the graph has {self.num_nodes} nodes")
        same = cleaned.shape[1] == self.num_features
        names, schema = (self.feature_names, self.schema) if same else (None, None)
        return self._derive(features=cleaned, feature_names=names, schema=schema)

    def with_labels(self, labels: npt.ArrayLike) -> Graph:
        """The same graph with other labels; the number of classes stays."""
        return self._derive(labels=clean_labels(labels, self.num_nodes))

    def with_masks(self, train: npt.ArrayLike | None, val: npt.ArrayLike | None, test: npt.ArrayLike | None) -> Graph:
        """The same graph under another split: boolean masks, or arrays of node indices."""
        masks = {
            f"{name}_mask": None if given is None else clean_mask(given, self.num_nodes, name)
            for name, given in zip(MASKS, (train, val, test), strict=True)
        }
        return self._derive(split_reads_labels=False, split_by=None, **masks)

    def to_undirected(self) -> Graph:
        """Every edge with its reverse; an undirected graph is returned as it is."""
        if not self.directed:
            return self if DIRECTION not in self.inferred else self._derive(inferred=self.inferred - {DIRECTION})
        ends = self.edges()
        source, target, _ = settle_direction(*ends, self.num_nodes, directed=False)
        indptr, indices = rows_by_receiver(source, target, self.num_nodes)
        weights = self.edge_weights
        if weights is not None:
            weights = settle_weights(ends, weights, (source, target), self.num_nodes, directed=False)
        changes = {"indptr": indptr, "indices": indices, "edge_weights": weights}
        schema = None if self.schema is None else replace(self.schema, directed=False)  # of next month's table, too
        return self._derive(**changes, schema=schema, directed=False, inferred=self.inferred - {DIRECTION})

    def as_directed(self) -> Graph:
        """The same entries, each standing by itself, which says nothing of whether each had its reverse."""
        if self.directed and DIRECTION not in self.inferred:
            return self
        return self._derive(directed=True, inferred=self.inferred - {DIRECTION})

    def _derive(self, **changes: Any) -> Graph:
        """Replace fields whose validity the caller has established."""
        return replace(self, _checked=True, **changes)

    # ---------------------------------------------------------------- reading

    @property
    def num_nodes(self) -> int:
        """Number of nodes, n."""
        return int(self.labels.shape[0])

    @property
    def num_features(self) -> int:
        """Width of the feature matrix, d."""
        return int(self.features.shape[1])

    @property
    def num_entries(self) -> int:
        """Stored directed entries: twice the edges of an undirected graph. Private at most levels."""
        return int(self.indices.shape[0])

    @property
    def num_edges(self) -> int:
        """Edges as a person counts them. Private at most levels."""
        return self.num_entries if self.directed else self.num_entries // 2

    def check_in_memory(self) -> None:
        """Refuse a graph whose edges are not here, where they are wanted one by one."""
        if self.in_blocks:
            raise UnsupportedError(
                f"the edges of {self.name} lie in partitions and can only be summed over: what needs them one by one "
                "(level none, predictions from a node's own edges, most methods at node level) takes the whole graph, "
                "as --engine local reads it"
            )

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """Unit-weight CSR with ``A[v, u] = 1`` for an edge ``u → v``: ``A @ X`` sums what v receives."""
        return self._matrix_of(np.ones(self.num_entries, dtype=np.float32))

    @cached_property
    def weighted_adjacency(self) -> sp.csr_array:
        """The adjacency with the weight of every edge for its 1; :attr:`adjacency` itself where edges have none."""
        return self.adjacency if self.edge_weights is None else self._matrix_of(self.edge_weights)

    def _matrix_of(self, values: SingleArray) -> sp.csr_array:
        # Both index arrays in one type, or scipy would copy the longer one.
        starts = self.indptr.astype(self.indices.dtype) if self.num_entries < 2**31 else self.indptr
        matrix = sp.csr_array((values, self.indices, starts), shape=(self.num_nodes, self.num_nodes))
        matrix.has_sorted_indices = True
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
        return matrix

    def edges(self) -> tuple[IntArray, IntArray]:
        """All stored entries as (sources, targets); an undirected edge appears in both directions."""
        target = np.repeat(np.arange(self.num_nodes, dtype=np.int64), np.diff(self.indptr))
        return self.indices.astype(np.int64), target

    def in_degree(self) -> IntArray:
        """How many edges reach each node."""
        return np.diff(self.indptr)

    def out_degree(self) -> IntArray:
        """How many nodes each node's data reaches in one hop."""
        return np.bincount(self.indices, minlength=self.num_nodes)

    def named_split(self, name: str) -> tuple[BoolArray, ...]:
        """The (train, val, test) masks of a split that came with the data."""
        for known, part in self.named_splits:
            if known == name:
                return tuple(part == place for place in (1, 2, 3))
        known_names = ", ".join(split.name for split in self.named_splits) or "none"
        raise GraphError(f"the graph {self.name!r} has no split named {name!r} (it came with: {known_names})")

    def mask(self, name: str) -> BoolArray:
        """The mask of that name (``train``, ``val``, ``test``); an error where the graph has no split."""
        found: BoolArray | None = getattr(self, f"{name}_mask", None) if isinstance(name, str) else None
        if found is None:
            raise no_mask(name)
        return found

    def __repr__(self) -> str:
        """One line with the shape of the graph."""
        kind = "directed" if self.directed else "undirected"
        kind += " weighted" if self.edge_weights is not None else ""
        storage = "sparse" if sp.issparse(self.features) else "dense"
        return (
            f"Graph({self.name!r}, nodes={self.num_nodes}, {kind} edges={self.num_edges}, "
            f"features={self.num_features} ({storage}), classes={self.num_classes})"
        )


def no_mask(name: object) -> GraphError:
    """Why there is no mask of that name, and what to do."""
    if not isinstance(name, str) or name not in MASKS:
        return GraphError(f"mask must be one of {', '.join(MASKS)}, not {shown(name)}")
    return GraphError(
        f'the graph has no {name} mask: split it first, with discreet.split(graph, "75/10/15"), or with one of the '
        'splits that it brought: discreet.split(data, "mask:0") where masks have several columns'
    )


def _public_facts(graph: Graph) -> PublicFacts:
    none = np.zeros(graph.num_nodes, dtype=np.bool_)
    train, val = (none if mask is None else mask for mask in (graph.train_mask, graph.val_mask))
    return PublicFacts(
        graph.num_nodes,
        graph.num_features,
        graph.num_classes,
        num_train=int(train.sum()),
        directed=graph.directed,
        num_val=int((val & ~train).sum()),
        weighted=graph.edge_weights is not None,
    )


# -------------------------------------------------------------------- checking


def _check_nodes(graph: Graph) -> None:
    n = graph.features.shape[0]
    if n == 0:
        raise GraphError("the graph has no nodes")
    check_sizes(n, graph.num_classes)
    if graph.labels.shape != (n,):
        raise GraphError(f"labels have shape {graph.labels.shape}, but the graph has {n} nodes")
    low, high = int(graph.labels.min()), int(graph.labels.max())
    if low < UNLABELLED or high >= graph.num_classes:
        bad = low if low < UNLABELLED else high
        raise GraphError(f"label {bad} is out of range: classes run from 0 to {graph.num_classes - 1}, -1 is none")
    if graph.class_names is not None and len(graph.class_names) != graph.num_classes:
        raise GraphError(f"there are {len(graph.class_names)} class names for {graph.num_classes} classes")
    if graph.feature_names is not None and len(graph.feature_names) != graph.num_features:
        raise GraphError(f"there are {len(graph.feature_names)} feature names for {graph.num_features} features")


def _check_masks(graph: Graph) -> None:
    seen = np.zeros(graph.num_nodes, dtype=np.bool_)
    for name in MASKS:
        mask = getattr(graph, f"{name}_mask")
        if mask is None:
            continue
        if (mask & seen).any():
            raise GraphError(f"the {name} mask shares {int((mask & seen).sum())} nodes with another mask")
        seen |= mask


def _clean_splits(given: Any, num_nodes: int) -> Iterator[NamedSplit]:
    """Pairs of a name and a part."""
    if not isinstance(given, Sequence) or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in given):
        raise GraphError("named splits must be a list of pairs, each a name and the place of every node in that split")
    for name, part in given:
        yield NamedSplit(str(name), clean_split(part, str(name), num_nodes))


def _freeze(graph: Graph) -> None:
    for array in _arrays_of(graph):
        array.flags.writeable = False


def _arrays_of(graph: Graph) -> Sequence[np.ndarray]:
    features = graph.features
    stored = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
    optional = [graph.train_mask, graph.val_mask, graph.test_mask, graph.node_ids, graph.edge_weights]
    parts = [part for _, part in graph.named_splits]
    return [
        graph.indptr,
        graph.indices,
        graph.labels,
        *stored,
        *(a for a in optional if a is not None),
        *parts,
    ]
