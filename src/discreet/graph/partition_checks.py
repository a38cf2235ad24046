"""Whether the files of a graph in partitions hold what its manifest states, and edges both of their directions."""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import GraphError
from discreet.graph.partition_files import UNREADABLE, check_plain, file_digest, import_parquet, read_edges
from discreet.graph.partition_manifest import Manifest


def check_both_ways(folder: Path, known: Manifest) -> None:
    """Refuse an undirected graph in which an edge lacks its reverse, or has another weight there.

    Each entry adds a keyed hash of its edge, with a sign for its direction. The sum is zero if every edge stands
    both ways, and otherwise with probability about 2⁻⁶⁴.
    """
    if known.directed:
        return
    key, total = np.frombuffer(secrets.token_bytes(8), dtype=np.uint64), 0
    for block in known.blocks:
        indptr, source, weights = read_edges(folder, block, known.num_nodes, weighted=known.weighted)
        target = np.repeat(np.arange(block.first, block.rows.stop), np.diff(indptr))
        ends = np.minimum(source, target).astype(np.uint64), np.maximum(source, target).astype(np.uint64)
        found = _mixed(_mixed(ends[0] + key) + ends[1])
        if weights is not None:
            found = _mixed(found + weights.view(np.uint32))
        forward = source < target
        total += int(found[forward].sum(dtype=np.uint64)) - int(found[~forward].sum(dtype=np.uint64))
    if total % 2**64:
        raise GraphError(f"{folder}: directed is false in the manifest, but an edge lacks its reverse")


def check_row_counts(folder: Path, known: Manifest) -> None:
    """Refuse files of other numbers of rows than the manifest states, before memory is taken for so many."""
    parquet = import_parquet()
    for block in known.blocks:
        sizes = (block.edges_file, block.entries, "entries"), (block.nodes_file, block.nodes, "nodes")
        for name, rows, what in sizes:
            check_plain(folder / name)
            try:
                found = parquet.read_metadata(folder / name).num_rows
            except UNREADABLE:
                raise GraphError(f"{folder / name} is not a partition with {what}") from None
            if found != rows:
                raise GraphError(f"{folder / name} does not hold the {what} that its manifest states")


def check_digests(folder: Path, known: Manifest) -> None:
    """Refuse files that are not, bit for bit, those that the manifest states."""
    for block in known.blocks:
        for name in (block.edges_file, block.nodes_file):
            if file_digest(folder / name) != block.digests.get(name):
                raise GraphError(f"{folder / name} is not the partition that the manifest states")


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Every word through the finaliser of splitmix64 (Steele, Lea and Flood 2014); products wrap around."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
