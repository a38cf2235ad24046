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

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet.files import expand_home, temporary_name
from discreet.graph.graph import Graph
from discreet.graph.graph_in_blocks import BlocksOnDisk, EdgeBlocks, GraphInBlocks
from discreet.graph.partition_checks import check_both_ways, check_digests, check_row_counts
from discreet.graph.partition_files import read_edges
from discreet.graph.partition_manifest import MANIFEST, Manifest
from discreet.graph.partition_nodes import StoredNodes
from discreet.graph.schema import Schema


def has_partitions(folder: Path) -> bool:
    """Whether a folder holds a graph in partitions."""
    return (folder / MANIFEST).is_file()


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
        self._nodes = StoredNodes(self.folder, self.manifest)
        self._scratch_in = self.folder if scratch is None else Path(scratch)
        self._scratch: Path | None = None
        if check:
            check_digests(self.folder, self.manifest)

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
        check_row_counts(self.folder, self.manifest)
        check_both_ways(self.folder, self.manifest)
        nodes = self._nodes.fields(None if self.manifest.sparse else self.scratch / "features.npy")
        on_disk = BlocksOnDisk(self.folder, self.manifest) if blocks is None else blocks
        return GraphInBlocks(**self._without_edges(), blocks=on_disk, **self._facts(), **nodes)

    def _without_edges(self) -> dict[str, Any]:
        """The fields of edges where these are not in memory."""
        return {
            "indptr": np.broadcast_to(np.int64(0), (self.manifest.num_nodes + 1,)),
            "indices": np.empty(0, dtype=np.int64),
            "edge_weights": np.empty(0, dtype=np.float32) if self.manifest.weighted else None,
        }

    def outline(self, *, labels: bool, masks: bool = False) -> GraphInBlocks:
        """What a plan needs of the graph, from the manifest alone: it has no edge, and its features are zeros.

        With ``masks`` its own masks and named splits are read too, where they are there. With ``labels`` the labels and
        named splits are read too, else nodes have the classes in turn: every class occurs, as it does where class
        numbers were read off labels.
        """
        known = self.manifest
        zeros = np.broadcast_to(np.float32(0), (known.num_nodes, known.num_features))
        features = sp.csr_array(zeros.shape, dtype=np.float32) if known.sparse else zeros
        masked = masks and self._nodes.are_there()
        return GraphInBlocks(
            **self._without_edges(),
            **self._facts(),
            features=features,
            labels=self._nodes.labels() if labels else np.arange(known.num_nodes) % max(known.num_classes, 1),
            named_splits=self._nodes.named_splits() if labels or masked else (),
            **(self._nodes.masks() if masked else {}),
        )

    def whole(self) -> Graph:
        """The graph with all of its edges in memory."""
        check_row_counts(self.folder, self.manifest)
        known = self.manifest
        read = [read_edges(self.folder, block, known.num_nodes, weighted=known.weighted) for block in known.blocks]
        counts = np.concatenate([np.diff(indptr).astype(np.int64) for indptr, _, _ in read])
        indptr = np.concatenate([[0], np.cumsum(counts)])
        indices = np.concatenate([part.astype(np.int64) for _, part, _ in read])
        weights = np.concatenate([part for _, _, part in read]) if known.weighted else None
        return Graph(indptr, indices, edge_weights=weights, **self._nodes.fields(), **self._facts(checked=False))

    def _facts(self, *, checked: bool = True) -> dict[str, Any]:
        """The fields of a graph that are in the manifest; edges that are in memory were not checked."""
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
            "_checked": checked,
        }
