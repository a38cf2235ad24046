"""A graph in two parts: what everyone may know, and what only queries may read.

``level.split(graph)`` gives both. The public part goes to the estimator; it *holds* no private array, so a cache, a
warning, a shape or a stashed reference that is made of it cannot depend on private data. The private part goes to
the curator, which hands it to queries and to nothing else.

Caches that were released for a graph are found again by a digest of its public part, see :class:`GraphKeys`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from discreet.arrays import Array, Arrays, BoolArray, IntArray, SingleArray
from discreet.errors import GraphError, PrivateDataError, UnsupportedError
from discreet.graph.clean import UNLABELLED, Features
from discreet.graph.graph import CLASS_LIST, COLUMNS, DIRECTION, Graph, PublicFacts, no_mask
from discreet.graph.schema import shorten
from discreet.graph.schema_file import lines_to_add
from discreet.workers import thread_count

EDGES, FEATURES, LABELS = "edges", "features", "labels"
PARTS = frozenset({EDGES, FEATURES, LABELS})
EVERYTHING_PUBLIC: frozenset[str] = frozenset()

FAR = 20.0
"""The root mean square of a column from which on it is large."""
LOOKED_AT = 2000
"""Rows that are looked at to see it."""

T = TypeVar("T")


class Topology(Protocol):
    """The edges of a graph, whole or of a part that may show them."""

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""

    @property
    def directed(self) -> bool:
        """Whether an edge may stand without its reverse."""

    @property
    def indptr(self) -> IntArray:
        """CSR rows of senders, by receiver."""

    @property
    def indices(self) -> IntArray:
        """The senders."""

    @property
    def adjacency(self) -> sp.csr_array:
        """``A[v, u] = 1`` for an edge u → v."""

    @property
    def weighted_adjacency(self) -> sp.csr_array:
        """The same with the weights of edges, where they have any."""

    @property
    def edge_weights(self) -> SingleArray | None:
        """The weights of ``indices``, or None."""

    def edges(self) -> tuple[IntArray, IntArray]:
        """All entries as (sources, targets)."""

    def in_degree(self) -> IntArray:
        """How many edges reach each node."""


_ARRAYS = {
    "features": FEATURES,
    "labels": LABELS,
    "indptr": EDGES,
    "indices": EDGES,
    "edge_weights": EDGES,
    "_topology": EDGES,
}
"""The attributes that a part may lack, and what they show."""


class PublicPart:
    """A graph of which only some arrays are there; asking for another raises :class:`PrivateDataError`.

    Guarantee: the object refers to no array that is closed. Facts, masks of node ids, the names of nodes, classes
    and features, and the schema are public at every level. A guard against mistakes, not against malice: Python has no
    walls.

    ``private`` names what the level protects; ``opened`` what of it may be read here all the same, which is nothing
    while training, and what a prediction's owner may see in ``privacy.coverage``.
    """

    features: Features
    labels: IntArray
    indptr: IntArray
    indices: IntArray
    edge_weights: SingleArray | None
    _topology: Graph

    def __init__(self, graph: Graph, private: frozenset[str], opened: frozenset[str] = frozenset()) -> None:
        """Keep what is public or opened; the rest of the graph is not referred to."""
        self.private, self._closed = private, private - opened
        self.facts: PublicFacts = graph.public
        self.num_nodes, self.num_features = self.facts.num_nodes, self.facts.num_features
        self.num_classes, self.directed = self.facts.num_classes, self.facts.directed
        self.train_mask, self.val_mask, self.test_mask = graph.train_mask, graph.val_mask, graph.test_mask
        self.node_ids, self.class_names, self.feature_names = graph.node_ids, graph.class_names, graph.feature_names
        self.schema, self.split_by = graph.schema, graph.split_by
        self.inferred = graph.inferred
        if FEATURES not in self._closed:
            self.features = graph.features
        if LABELS not in self._closed:
            self.labels = graph.labels
        if EDGES not in self._closed:
            graph.check_in_memory()
            self.indptr, self.indices, self.edge_weights = graph.indptr, graph.indices, graph.edge_weights
            self._topology = _edges_only(graph)

    def __getattr__(self, name: str) -> Any:
        """Reached for what is not here: private, or nothing that a graph has."""
        if name in _ARRAYS:
            raise PrivateDataError(
                f"{_ARRAYS[name]} are private at this level: only a query of the plan may read them (curator.ask)"
            )
        raise AttributeError(f"the public part of a graph has no {name!r}")

    @property
    def adjacency(self) -> sp.csr_array:
        """``A[v, u] = 1`` for an edge u → v."""
        return self._topology.adjacency

    @property
    def weighted_adjacency(self) -> sp.csr_array:
        """The same with the weights of edges, where they have any."""
        return self._topology.weighted_adjacency

    def edges(self) -> tuple[IntArray, IntArray]:
        """All entries as (sources, targets)."""
        return self._topology.edges()

    def in_degree(self) -> IntArray:
        """How many edges reach each node."""
        return self._topology.in_degree()

    def mask(self, name: str) -> BoolArray:
        """The mask of that name (``train``, ``val``, ``test``); an error where there is no split."""
        found: BoolArray | None = getattr(self, f"{name}_mask", None)
        if found is None:
            raise no_mask(name)
        return found

    @cached_property
    def features_key(self) -> bytes:
        """A digest of the features."""
        return _features_key(self.features)

    @cached_property
    def earlier_features_key(self) -> bytes:
        """The digest that releases before 0.2 hold: the same where features are small."""
        return _one_digest(self.features) if _is_hashed_in_blocks(self.features) else self.features_key

    def labelled(self, mask: BoolArray | None) -> IntArray:
        """The ids of a mask that have a label; none where there is no mask."""
        if mask is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(mask & (self.labels >= 0))

    def unscaled(self) -> str | None:
        """One sentence on public dense columns of large numbers, from which networks learn little; None without such.

        Tables are scaled when they are read, and sparse columns are word counts and the like. Some of many rows are
        looked at.
        """
        if FEATURES in self.private or not isinstance(self.features, np.ndarray):
            return None
        some = self.features[:: max(1, len(self.features) // LOOKED_AT)].astype(np.float64)
        size = np.sqrt((some**2).mean(axis=0))
        far = np.flatnonzero(size > FAR)
        if not len(far):
            return None
        columns = shorten(map(str, far.tolist()))
        return (
            f"features in columns {columns} are large numbers (about {size.max():.2g}), from which networks learn "
            "little: scale them to about one, or read tables with from_pandas or load, which do"
        )

    def __repr__(self) -> str:
        """Facts, and what cannot be read."""
        closed = ", ".join(sorted(self._closed)) or "nothing"
        return f"PublicPart({self.facts}, closed: {closed})"


@dataclass(eq=False)
class PrivatePart:
    """The graph as the level reads it, for queries alone, with the secrets and the workings of one fit.

    ``device`` and ``micro_batch`` say where and in what portions queries compute; they cannot affect privacy.
    It lives as long as the curator of one fit, so nothing derived from private data outlives that fit.
    """

    graph: Graph
    device: str = "cpu"
    micro_batch: int = 4096
    _keys: dict[str, bytes] = field(default_factory=dict, repr=False)
    _memory: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def key(self, purpose: str) -> bytes:
        """16 secret bytes that the curator drew for this purpose."""
        return self._keys[purpose]

    def entrust(self, purpose: str, key: bytes) -> None:
        """Take a key from the curator."""
        self._keys[purpose] = key

    def recall(self, name: Hashable) -> Any:
        """What was kept under this name earlier in the fit; None where nothing was."""
        return self._memory.get(name)

    def keep(self, name: Hashable, value: T) -> T:
        """Keep what is computed once per fit (a degree-bounded graph, features on a device), and give it back."""
        self._memory[name] = value
        return value

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Refuse to be pickled: a private part does not leave the process of its fit."""
        raise PrivateDataError("the private part of a graph cannot be pickled or copied")

    def __repr__(self) -> str:
        """Nothing private."""
        return "PrivatePart(…)"


def _edges_only(graph: Graph) -> Graph:
    """The edges of a graph without its records, so that whoever may read the one cannot reach the other."""
    nothing = sp.csr_array(graph.features.shape, dtype=np.float32)
    return graph._derive(features=nothing, labels=np.full(graph.num_nodes, UNLABELLED, dtype=np.int64))


# -------------------------------------------------------------------- refusing what was read off private data


def check_declared(graph: Graph, private: Collection[str]) -> None:
    """Refuse a graph of which something was read off a part that the level protects.

    One person with a label, a category or a value that nobody else has would change the shape of the model, and give
    themselves away with certainty. The names of columns are the header's, and nobody's data.
    """
    if EDGES in private and DIRECTION in graph.inferred:
        raise GraphError(
            "whether the edges have directions was read off the edges, which this level protects: say directed=True "
            "or directed=False"
        )
    if FEATURES in private and COLUMNS in graph.inferred:
        raise GraphError(
            f"the feature columns of {graph.name} were read off the values that occur, which this level protects: "
            "build the graph with columns that are public knowledge"
        )
    if LABELS in private and CLASS_LIST in graph.inferred:
        raise GraphError(
            "the classes were read off the labels, which this level protects: declare them, with "
            '--column classes=ONE,TWO, with classes = ["ONE", "TWO"] under [nodes] in schema.toml, or with '
            "num_classes in Python"
        )
    if FEATURES in private and graph.schema is not None and graph.schema.measured:
        _refuse_measured(graph)


def _refuse_measured(graph: Graph) -> None:
    """In words that depend on the header alone: that a column looks like categories may be one person's doing."""
    assert graph.schema is not None
    names = [column.name for column in graph.schema.measured]
    raise GraphError(
        f"the kinds, ranges or categories of the columns {shorten(names)} were read off features that this level "
        f"protects: declare them in schema.toml, for example {lines_to_add(names[0])} "
        "(discreet data FOLDER --write-schema drafts the file)"
    )


def refuse_empty_classes(part: PublicPart) -> None:
    """Refuse to learn class numbers that were read off public labels where most of them never occur.

    Some datasets mark nodes without a label with 255, or another number beyond the classes: a model of 256 classes is
    not what their user wants. Where labels are private the number of classes is declared, and nothing is looked at.
    """
    if LABELS in part.private or CLASS_LIST not in part.inferred or part.class_names is not None:
        return
    found = np.unique(part.labels[part.labels != UNLABELLED])
    if not len(found) or 2 * len(found) >= part.num_classes:  # an outline of a graph may hold no labels
        return
    raise GraphError(
        f"labels run from 0 to {part.num_classes - 1}, but only {len(found)} of these {part.num_classes} classes occur "
        f"({shorten(map(str, found))}): write -1 for nodes without a label if {found[-1]} marks them, number the "
        f"classes from 0 without gaps, or declare num_classes={part.num_classes} if there are so many"
    )


# -------------------------------------------------------------------- which graph is this?


class GraphKeys:
    """The keys of the graphs of a fit, the first being the graph itself."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Keys in the order of the graphs."""
        self._keys = list(keys)

    @classmethod
    def of(cls, parts: Sequence[PublicPart]) -> GraphKeys:
        """The keys of these graphs; an error where two are the same: a prediction could not say which it means."""
        keys = [public_key(part) for part in parts]
        if len(set(keys)) < len(keys):
            private = FEATURES in parts[0].private
            how = "give them node ids that differ" if private else "the features of both are the same, so leave one out"
            raise UnsupportedError(f"two of the graphs cannot be told apart by what is public of them: {how}")
        return cls(keys)

    def with_graph(self, part: PublicPart) -> GraphKeys:
        """These graphs and one more."""
        return GraphKeys([*self._keys, public_key(part)])

    def find(self, part: PublicPart) -> int | None:
        """The number of the graph that this is, or None; of one that was asked again, the last number."""
        found = [number for number, key in enumerate(self._keys) if has_key(part, key)]
        return found[-1] if found else None

    def state(self) -> Arrays:
        """``key.0``, ``key.1``, … for the release."""
        return {f"key.{number}": np.frombuffer(key, dtype=np.uint8) for number, key in enumerate(self._keys)}

    @classmethod
    def restore(cls, state: Mapping[str, Array], count: int) -> GraphKeys:
        """Inverse of :meth:`state`."""
        return cls([stored_key(state, f"key.{number}") for number in range(count)])


def stored_key(state: Mapping[str, Array], name: str) -> bytes:
    """The digest of this name in a release; ``ValueError`` where it is none."""
    found = state[name]
    if found.dtype.name != "uint8" or found.shape != (hashlib.sha256().digest_size,):
        raise ValueError(f"{name} is no digest")
    return found.tobytes()


def public_key(part: PublicPart) -> bytes:
    """A digest of what the level takes as public: features where they are, else how many nodes and their ids.

    Guarantee: no private array enters, whatever of them is opened for a prediction.
    """
    return _ids_key(part) if FEATURES in part.private else part.features_key


def has_key(part: PublicPart, key: bytes) -> bool:
    """Whether this is the :func:`public_key` of the part, in this version or an earlier one."""
    return key == public_key(part) or (FEATURES not in part.private and key == part.earlier_features_key)


HASHED_AT_ONCE = 1 << 26
"""Bytes that one digest takes in (64 MiB); what is larger is cut into blocks, which threads share."""


def _features_key(features: Features) -> bytes:
    """Of small features one digest, of large ones the digest of the digests of their blocks, in order.

    Guarantee: who finds two features with one key has found a collision of SHA-256. Shapes and precisions, which come
    first, say how long each array is and so where blocks end.
    """
    if not _is_hashed_in_blocks(features):
        return _one_digest(features)
    kinds = " ".join(str(array.dtype) for array in _arrays(features))
    found = hashlib.sha256(f"blocks of {HASHED_AT_ONCE}: {features.shape} {kinds}".encode())
    with ThreadPoolExecutor(thread_count(), thread_name_prefix="digest") as pool:
        for digest in pool.map(lambda block: hashlib.sha256(block).digest(), _blocks(features)):
            found.update(digest)
    return found.digest()


def _one_digest(features: Features) -> bytes:
    found = hashlib.sha256(str(features.shape).encode())
    for array in _arrays(features):
        found.update(np.ascontiguousarray(array).data)
    return found.digest()


def _is_hashed_in_blocks(features: Features) -> bool:
    return sum(array.nbytes for array in _arrays(features)) > HASHED_AT_ONCE


def _blocks(features: Features) -> Iterator[memoryview]:
    for array in _arrays(features):
        whole = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, len(whole), HASHED_AT_ONCE):
            yield whole[start : start + HASHED_AT_ONCE].data


def _arrays(features: Features) -> list[Array]:
    return [features] if isinstance(features, np.ndarray) else [features.indptr, features.indices, features.data]


def _ids_key(part: PublicPart) -> bytes:
    found = hashlib.sha256(f"{part.num_nodes}".encode())
    if part.node_ids is not None:
        found.update("\x00".join(str(name) for name in part.node_ids).encode())
    return found.digest()


def topology_key(graph: Topology) -> bytes:
    """A digest of the edges, for levels at which these are public. Records do not enter."""
    found = hashlib.sha256(f"{graph.num_nodes} {graph.directed}".encode())
    senders = graph.indices.astype(np.int64, copy=False)  # whatever they are held in, so that old digests are found
    for part in (graph.indptr, senders, *(() if graph.edge_weights is None else (graph.edge_weights,))):
        found.update(np.ascontiguousarray(part).data)
    return found.digest()
