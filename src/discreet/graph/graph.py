"""The immutable graph: CSR edges, features, labels, masks, and the facts that are public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.errors import GraphError

Features = np.ndarray | sp.csr_array
MASKS = ("train", "val", "test")
UNLABELLED = -1


@dataclass(frozen=True)
class PublicFacts:
    """What every level takes as public, and the only thing a plan may look at.

    The number of edges is absent on purpose: it is private at every level but `local` and `none`.
    Which node *ids* are in the training set is taken as public, the labels on them are not.
    """

    num_nodes: int
    num_features: int
    num_classes: int
    num_train: int
    directed: bool


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A homogeneous graph for node classification, validated once and never changed.

    Edges are stored by *receiver*: row ``v`` of the CSR arrays lists, in rising order, the senders
    ``u`` of the edges ``u → v`` along which data reaches ``v``. An undirected graph holds both
    directions of every edge. There are no self-loops, duplicates or weights.

    Build one with :meth:`from_edges`, or from files and other libraries with ``discreet.graph.io``
    and ``discreet.graph.convert``; the plain constructor takes arrays already in this form and checks them.

    Parameters
    ----------
    indptr, indices
        CSR rows of senders, by receiver.
    features
        One row a node: a dense float32 array, or a ``scipy.sparse.csr_array`` that stays sparse.
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
    class_names
        The caller's own names of the classes, if any.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int64]
    features: Features
    labels: npt.NDArray[np.int64]
    num_classes: int
    directed: bool
    train_mask: npt.NDArray[np.bool_] | None = None
    val_mask: npt.NDArray[np.bool_] | None = None
    test_mask: npt.NDArray[np.bool_] | None = None
    node_ids: npt.NDArray[Any] | None = None
    class_names: tuple[str, ...] | None = None
    name: str = "graph"
    _checked: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        """Validate what did not come through a method of this class, and freeze every array."""
        if not self._checked:
            _check_edges(self)
            _check_nodes(self)
        _check_masks(self)
        object.__setattr__(self, "_checked", False)  # a later dataclasses.replace checks again
        for array in _arrays_of(self):
            array.flags.writeable = False

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
        **rest: Any,
    ) -> Graph:
        """Build a graph from endpoint arrays, one entry an edge ``source → target``.

        Self-loops and duplicates are dropped. ``directed=False`` reads every entry as an undirected
        edge; ``directed=True`` keeps directions; ``None`` decides by looking: a symmetric edge set is
        undirected, any other is directed. The decision is remembered in ``graph.directed``.
        ``num_classes`` defaults to the largest label plus one; pass it where the class list is public
        and a class may be absent.
        """
        features = clean_features(features)
        num_nodes = features.shape[0]
        source, target = _clean_endpoints(sources, targets, num_nodes)
        source, target, directed = _settle_direction(source, target, num_nodes, directed)
        indptr, indices = _rows_by_receiver(source, target, num_nodes)
        label = clean_labels(labels, num_nodes)
        if num_classes is None:
            num_classes = int(label.max(initial=-1)) + 1
        graph = cls(indptr, indices, features, label, int(num_classes), directed, _checked=True, **rest)
        _check_nodes(graph)
        return graph

    def with_edges(self, sources: npt.ArrayLike, targets: npt.ArrayLike) -> Graph:
        """The same nodes under other edges, directed or undirected as before."""
        source, target = _clean_endpoints(sources, targets, self.num_nodes)
        source, target, _ = _settle_direction(source, target, self.num_nodes, self.directed)
        indptr, indices = _rows_by_receiver(source, target, self.num_nodes)
        return self._derive(indptr=indptr, indices=indices)

    def with_features(self, features: npt.ArrayLike | sp.spmatrix | sp.sparray) -> Graph:
        """The same graph with other features."""
        cleaned = clean_features(features)
        if cleaned.shape[0] != self.num_nodes:
            raise GraphError(f"features have {cleaned.shape[0]} rows, but the graph has {self.num_nodes} nodes")
        return self._derive(features=cleaned)

    def with_labels(self, labels: npt.ArrayLike) -> Graph:
        """The same graph with other labels; the number of classes stays."""
        graph = self._derive(labels=clean_labels(labels, self.num_nodes))
        _check_nodes(graph)
        return graph

    def with_masks(
        self, train: npt.ArrayLike | None, val: npt.ArrayLike | None, test: npt.ArrayLike | None
    ) -> Graph:
        """The same graph under another split: boolean masks, or arrays of node indices."""
        masks = {
            f"{name}_mask": None if given is None else _as_mask(given, self.num_nodes, name)
            for name, given in zip(MASKS, (train, val, test), strict=True)
        }
        return self._derive(**masks)

    def to_undirected(self) -> Graph:
        """Every edge with its reverse."""
        source, target = self.edges()
        source, target, _ = _settle_direction(source, target, self.num_nodes, directed=False)
        indptr, indices = _rows_by_receiver(source, target, self.num_nodes)
        return self._derive(indptr=indptr, indices=indices, directed=False)

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

    @property
    def public(self) -> PublicFacts:
        """The facts that a plan may use."""
        train = 0 if self.train_mask is None else int(self.train_mask.sum())
        return PublicFacts(self.num_nodes, self.num_features, self.num_classes, train, self.directed)

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """Unit-weight CSR matrix with ``A[v, u] = 1`` for an edge ``u → v``: ``A @ X`` sums what v receives."""
        ones = np.ones(self.num_entries, dtype=np.float32)
        matrix = sp.csr_array((ones, self.indices, self.indptr), shape=(self.num_nodes, self.num_nodes))
        matrix.has_sorted_indices = True
        return matrix

    def edges(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """All stored entries as (sources, targets); an undirected edge appears in both directions."""
        target = np.repeat(np.arange(self.num_nodes, dtype=np.int64), np.diff(self.indptr))
        return self.indices.copy(), target

    def in_degree(self) -> npt.NDArray[np.int64]:
        """How many edges reach each node."""
        return np.diff(self.indptr)

    def out_degree(self) -> npt.NDArray[np.int64]:
        """How many nodes each node's data reaches in one hop."""
        return np.bincount(self.indices, minlength=self.num_nodes)

    def mask(self, name: str) -> npt.NDArray[np.bool_]:
        """The mask of that name (``train``, ``val``, ``test``); an error where the graph has no split."""
        if name not in MASKS:
            raise GraphError(f"mask must be one of {', '.join(MASKS)}, not {name!r}")
        found = getattr(self, f"{name}_mask")
        if found is None:
            raise GraphError(f"the graph has no {name} mask: split it first, for example with discreet.split")
        return found  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        """One line with the shape of the graph."""
        kind = "directed" if self.directed else "undirected"
        storage = "sparse" if sp.issparse(self.features) else "dense"
        return (
            f"Graph({self.name!r}, nodes={self.num_nodes}, {kind} edges={self.num_edges}, "
            f"features={self.num_features} ({storage}), classes={self.num_classes})"
        )


# -------------------------------------------------------------------- settling what comes in


def clean_features(features: npt.ArrayLike | sp.spmatrix | sp.sparray) -> Features:
    """A finite float32 matrix: CSR stays sparse, anything else becomes a dense array of its own."""
    if sp.issparse(features):
        matrix = sp.csr_array(features, dtype=np.float32, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        _check_finite(matrix.data, lambda at: int(np.searchsorted(matrix.indptr, at, side="right") - 1))
        return matrix
    dense = np.array(features, dtype=np.float32, order="C")
    if dense.ndim != 2:
        raise GraphError(f"features must be a matrix with one row a node, not an array of shape {dense.shape}")
    _check_finite(dense, lambda at: int(at // max(1, dense.shape[1])))
    return dense


def clean_labels(labels: npt.ArrayLike | None, num_nodes: int) -> npt.NDArray[np.int64]:
    """Integer labels with -1 for unlabelled; missing labels altogether mean none is known."""
    if labels is None:
        return np.full(num_nodes, UNLABELLED, dtype=np.int64)
    given = np.asarray(labels)
    if given.shape != (num_nodes,):
        raise GraphError(f"labels have shape {given.shape}, but the graph has {num_nodes} nodes")
    if given.dtype.kind == "f":
        given = np.where(np.isnan(given), UNLABELLED, given)
        if not np.array_equal(given, np.round(given)):
            raise GraphError("labels must be whole numbers from 0, or -1 for an unlabelled node")
    if given.dtype.kind not in "iufb":
        raise GraphError(f"labels must be whole numbers from 0, not {given.dtype}; map class names to ids first")
    return given.astype(np.int64)


def _check_finite(values: np.ndarray, row_of: Any) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        row = row_of(int(np.flatnonzero(bad.ravel())[0]))
        raise GraphError(
            f"features hold {int(bad.sum())} values that are NaN or infinite (first in row {row}); "
            "fill or drop them before training"
        )


def _clean_endpoints(
    sources: npt.ArrayLike, targets: npt.ArrayLike, num_nodes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    source, target = np.asarray(sources), np.asarray(targets)
    if source.shape != target.shape or source.ndim != 1:
        raise GraphError(
            f"edges need two endpoint arrays of one length, not shapes {source.shape} and {target.shape}"
        )
    for array in (source, target):
        if array.size and array.dtype.kind not in "iu":
            raise GraphError(f"edge endpoints must be whole numbers, not {array.dtype}")
    source, target = source.astype(np.int64), target.astype(np.int64)
    for array in (source, target):
        outside = (array < 0) | (array >= num_nodes)
        if outside.any():
            raise GraphError(
                f"an edge names node {int(array[outside][0])}, but nodes run from 0 to {num_nodes - 1} "
                f"({int(outside.sum())} such endpoints)"
            )
    proper = source != target
    return source[proper], target[proper]


def _settle_direction(
    source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], num_nodes: int, directed: bool | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], bool]:
    forward = np.unique(target * num_nodes + source)
    backward = np.unique(source * num_nodes + target)
    if directed is None:
        directed = not np.array_equal(forward, backward)
    keys = forward if directed else np.union1d(forward, backward)
    return keys % max(num_nodes, 1), keys // max(num_nodes, 1), directed


def _rows_by_receiver(
    source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], num_nodes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """CSR arrays of edges that are already unique and sorted by (target, source)."""
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(target, minlength=num_nodes), out=indptr[1:])
    return indptr, source


def _as_mask(given: npt.ArrayLike, num_nodes: int, name: str) -> npt.NDArray[np.bool_]:
    array = np.asarray(given)
    if array.dtype == np.bool_:
        if array.shape != (num_nodes,):
            raise GraphError(f"the {name} mask has shape {array.shape}, but the graph has {num_nodes} nodes")
        return array.copy()
    if array.size and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= num_nodes):
        raise GraphError(f"the {name} set must be a boolean mask or node indices from 0 to {num_nodes - 1}")
    mask = np.zeros(num_nodes, dtype=np.bool_)
    mask[array.astype(np.int64)] = True
    return mask


# -------------------------------------------------------------------- checking


def _check_edges(graph: Graph) -> None:
    n = graph.features.shape[0]
    indptr, indices = graph.indptr, graph.indices
    if indptr.shape != (n + 1,) or indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise GraphError(f"indptr must rise from 0 to {len(indices)} in {n + 1} entries, one row a node")
    source, target = _clean_endpoints(
        indices, np.repeat(np.arange(n, dtype=np.int64), np.diff(indptr)), num_nodes=n
    )
    keys = target * n + source
    if len(keys) != len(indices) or (np.diff(keys) <= 0).any():
        raise GraphError("CSR rows must be sorted, without duplicates or self-loops: use Graph.from_edges")
    if not graph.directed and not np.array_equal(keys, np.unique(source * n + target)):
        raise GraphError("directed=False, but some edge lacks its reverse: use Graph.from_edges(directed=False)")


def _check_nodes(graph: Graph) -> None:
    n = graph.features.shape[0]
    if n == 0:
        raise GraphError("the graph has no nodes")
    if graph.labels.shape != (n,):
        raise GraphError(f"labels have shape {graph.labels.shape}, but the graph has {n} nodes")
    low, high = int(graph.labels.min()), int(graph.labels.max())
    if low < UNLABELLED or high >= graph.num_classes:
        bad = low if low < UNLABELLED else high
        raise GraphError(f"label {bad} is out of range: classes run from 0 to {graph.num_classes - 1}, -1 is none")
    if graph.node_ids is not None and len(graph.node_ids) != n:
        raise GraphError(f"there are {len(graph.node_ids)} node ids for {n} nodes")
    if graph.class_names is not None and len(graph.class_names) != graph.num_classes:
        raise GraphError(f"there are {len(graph.class_names)} class names for {graph.num_classes} classes")


def _check_masks(graph: Graph) -> None:
    seen = np.zeros(graph.num_nodes, dtype=np.bool_)
    for name in MASKS:
        mask = getattr(graph, f"{name}_mask")
        if mask is None:
            continue
        if mask.shape != (graph.num_nodes,) or mask.dtype != np.bool_:
            raise GraphError(f"the {name} mask must hold one boolean a node")
        if (mask & seen).any():
            raise GraphError(f"the {name} mask shares {int((mask & seen).sum())} nodes with another mask")
        seen |= mask


def _arrays_of(graph: Graph) -> Sequence[np.ndarray]:
    features = graph.features
    stored = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
    optional = [graph.train_mask, graph.val_mask, graph.test_mask, graph.node_ids]
    return [graph.indptr, graph.indices, graph.labels, *stored, *(a for a in optional if a is not None)]
