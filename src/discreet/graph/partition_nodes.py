"""Reading the nodes of a graph in partitions: labels, features, ids, masks and named splits (``graph.partitions``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet.arrays import Array, IntArray
from discreet.errors import GraphError
from discreet.graph.clean import LARGEST_FEATURE, Features
from discreet.graph.graph import MASKS, NamedSplit
from discreet.graph.partition_files import UNREADABLE, check_plain, import_parquet, read_columns
from discreet.graph.partition_manifest import Manifest

SPLIT = "split "
"""How the columns of named splits begin."""


class StoredNodes:
    """The files of nodes of a folder, block after block; what is not as the manifest states is refused."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Nothing is read yet."""
        self._folder, self._manifest = folder, manifest

    def fields(self, features_file: Path | None = None) -> dict[str, Any]:
        """The fields of a graph that have one value per node.

        Dense features are mapped from ``features_file``, which is written for it; where that is None they are in
        memory.
        """
        return {
            "features": self._sparse_features() if self._manifest.sparse else self._dense_features(features_file),
            "labels": self.labels(),
            "node_ids": self._column("id") if "id" in self._present() else None,
            "named_splits": self.named_splits(),
            **self.masks(),
        }

    def are_there(self) -> bool:
        """Whether the first file of nodes lies beside the manifest."""
        return (self._folder / self._manifest.blocks[0].nodes_file).exists()

    def masks(self) -> dict[str, Any]:
        """Training, validation and test nodes, as the fields of a graph; none where it has no split."""
        if "part" not in self._present():
            return {}
        part = self._whole_numbers("part", 0, len(MASKS))
        return {f"{name}_mask": part == place for place, name in enumerate(MASKS, start=1)}

    def labels(self) -> IntArray:
        """One class per node, -1 where it has none."""
        return self._whole_numbers("label", -1, self._manifest.num_classes - 1).astype(np.int64)

    def named_splits(self) -> tuple[NamedSplit, ...]:
        """The splits that have a name, in the order of the manifest."""
        names = self._manifest.splits
        columns = {name: self._whole_numbers(SPLIT + name, 0, len(MASKS)) for name in names}
        return tuple(NamedSplit(name, column.astype(np.int8)) for name, column in columns.items())

    def _present(self) -> set[str]:
        parquet = import_parquet()
        path = self._folder / self._manifest.blocks[0].nodes_file
        check_plain(path)
        try:
            return set(parquet.read_schema(path).names)
        except UNREADABLE:
            raise GraphError(f"{path} is not a partition of nodes") from None

    def _column(self, name: str) -> Array:
        parts = []
        for block in self._manifest.blocks:
            (column,) = read_columns(self._folder / block.nodes_file, [name])
            if len(column) != block.nodes or column.null_count:
                raise GraphError(f"{self._folder / block.nodes_file} does not hold the nodes that its manifest states")
            parts.append(column.to_numpy(zero_copy_only=False))
        found = np.concatenate(parts)
        if found.dtype != object:
            return found
        if not all(isinstance(value, str) for value in found):
            raise GraphError(f"{self._folder}: the column {name!r:.60} holds neither numbers nor words")
        return found.astype(str)

    def _whole_numbers(self, name: str, least: int, most: int) -> Array:
        """A column that holds whole numbers of this range; what is wrong is said without a node or a value."""
        found = self._column(name)
        if found.dtype.kind not in "iu" or (len(found) and not least <= int(found.min()) <= int(found.max()) <= most):
            raise GraphError(f"{self._folder}: the column {name!r:.60} does not hold what the manifest states")
        return found

    def _dense_features(self, file: Path | None) -> Features:
        shape = self._manifest.num_nodes, self._manifest.num_features
        rows: Array
        if file is None:
            rows = np.empty(shape, dtype=np.float32)
        else:
            rows = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape)
        for block in self._manifest.blocks:
            path = self._folder / block.nodes_file
            (lists,) = read_columns(path, ["features"])
            with _features_of(path):
                values = np.asarray(lists.flatten(), dtype=np.float32)
                if len(lists) != block.nodes or values.size != block.nodes * shape[1] or not _within_range(values):
                    raise ValueError
            rows[block.rows] = values.reshape(block.nodes, shape[1])
        if file is None or not isinstance(rows, np.memmap):
            return rows
        rows.flush()
        return np.load(file, mmap_mode="r")

    def _sparse_features(self) -> Features:
        parts = []
        for block in self._manifest.blocks:
            path = self._folder / block.nodes_file
            columns, values = read_columns(path, ["columns", "values"])
            with _features_of(path):
                indptr = np.asarray(columns.offsets, dtype=np.int64)
                index, data = np.asarray(columns.flatten()), np.asarray(values.flatten(), dtype=np.float32)
                shape = block.nodes, self._manifest.num_features
                part = sp.csr_array((data, index, indptr - indptr[0]), shape=shape)
                part.check_format(full_check=True)
                if not _within_range(data):
                    raise ValueError
                parts.append(part)
        return sp.csr_array(sp.vstack(parts, format="csr"))


@contextmanager
def _features_of(path: Path) -> Iterator[None]:
    """Around reading features: whatever is wrong with them becomes one sentence."""
    try:
        yield
    except (AttributeError, *UNREADABLE):
        raise GraphError(f"{path} does not hold the features that its manifest states") from None


def _within_range(values: Array) -> bool:
    """Whether features are numbers, none larger than those that are read from other files."""
    return bool((np.abs(values) <= LARGEST_FEATURE).all())
