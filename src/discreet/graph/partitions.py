"""A graph in partitions on disk: Parquet files of nodes and of the edges that reach them, and a manifest.

::

    manifest.json           facts of the graph; for every block its nodes, its entries, and the digests of its files
    edges-00000.parquet     source, target, and weight if edges have any: the entries that reach the nodes of block 0,
                            by target, then by source
    nodes-00000.parquet     label; features (one list per node, or the columns and values that are not zero); and, where
                            the graph has them, id, part (1 train, 2 val, 3 test) and a column for every named split

:class:`GraphInBlocks` is such a graph as methods see it: everything but its edges is at hand, and edges can be summed
over, block by block. The folder is as private as the graph.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.arrays import Array, FloatArray, IntArray, SingleArray
from discreet.errors import DataNotFoundError, GraphError, InvalidInputError, ParameterError
from discreet.files import expand_home, read_text, temporary_name
from discreet.graph.clean import LARGEST_FEATURE, Features, check_sizes
from discreet.graph.edge_weights import weighted_sums
from discreet.graph.graph import MASKS, Graph, NamedSplit
from discreet.graph.manifest_form import check_manifest
from discreet.graph.schema import Schema

FORMAT, VERSION, MANIFEST = "discreet partitions", 1, "manifest.json"
SPLIT = "split "
"""How the columns of named splits begin."""
_AT_ONCE = 1 << 16
"""Entries whose rows are held as doubles together: with 8 columns 4 MiB, which stay near the processor."""


# -------------------------------------------------------------------- the manifest


@dataclass(frozen=True)
class StoredBlock:
    """Nodes ``first`` to ``first + nodes``, how many entries reach them, and the digests of their files."""

    number: int
    first: int
    nodes: int
    entries: int = field(repr=False)  # workers' logs show what they were given, and this is private
    digests: Mapping[str, str] = field(repr=False)

    @property
    def rows(self) -> slice:
        """Where the nodes of the block stand among all."""
        return slice(self.first, self.first + self.nodes)

    @property
    def edges_file(self) -> str:
        """The name of the file with entries."""
        return f"edges-{self.number:05d}.parquet"

    @property
    def nodes_file(self) -> str:
        """The name of the file with nodes."""
        return f"nodes-{self.number:05d}.parquet"


@dataclass(frozen=True)
class Manifest:
    """What is known of a graph in partitions without opening any of them."""

    name: str
    num_nodes: int
    num_features: int
    num_classes: int
    directed: bool
    sparse: bool
    blocks: tuple[StoredBlock, ...]
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    splits: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()
    split_reads_labels: bool = False
    weighted: bool = False
    schema: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        blocks = [
            {"first": b.first, "nodes": b.nodes, "entries": b.entries, "sha256": dict(b.digests)} for b in self.blocks
        ]
        return {"format": FORMAT, "version": VERSION, **self.__dict__, "blocks": blocks}

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a folder, or one sentence about what is wrong with it."""
        path = folder / MANIFEST
        try:
            given = json.loads(read_text(path, "manifest of partitions"))
        except (ValueError, RecursionError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise GraphError(f"{path} is not valid JSON, which a manifest of partitions is") from None
        if not isinstance(given, dict) or (given.pop("format", None), given.pop("version", None)) != (FORMAT, VERSION):
            raise GraphError(f"{path} is not a manifest of partitions that this release reads")
        check_manifest(given, str(path))
        blocks = tuple(
            StoredBlock(number, b["first"], b["nodes"], b["entries"], b["sha256"])
            for number, b in enumerate(given.pop("blocks"))
        )
        lists = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
        made = cls(blocks=blocks, **{**given, **lists})
        made._check()
        return made

    def _check(self) -> None:
        """Blocks follow one another and hold all nodes, and scores of them fit into memory."""
        check_sizes(self.num_nodes, self.num_classes)
        ends = [0, *(block.rows.stop for block in self.blocks)]
        if any(block.first != end for block, end in zip(self.blocks, ends, strict=False)) or ends[-1] != self.num_nodes:
            raise GraphError("the blocks of the manifest do not hold every node once, in order")


def has_partitions(folder: Path) -> bool:
    """Whether a folder holds a graph in partitions."""
    return (folder / MANIFEST).is_file()


# -------------------------------------------------------------------- reading a block


def read_columns(path: Path, columns: Sequence[str]) -> list[Any]:
    """Columns of a Parquet file as arrays of pyarrow, each in one piece."""
    parquet = import_parquet()
    _check_plain(path)
    try:
        table = parquet.read_table(path, columns=list(columns), memory_map=True, use_threads=False)
        return [table.column(name).combine_chunks() for name in columns]
    except _UNREADABLE:
        raise GraphError(f"{path} is not a partition with the columns {', '.join(columns)}") from None


_UNREADABLE = (OSError, LookupError, ValueError, TypeError, NotImplementedError)
"""What pyarrow raises over a file that is no sound Parquet file."""


def _check_plain(path: Path) -> None:
    """Refuse what is not there, and what would never end: a pipe, or a link to a device."""
    if not path.is_file():
        raise DataNotFoundError(f"there is no partition {path}")


def import_parquet() -> Any:
    """pyarrow's reader and writer; an error that says what to install."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ParameterError("graphs in partitions need pyarrow: install discreet[cluster]") from error
    return pyarrow.parquet


def read_edges(
    folder: Path, block: StoredBlock, num_nodes: int, *, weighted: bool
) -> tuple[Array, Array, SingleArray | None]:
    """CSR rows (indptr, indices, weights) of the entries that reach the block's nodes; another file is refused.

    What is wrong is said without a node or a number: entries are private.
    """
    columns = ["source", "target", *(["weight"] if weighted else [])]
    source, target, *rest = (np.asarray(part) for part in read_columns(folder / block.edges_file, columns))
    wrong = GraphError(f"{folder / block.edges_file} does not hold the entries that its manifest states")
    if source.dtype.kind != "i" or target.dtype.kind != "i" or len(source) != block.entries:
        raise wrong
    if len(source):
        key_rises = (np.diff(target) > 0) | ((np.diff(target) == 0) & (np.diff(source) > 0))
        inside = block.first <= int(target[0]) and int(target[-1]) < block.rows.stop
        scales = all(w.dtype == np.float32 and bool(((w >= 0) & (w <= 1)).all()) for w in rest)
        known = int(source.min()) >= 0 and int(source.max()) < num_nodes
        if not (inside and scales and known and key_rises.all() and (source != target).all()):
            raise wrong
    counts = np.bincount(target - block.first, minlength=block.nodes)
    index = np.int32 if max(num_nodes, block.entries) < 2**31 - 1 else np.int64
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    return indptr, source.astype(index, copy=False), rest[0] if rest else None


def sum_block(
    folder: Path,
    block: StoredBlock,
    num_nodes: int,
    tables: Sequence[Array],
    *,
    hears: Array | None,
    weighted: bool,
) -> FloatArray:
    """``ops.sparse.sums_over_edges`` for the receivers of one block; ``hears`` is of these receivers.

    Guarantee: row v of the result is a function of v's edges, of the rows of their senders, and of the order in which
    edges are listed, bit for bit, whatever receivers are computed beside it: scipy adds entry × row in that order,
    beginning with zero, as ``ops.sparse`` does; with weights, see ``graph.edge_weights``.
    """
    indptr, indices, weights = read_edges(folder, block, num_nodes, weighted=weighted)
    values = np.ones(len(indices), dtype=np.float32) if weights is None else weights
    entries = sp.csr_array((values, indices, indptr), shape=(block.nodes, num_nodes))
    add = _sum_rows if weights is None else weighted_sums
    if hears is None:
        return add(entries, tables[0])
    found = np.zeros((block.nodes, tables[0].shape[1]))
    for number, table in enumerate(tables):
        receivers = np.flatnonzero(hears == number)
        found[receivers] = add(entries[receivers], table)
    return found


def _sum_rows(entries: sp.csr_array, table: Array) -> FloatArray:
    """``entries @ table`` in double precision. Only the rows that some receivers hear become doubles at a time: a
    table may be larger than a worker's memory.
    """
    if len(table) != entries.shape[1]:
        raise ValueError("a table has one row per node")
    found, rows = np.empty((entries.shape[0], table.shape[1])), np.asarray(table)  # take is slow on a mapped array
    ends = np.searchsorted(entries.indptr, np.arange(_AT_ONCE, entries.nnz, _AT_ONCE))
    for first, last in pairwise(np.unique([0, *ends, entries.shape[0]]).tolist()):
        some = slice(entries.indptr[first], entries.indptr[last])
        heard = np.take(rows, entries.indices[some], axis=0).astype(np.float64)  # four times as fast as rows[…]
        weights, starts = entries.data[some].astype(np.float64), entries.indptr[first : last + 1] - some.start
        part = sp.csr_array((weights, np.arange(len(heard)), starts), shape=(last - first, len(heard)))
        found[first:last] = part @ heard
    return found


# -------------------------------------------------------------------- the graph as methods see it


class EdgeBlocks(Protocol):
    """Whoever sums over edges that lie in blocks: this process, or workers."""

    def sums(self, tables: Sequence[Array], *, hears: Array | None, weighted: bool) -> FloatArray:
        """``ops.sparse.sums_over_edges`` for all nodes, with the weights of edges or without."""


@dataclass(frozen=True)
class BlocksOnDisk:
    """One block after the other, in this process: memory holds one block of edges at a time."""

    folder: Path
    manifest: Manifest

    def sums(self, tables: Sequence[Array], *, hears: Array | None, weighted: bool) -> FloatArray:
        """``ops.sparse.sums_over_edges`` for all nodes."""
        found = np.empty((self.manifest.num_nodes, tables[0].shape[1]))
        for block in self.manifest.blocks:
            heard = None if hears is None else hears[block.rows]
            found[block.rows] = sum_block(
                self.folder, block, self.manifest.num_nodes, tables, hears=heard, weighted=weighted
            )
        return found


@dataclass(frozen=True, eq=False, repr=False)
class GraphInBlocks(Graph):
    """A graph whose edges lie in partitions: they can be summed over (:meth:`edge_sums`), and nothing else.

    Guarantee: :meth:`edge_sums` gives the bits that it gives on the whole graph, whoever sums the blocks, in whatever
    order. Everything that would need an edge by itself is refused. ``indptr`` and ``indices`` are empty, and so is
    ``edge_weights`` where edges have weights.
    """

    in_blocks: ClassVar[bool] = True

    blocks: EdgeBlocks | None = None

    def edge_sums(self, *tables: Array, hears: Array | None = None) -> FloatArray:
        """Rows of a table added up over each node's senders."""
        assert self.blocks is not None
        return self.blocks.sums(tables, hears=hears, weighted=self.edge_weights is not None)

    @property
    def num_entries(self) -> int:
        """Not counted here."""
        self.check_in_memory()
        return 0

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """Not at hand."""
        self.check_in_memory()
        return super().adjacency

    def edges(self) -> tuple[IntArray, IntArray]:
        """Not at hand."""
        self.check_in_memory()
        return super().edges()

    @cached_property
    def weighted_adjacency(self) -> sp.csr_array:
        """Not at hand."""
        self.check_in_memory()
        return super().weighted_adjacency

    def with_edges(
        self, sources: npt.ArrayLike, targets: npt.ArrayLike, edge_weights: npt.ArrayLike | None = None
    ) -> Graph:
        """Not possible."""
        self.check_in_memory()
        return super().with_edges(sources, targets, edge_weights)

    def in_degree(self) -> IntArray:
        """Not at hand."""
        self.check_in_memory()
        return super().in_degree()

    def out_degree(self) -> IntArray:
        """Not at hand."""
        self.check_in_memory()
        return super().out_degree()

    def __repr__(self) -> str:
        """One line with what is public."""
        return f"GraphInBlocks({self.name!r}, {self.public})"


# -------------------------------------------------------------------- opening a folder


class PartitionedGraph:
    """A folder of partitions that was opened, and a scratch folder for features that are mapped from disk.

    Use it in a ``with`` block: the scratch folder goes at its end.
    """

    def __init__(self, folder: str | Path, *, check: bool = True, scratch: str | Path | None = None) -> None:
        """Read the manifest and, with ``check``, the digest of every file.

        ``scratch`` is a folder in which temporary files may be put; that of the partitions where none is given.
        """
        self.folder = expand_home(folder).absolute()
        self.manifest = Manifest.read(self.folder)
        self._scratch_in = self.folder if scratch is None else Path(scratch)
        self._scratch: Path | None = None
        if check:
            self._check_digests()

    def __enter__(self) -> PartitionedGraph:
        """Nothing is made before it is needed."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Remove the scratch folder."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    @property
    def scratch(self) -> Path:
        """A folder of this fit alone beside the partitions, where workers find it; ``discreet doctor`` finds one that a
        killed run left.
        """
        if self._scratch is None:
            self._scratch = self._scratch_in / temporary_name(Path("scratch"))
            self._scratch.mkdir(mode=0o700)
        return self._scratch

    def graph(self, blocks: EdgeBlocks | None = None) -> GraphInBlocks:
        """The graph with edges in blocks, summed over by ``blocks``; by this process where that is None.

        That an undirected graph holds both directions of every edge is checked here: bounds rest on it. Dense
        features are mapped from one file on disk, so that memory holds what is in use.
        """
        self._check_sizes()
        self._check_both_ways()
        on_disk = BlocksOnDisk(self.folder, self.manifest) if blocks is None else blocks
        return GraphInBlocks(**self._without_edges(), blocks=on_disk, **self._nodes(mapped=True))

    def _without_edges(self) -> dict[str, Any]:
        """The fields of edges where these are not in memory."""
        return {
            "indptr": np.broadcast_to(np.int64(0), (self.manifest.num_nodes + 1,)),
            "indices": np.empty(0, dtype=np.int64),
            "edge_weights": np.empty(0, dtype=np.float32) if self.manifest.weighted else None,
        }

    def outline(self, *, labels: bool) -> GraphInBlocks:
        """What a plan needs of the graph, from the manifest alone: it has no edge, and its features are zeros.

        With ``labels`` the labels and named splits are read too, else every node has the label 0.
        """
        known = self.manifest
        zeros = np.broadcast_to(np.float32(0), (known.num_nodes, known.num_features))
        features = sp.csr_array(zeros.shape, dtype=np.float32) if known.sparse else zeros
        return GraphInBlocks(
            **self._without_edges(),
            **self._facts(),
            features=features,
            labels=self._labels() if labels else np.broadcast_to(np.int64(0), (known.num_nodes,)),
            named_splits=self._named_splits() if labels else (),
        )

    def whole(self) -> Graph:
        """The graph with all of its edges in memory."""
        self._check_sizes()
        known = self.manifest
        read = [read_edges(self.folder, block, known.num_nodes, weighted=known.weighted) for block in known.blocks]
        counts = np.concatenate([np.diff(indptr).astype(np.int64) for indptr, _, _ in read])
        indptr = np.concatenate([[0], np.cumsum(counts)])
        indices = np.concatenate([part.astype(np.int64) for _, part, _ in read])
        weights = np.concatenate([part for _, _, part in read]) if known.weighted else None
        return Graph(indptr, indices, edge_weights=weights, **{**self._nodes(mapped=False), "_checked": False})

    # ---------------------------------------------------------------- nodes

    def _nodes(self, *, mapped: bool) -> dict[str, Any]:
        """The fields of a graph but its edges."""
        known, present = self.manifest, self._present()
        masks: dict[str, Any] = {}
        if "part" in present:
            part = self._whole_numbers("part", 0, len(MASKS))
            masks = {f"{name}_mask": part == place for place, name in enumerate(MASKS, start=1)}
        return {
            "features": self._sparse_features() if known.sparse else self._dense_features(mapped),
            "labels": self._labels(),
            "node_ids": self._column("id") if "id" in present else None,
            "named_splits": self._named_splits(),
            **self._facts(),
            **masks,
        }

    def _facts(self) -> dict[str, Any]:
        """The fields of a graph that are in the manifest."""
        known = self.manifest
        return {
            "num_classes": known.num_classes,
            "directed": known.directed,
            "class_names": known.class_names,
            "feature_names": known.feature_names,
            "name": known.name,
            "split_reads_labels": known.split_reads_labels,
            "schema": None if known.schema is None else Schema.from_json(known.schema),
            "inferred": frozenset(known.inferred),
            "_checked": True,
        }

    def _labels(self) -> IntArray:
        return self._whole_numbers("label", -1, self.manifest.num_classes - 1).astype(np.int64)

    def _named_splits(self) -> tuple[NamedSplit, ...]:
        names = self.manifest.splits
        columns = {name: self._whole_numbers(SPLIT + name, 0, len(MASKS)) for name in names}
        return tuple(NamedSplit(name, column.astype(np.int8)) for name, column in columns.items())

    def _present(self) -> set[str]:
        parquet = import_parquet()
        path = self.folder / self.manifest.blocks[0].nodes_file
        _check_plain(path)
        try:
            return set(parquet.read_schema(path).names)
        except _UNREADABLE:
            raise GraphError(f"{path} is not a partition of nodes") from None

    def _column(self, name: str) -> Array:
        parts = []
        for block in self.manifest.blocks:
            (column,) = read_columns(self.folder / block.nodes_file, [name])
            if len(column) != block.nodes or column.null_count:
                raise GraphError(f"{self.folder / block.nodes_file} does not hold the nodes that its manifest states")
            parts.append(column.to_numpy(zero_copy_only=False))
        found = np.concatenate(parts)
        if found.dtype != object:
            return found
        if not all(isinstance(value, str) for value in found):
            raise GraphError(f"{self.folder}: the column {name!r:.60} holds neither numbers nor words")
        return found.astype(str)

    def _whole_numbers(self, name: str, least: int, most: int) -> Array:
        """A column that holds whole numbers of this range; what is wrong is said without a node or a value."""
        found = self._column(name)
        if found.dtype.kind not in "iu" or (len(found) and not least <= int(found.min()) <= int(found.max()) <= most):
            raise GraphError(f"{self.folder}: the column {name!r:.60} does not hold what the manifest states")
        return found

    def _dense_features(self, mapped: bool) -> Features:
        shape = self.manifest.num_nodes, self.manifest.num_features
        if mapped:
            path = self.scratch / "features.npy"
            rows: Array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
        else:
            rows = np.empty(shape, dtype=np.float32)
        for block in self.manifest.blocks:
            path = self.folder / block.nodes_file
            (lists,) = read_columns(path, ["features"])
            with _features_of(path):
                values = np.asarray(lists.flatten(), dtype=np.float32)
                if len(lists) != block.nodes or values.size != block.nodes * shape[1] or not _within_range(values):
                    raise ValueError
            rows[block.rows] = values.reshape(block.nodes, shape[1])
        if not isinstance(rows, np.memmap):
            return rows
        rows.flush()
        return np.load(self.scratch / "features.npy", mmap_mode="r")

    def _sparse_features(self) -> Features:
        parts = []
        for block in self.manifest.blocks:
            path = self.folder / block.nodes_file
            columns, values = read_columns(path, ["columns", "values"])
            with _features_of(path):
                indptr = np.asarray(columns.offsets, dtype=np.int64)
                index, data = np.asarray(columns.flatten()), np.asarray(values.flatten(), dtype=np.float32)
                shape = block.nodes, self.manifest.num_features
                part = sp.csr_array((data, index, indptr - indptr[0]), shape=shape)
                part.check_format(full_check=True)
                if not _within_range(data):
                    raise ValueError
                parts.append(part)
        return sp.csr_array(sp.vstack(parts, format="csr"))

    # ---------------------------------------------------------------- checks

    def _check_both_ways(self) -> None:
        """Refuse an undirected graph in which an edge lacks its reverse, or has another weight there.

        Each entry adds a keyed hash of its edge, with a sign for its direction. The sum is zero if every edge stands
        both ways, and otherwise with probability about 2⁻⁶⁴.
        """
        known = self.manifest
        if known.directed:
            return
        key, total = np.frombuffer(secrets.token_bytes(8), dtype=np.uint64), 0
        for block in known.blocks:
            indptr, source, weights = read_edges(self.folder, block, known.num_nodes, weighted=known.weighted)
            target = np.repeat(np.arange(block.first, block.rows.stop), np.diff(indptr))
            ends = np.minimum(source, target).astype(np.uint64), np.maximum(source, target).astype(np.uint64)
            found = _mixed(_mixed(ends[0] + key) + ends[1])
            if weights is not None:
                found = _mixed(found + weights.view(np.uint32))
            forward = source < target
            total += int(found[forward].sum(dtype=np.uint64)) - int(found[~forward].sum(dtype=np.uint64))
        if total % 2**64:
            raise GraphError(f"{self.folder}: directed is false in the manifest, but an edge lacks its reverse")

    def _check_sizes(self) -> None:
        """Refuse files of other numbers of rows than the manifest states, before memory is taken for so many."""
        parquet = import_parquet()
        for block in self.manifest.blocks:
            sizes = (block.edges_file, block.entries, "entries"), (block.nodes_file, block.nodes, "nodes")
            for name, rows, what in sizes:
                _check_plain(self.folder / name)
                try:
                    found = parquet.read_metadata(self.folder / name).num_rows
                except _UNREADABLE:
                    raise GraphError(f"{self.folder / name} is not a partition with {what}") from None
                if found != rows:
                    raise GraphError(f"{self.folder / name} does not hold the {what} that its manifest states")

    def _check_digests(self) -> None:
        for block in self.manifest.blocks:
            for name in (block.edges_file, block.nodes_file):
                if file_digest(self.folder / name) != block.digests.get(name):
                    raise GraphError(f"{self.folder / name} is not the partition that the manifest states")


@contextmanager
def _features_of(path: Path) -> Iterator[None]:
    """Around reading features: whatever is wrong with them becomes one sentence."""
    try:
        yield
    except (AttributeError, *_UNREADABLE):
        raise GraphError(f"{path} does not hold the features that its manifest states") from None


def _within_range(values: Array) -> bool:
    """Whether features are numbers, none larger than those that are read from other files."""
    return bool((np.abs(values) <= LARGEST_FEATURE).all())


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Every word through the finaliser of splitmix64 (Steele, Lea and Flood 2014); products wrap around."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    _check_plain(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
