"""Writing a graph in partitions (see ``graph.partitions``): block by block, whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet.arrays import Array, IntArray, SingleArray
from discreet.errors import GraphError
from discreet.files import check_free, whole
from discreet.graph.clean import Features
from discreet.graph.graph import MASKS, Graph
from discreet.graph.partition_files import file_digest, import_parquet
from discreet.graph.partition_manifest import MANIFEST, Manifest, StoredBlock
from discreet.graph.partition_nodes import SPLIT
from discreet.limits import PARTITIONS


@dataclass(frozen=True)
class NewBlock:
    """The next nodes of a graph: the entries that reach them as CSR rows of senders, features, labels, other columns.

    ``columns`` are further columns of the nodes file by name: ``id``, ``part``, and those of named splits.
    ``edge_weights`` has one number in [0, 1] for each of ``indices``, where the graph's edges have weights.
    """

    indptr: IntArray
    indices: IntArray
    features: Features
    labels: IntArray
    columns: dict[str, Array] = field(default_factory=dict)
    edge_weights: SingleArray | None = None


def write_partitions(folder: Path, facts: Manifest, blocks: Iterable[NewBlock]) -> Manifest:
    """Write blocks to a new folder as they come; ``facts`` is the manifest without its blocks.

    Guarantee: the folder appears with all of its files, and an error or an interrupt leaves nothing behind. Memory
    holds one block. An undirected graph must come with both entries of every edge.
    """
    check_free(folder)
    with whole(folder) as temporary:
        temporary.mkdir(mode=0o700)
        stored: list[StoredBlock] = []
        first = 0
        for number, block in enumerate(blocks):
            PARTITIONS.check("the number of partitions", number + 1)
            if (block.edge_weights is not None) != facts.weighted:
                raise GraphError("either every block has weights of edges, or none has")
            made = StoredBlock(number, first, len(block.labels), len(block.indices), {})
            _write_edges(temporary / made.edges_file, block, first, facts.num_nodes)
            _write_nodes(temporary / made.nodes_file, block, facts)
            names = made.edges_file, made.nodes_file
            stored.append(replace(made, digests={name: file_digest(temporary / name) for name in names}))
            first += made.nodes
        if first != facts.num_nodes:
            raise GraphError(f"the blocks hold {first} nodes, and the graph has {facts.num_nodes}")
        manifest = replace(facts, blocks=tuple(stored))
        (temporary / MANIFEST).write_text(json.dumps(manifest.to_json(), indent=1), encoding="utf-8")
    return manifest


def write_graph(graph: Graph, folder: Path, partitions: int) -> Manifest:
    """Write a graph in so many partitions, of about as many nodes each, to a new folder."""
    graph.check_in_memory()
    PARTITIONS.check("the number of partitions", partitions)
    if partitions > graph.num_nodes:
        raise GraphError(f"a graph of {graph.num_nodes} nodes has no {partitions} partitions: take fewer")
    facts = Manifest(
        graph.name,
        graph.num_nodes,
        graph.num_features,
        graph.num_classes,
        graph.directed,
        sparse=sp.issparse(graph.features),
        blocks=(),
        class_names=graph.class_names,
        feature_names=graph.feature_names,
        splits=tuple(split.name for split in graph.named_splits),
        inferred=tuple(sorted(graph.inferred)),
        split_reads_labels=graph.split_reads_labels,
        weighted=graph.edge_weights is not None,
        schema=None if graph.schema is None else graph.schema.to_json(),
    )
    bounds = block_bounds(graph.num_nodes, partitions)
    columns = _node_columns(graph)
    blocks = (_cut(graph, columns, slice(*bounds[at : at + 2])) for at in range(partitions))
    return write_partitions(folder, facts, blocks)


def block_bounds(num_nodes: int, partitions: int) -> list[int]:
    """Where blocks of about as many nodes each begin and end."""
    return [num_nodes * at // partitions for at in range(partitions + 1)]


def _cut(graph: Graph, columns: dict[str, Array], rows: slice) -> NewBlock:
    indptr = graph.indptr[rows.start : rows.stop + 1]
    entries = slice(indptr[0], indptr[-1])
    weights = None if graph.edge_weights is None else graph.edge_weights[entries]
    part = {name: column[rows] for name, column in columns.items()}
    indices, features, labels = graph.indices[entries], graph.features[rows], graph.labels[rows]
    return NewBlock(indptr - indptr[0], indices, features, labels, part, weights)


def _node_columns(graph: Graph) -> dict[str, Array]:
    columns: dict[str, Array] = {SPLIT + name: part for name, part in graph.named_splits}
    if graph.node_ids is not None:
        columns["id"] = graph.node_ids
    masks = [getattr(graph, f"{name}_mask") for name in MASKS]
    if any(mask is not None for mask in masks):
        part = np.zeros(graph.num_nodes, dtype=np.int8)
        for place, mask in enumerate(masks, start=1):
            if mask is not None:
                part[mask] = place
        columns["part"] = part
    return columns


# -------------------------------------------------------------------- files


def _write_edges(path: Path, block: NewBlock, first: int, num_nodes: int) -> None:
    import pyarrow as pa

    index = np.int32 if num_nodes < 2**31 else np.int64
    receivers = np.arange(first, first + len(block.labels), dtype=index)
    columns = {
        "source": pa.array(np.asarray(block.indices).astype(index, copy=False)),
        "target": pa.array(np.repeat(receivers, np.diff(block.indptr))),
    }
    # Targets rise, so differences take next to nothing; senders hardly compress.
    encodings = {"source": "PLAIN", "target": "DELTA_BINARY_PACKED"}
    if block.edge_weights is not None:
        columns["weight"], encodings["weight"] = pa.array(block.edge_weights), "PLAIN"
    import_parquet().write_table(
        pa.table(columns), path, compression="NONE", use_dictionary=False, column_encoding=encodings
    )


def _write_nodes(path: Path, block: NewBlock, facts: Manifest) -> None:
    import pyarrow as pa

    rows = len(block.labels)
    if block.features.shape != (rows, facts.num_features) or len(block.indptr) != rows + 1:
        raise GraphError(f"a block of {rows} nodes has features of shape {block.features.shape}")
    columns: dict[str, Any] = {"label": pa.array(block.labels)}
    columns |= {name: pa.array(column) for name, column in block.columns.items()}
    if facts.sparse:
        matrix = sp.csr_array(block.features)
        offsets = pa.array(matrix.indptr.astype(np.int64))
        columns["columns"] = pa.LargeListArray.from_arrays(offsets, pa.array(matrix.indices))
        columns["values"] = pa.LargeListArray.from_arrays(offsets, pa.array(matrix.data.astype(np.float32)))
    else:
        values = np.ascontiguousarray(block.features, dtype=np.float32).reshape(-1)
        columns["features"] = pa.FixedSizeListArray.from_arrays(pa.array(values), facts.num_features)
    import_parquet().write_table(pa.table(columns), path, compression="NONE", use_dictionary=False)


# -------------------------------------------------------------------- edges in no order, more than memory holds


class EdgeBuckets:
    """Entries that come in any order, kept on disk by the block of their receiver until each block is read.

    Memory holds what is added at once, and one block when it is read. ``scratch`` is a new folder; :meth:`close`
    removes it.
    """

    def __init__(self, scratch: Path, num_nodes: int, partitions: int) -> None:
        """Nothing is kept yet."""
        PARTITIONS.check("the number of partitions", partitions)
        scratch.mkdir(mode=0o700)
        self._scratch, self.num_nodes = scratch, num_nodes
        self._bounds = np.asarray(block_bounds(num_nodes, partitions))
        self._type = np.dtype(np.int32 if num_nodes < 2**31 else np.int64)

    def add(self, sources: IntArray, targets: IntArray) -> None:
        """Keep the entries source → target; those that are no edge between two nodes are refused."""
        ends = np.concatenate([sources, targets])
        if len(ends) and (ends.min() < 0 or ends.max() >= self.num_nodes):
            raise GraphError(f"an edge has an end outside the {self.num_nodes} nodes")
        place = np.searchsorted(self._bounds, targets, side="right") - 1
        place = place.astype(np.min_scalar_type(len(self._bounds)))  # numbers of two bytes are sorted by counting
        order = np.argsort(place, kind="stable")
        pairs = np.stack([sources, targets], axis=1)[order].astype(self._type)
        starts = np.searchsorted(place[order], np.arange(len(self._bounds)))
        for number in np.unique(place):
            with self._file(int(number)).open("ab") as file:
                pairs[starts[number] : starts[number + 1]].tofile(file)

    def blocks(self) -> Iterator[tuple[slice, IntArray, IntArray]]:
        """For every block its nodes, and the CSR rows (indptr, indices) of the entries that reach them.

        Senders rise in every row; self-loops and duplicates are gone.
        """
        return (self.block(number) for number in range(len(self._bounds) - 1))

    def block(self, number: int) -> tuple[slice, IntArray, IntArray]:
        """One of :meth:`blocks`."""
        first, last = self._bounds[number : number + 2].tolist()
        path = self._file(number)
        pairs = np.fromfile(path, dtype=self._type) if path.exists() else np.empty(0, dtype=self._type)
        source, target = pairs.reshape(-1, 2).T.astype(np.int64)
        apart = source != target
        keys = np.unique((target[apart] - first) * self.num_nodes + source[apart])
        counts = np.bincount(keys // self.num_nodes, minlength=last - first)
        return slice(first, last), np.concatenate([[0], np.cumsum(counts)]), keys % self.num_nodes

    def hand_over(self, number: int, to: EdgeBuckets) -> None:
        """Give the entries of one block to other buckets of the same graph, so that several processes can fill some."""
        path = self._file(number)
        if path.exists():
            with path.open("rb") as given, to._file(number).open("ab") as taken:
                shutil.copyfileobj(given, taken)
            path.unlink()

    def close(self) -> None:
        """Remove what was kept."""
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _file(self, number: int) -> Path:
        return self._scratch / f"bucket-{number:05d}"
