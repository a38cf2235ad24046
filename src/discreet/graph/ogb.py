"""Graphs in the folder layout of the Open Graph Benchmark: gzipped tables without heads, as its archives unpack."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.arrays import Array
from discreet.errors import GraphError
from discreet.graph.graph import NamedSplit
from discreet.graph.readers import Raw
from discreet.graph.splits import OGB

_PARTS = ("train", "valid", "test")


def read_ogb(folder: Path, split: str, kind: str = "", relation: str = "") -> Raw:
    """``raw/edge.csv.gz``, ``raw/node-feat.csv.gz`` and ``raw/node-label.csv.gz``, with the split ``split/<split>``.

    Of a graph with several kinds of nodes (ogbn-mag), ``kind`` and ``relation`` say which nodes and which edges are
    read; all others are left out.
    """
    raw = folder / "raw"
    if kind:
        edges = _table(raw / "relations" / relation / "edge.csv.gz", np.int64)
        features = _table(raw / "node-feat" / kind / "node-feat.csv.gz", np.float32)
        labels = _table(raw / "node-label" / kind / "node-label.csv.gz", np.int64)
    else:
        edges, features, labels = (
            _table(raw / f"{name}.csv.gz", dtype)
            for name, dtype in (("edge", np.int64), ("node-feat", np.float32), ("node-label", np.int64))
        )
    if edges.shape[1] != 2 or labels.shape != (len(features), 1):
        raise GraphError(f"{raw} must hold two columns of edges, and a label for each of {len(features)} nodes")
    held = _split(folder / "split" / split / kind, len(features))
    return Raw(edges[:, 0], edges[:, 1], features, labels[:, 0], (NamedSplit(OGB, held),))


def _split(folder: Path, nodes: int) -> Array:
    part = np.zeros(nodes, dtype=np.int8)
    for place, name in enumerate(_PARTS, start=1):
        ids = _table(folder / f"{name}.csv.gz", np.int64)[:, 0]
        if len(ids) and not (ids.min() >= 0 and ids.max() < nodes):
            raise GraphError(f"{folder / name}.csv.gz names a node that is not among the {nodes}")
        part[ids] = place
    return part


def _table(path: Path, dtype: type) -> Array:
    if not path.is_file():
        raise GraphError(f"the dataset lacks the file {path}")
    import pandas as pd

    found: Array = pd.read_csv(path, header=None, dtype=dtype).to_numpy()
    return found
