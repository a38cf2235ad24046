"""Readers of the raw files in which public graphs are handed around, one function a format.

Readers only read: nothing is written beside the files, features stay sparse where they are, and
third-party pickles go through an unpickler that knows six harmless names and no other.
"""

from __future__ import annotations

import io
import json
import pickle
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet.arrays import Array, IntArray, SingleArray
from discreet.errors import GraphError
from discreet.graph.clean import UNLABELLED
from discreet.graph.graph import MASKS, NamedSplit
from discreet.graph.npz import PlainArrays

NUM_GEOM_GCN_SPLITS = 10
"""As that paper published them."""


@dataclass(frozen=True)
class Raw:
    """What a file holds, as stored: directions, self-loops and duplicates are not settled yet."""

    sources: Array
    targets: Array
    features: Any
    labels: IntArray
    splits: tuple[NamedSplit, ...] = ()
    node_ids: Array | None = None
    class_names: tuple[str, ...] | None = None
    inferred: bool = False
    """Whether classes and columns were read off the data, as no definition of the dataset lists them."""


# -------------------------------------------------------------------- npz files


def read_benchmark_npz(folder: Path, file: str) -> Raw:
    """CSR adjacency and attributes under ``adj_*`` and ``attr_*``; features become binary, as in PyG."""
    arrays = PlainArrays(folder / file)
    adjacency = _stored_csr(arrays, "adj").tocoo()
    features = _stored_csr(arrays, "attr").astype(np.float32)
    features.data[features.data > 0] = 1
    source, target = adjacency.coords
    return Raw(source, target, features, arrays["labels"].astype(np.int64))


def read_edges_npz(folder: Path, file: str) -> Raw:
    """Arrays ``features``, ``edges`` (one row per edge) and ``target``: the Twitch graphs."""
    arrays = PlainArrays(folder / file)
    edges = arrays["edges"]
    return Raw(edges[:, 0], edges[:, 1], sp.csr_array(arrays["features"]), arrays["target"].astype(np.int64))


def read_heterophilous_npz(folder: Path, file: str) -> Raw:
    """Arrays ``node_features``, ``node_labels``, ``edges`` and ten splits, ``heterophilous:0`` to ``:9``."""
    arrays = PlainArrays(folder / file)
    edges = arrays["edges"]
    masks = zip(*(arrays[f"{name}_masks"] for name in MASKS), strict=True)
    splits = tuple(_named_split(f"heterophilous:{place}", held) for place, held in enumerate(masks))
    labels = arrays["node_labels"].astype(np.int64)
    return Raw(edges[:, 0], edges[:, 1], arrays["node_features"], labels, splits)


def read_reddit(folder: Path) -> Raw:
    """``reddit_data.npz`` (``feature``, ``label``, ``node_types``) and ``reddit_graph.npz`` (a SciPy COO matrix)."""
    arrays, graph = PlainArrays(folder / "reddit_data.npz"), PlainArrays(folder / "reddit_graph.npz")
    kinds = arrays["node_types"].astype(np.int8)  # 1, 2 and 3 stand for train, val and test
    if not np.isin(kinds, (1, 2, 3)).all():
        raise GraphError(f"{folder / 'reddit_data.npz'}: node_types must be 1, 2 or 3")
    features, labels = arrays["feature"].astype(np.float32), arrays["label"].astype(np.int64)
    return Raw(graph["row"], graph["col"], features, labels, (NamedSplit("public", kinds),))


def _stored_csr(arrays: Mapping[str, np.ndarray], prefix: str) -> sp.csr_array:
    parts = tuple(arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    return sp.csr_array(parts, shape=tuple(arrays[f"{prefix}_shape"].tolist()))


def _named_split(name: str, masks: Iterable[np.ndarray]) -> NamedSplit:
    held = [np.asarray(mask).astype(bool) for mask in masks]
    part = np.zeros(held[0].shape[0], dtype=np.int8)
    for place, mask in enumerate(held, start=1):
        part[mask] = place
    return NamedSplit(name, part)


# -------------------------------------------------------------------- Planetoid


def read_planetoid(folder: Path, name: str) -> Raw:
    """The ``ind.*`` files of Planetoid, with its public split and, where present, geom-gcn's ten.

    CiteSeer has test ids without a row in the files: these nodes get no features and no label.
    """
    tx, allx, y, ty, ally, graph = (
        _unpickle(folder / f"ind.{name}.{part}") for part in ("tx", "allx", "y", "ty", "ally", "graph")
    )
    test = np.loadtxt(folder / f"ind.{name}.test.index", dtype=np.int64)
    num_nodes = max(int(test.max()) + 1, allx.shape[0])
    features = _place_rows(sp.csr_array(allx), sp.csr_array(tx), test, num_nodes)
    one_hot = _place_rows(sp.csr_array(ally), sp.csr_array(ty), test, num_nodes).toarray()
    labels = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNLABELLED)
    degrees = [len(neighbours) for neighbours in graph.values()]
    sources = np.repeat(np.fromiter(graph.keys(), dtype=np.int64), degrees)
    targets = np.fromiter(chain.from_iterable(graph.values()), dtype=np.int64, count=sum(degrees))
    public = np.zeros(num_nodes, dtype=np.int8)
    public[: y.shape[0]] = 1
    public[y.shape[0] : y.shape[0] + 500] = 2
    public[test] = 3
    splits = (NamedSplit("public", public), *_geom_gcn_splits(folder.parent / "geom-gcn" / "raw", name))
    return Raw(sources, targets, features, labels.astype(np.int64), splits)


def _place_rows(known: sp.csr_array, tested: sp.csr_array, test: IntArray, num_nodes: int) -> sp.csr_array:
    """Rows of ``known`` first; row i of ``tested`` goes to node ``test[i]``; other rows are empty."""
    places = np.concatenate([np.arange(known.shape[0]), test])
    stacked = sp.vstack([known, tested]).tocoo()
    row, column = stacked.coords
    return sp.csr_array((stacked.data, (places[row], column)), shape=(num_nodes, known.shape[1]))


_HARMLESS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("scipy.sparse.csr", "csr_matrix"): sp.csr_matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _HarmlessUnpickler(pickle.Unpickler):
    """Builds arrays, CSR matrices and dictionaries of lists; any other name in the file is refused."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _HARMLESS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed") from None


def _unpickle(path: Path) -> Any:
    try:
        return _HarmlessUnpickler(io.BytesIO(path.read_bytes()), encoding="latin1").load()
    except FileNotFoundError:
        raise GraphError(f"the dataset lacks the file {path}") from None
    except Exception as error:  # a damaged pickle may raise nearly anything
        raise GraphError(f"{path} is not a Planetoid file: {error}") from error


# -------------------------------------------------------------------- geom-gcn


def read_geom_gcn(folder: Path, name: str) -> Raw:
    """Tab-separated node and edge files; features are written out in full (Chameleon, Squirrel)."""
    ids, written, labels = _geom_gcn_nodes(folder)
    features = sp.csr_array(np.stack([_number_row(text) for text in written]))
    return _geom_gcn_raw(folder, name, ids, features, labels)


def read_actor(folder: Path, name: str) -> Raw:
    """The same files with features given as lists of the columns that hold a 1."""
    ids, written, labels = _geom_gcn_nodes(folder)
    columns = [np.array(text.split(b","), dtype=np.int64) for text in written]
    rows = np.repeat(np.arange(len(columns)), [len(row) for row in columns])
    column = np.concatenate(columns)
    features = sp.csr_array((np.ones(len(column), dtype=np.float32), (rows, column)))
    features.data[:] = 1  # a column listed twice is still one
    return _geom_gcn_raw(folder, name, ids, features, labels)


def _geom_gcn_raw(folder: Path, name: str, ids: IntArray, features: sp.csr_array, labels: IntArray) -> Raw:
    order = np.argsort(ids)
    if not np.array_equal(ids[order], np.arange(len(ids))):
        raise GraphError(f"the node ids in {folder} do not run from 0 to {len(ids) - 1}")
    edges = np.loadtxt(folder / "out1_graph_edges.txt", dtype=np.int64, delimiter="\t", skiprows=1)
    splits = _geom_gcn_splits(folder, name)
    return Raw(edges[:, 0], edges[:, 1], features[order], labels[order], splits)


def _geom_gcn_nodes(folder: Path) -> tuple[IntArray, list[bytes], IntArray]:
    path = folder / "out1_node_feature_label.txt"
    lines = [line.split(b"\t") for line in path.read_bytes().splitlines()[1:] if line]
    if any(len(line) != 3 for line in lines):
        raise GraphError(f"{path} must hold three columns: node id, features, label")
    ids = np.array([int(line[0]) for line in lines], dtype=np.int64)
    labels = np.array([int(line[2]) for line in lines], dtype=np.int64)
    return ids, [line[1] for line in lines], labels


def _number_row(text: bytes) -> SingleArray:
    """Comma-separated numbers; a row of single digits is read straight from its bytes, far faster."""
    raw = np.frombuffer(text, dtype=np.uint8)
    digits = raw[::2] - ord("0")
    if len(raw) % 2 and (raw[1::2] == ord(",")).all() and (digits <= 9).all():
        return digits.astype(np.float32)
    return np.array(text.split(b","), dtype=np.float32)


def _geom_gcn_splits(folder: Path, name: str) -> tuple[NamedSplit, ...]:
    splits = []
    for place in range(NUM_GEOM_GCN_SPLITS):
        path = folder / f"{name}_split_0.6_0.2_{place}.npz"
        if path.exists():
            arrays = PlainArrays(path)
            splits.append(_named_split(f"geom-gcn:{place}", (arrays[f"{mask}_mask"] for mask in MASKS)))
    return tuple(splits)


# -------------------------------------------------------------------- MUSAE


def read_musae(folder: Path, name: str, width: int) -> Raw:
    """``*_edges.csv``, ``*_target.csv`` and ``*_features.json``, which lists the columns that hold a 1, node by node.

    ``width`` is the number of columns that the dataset's definition has.
    """
    edges = np.loadtxt(folder / f"{name}_edges.csv", dtype=np.int64, delimiter=",", skiprows=1, ndmin=2)
    target = np.loadtxt(folder / f"{name}_target.csv", dtype=np.int64, delimiter=",", skiprows=1, ndmin=2)
    listed = json.loads((folder / f"{name}_features.json").read_text())
    nodes = len(target)
    if not np.array_equal(np.sort(target[:, 0]), np.arange(nodes)):
        raise GraphError(f"the node ids in {folder} do not run from 0 to {nodes - 1}")
    rows = np.repeat(np.fromiter(map(int, listed), dtype=np.int64), [len(columns) for columns in listed.values()])
    columns = np.fromiter(chain.from_iterable(listed.values()), dtype=np.int64)
    if len(columns) and not (columns.min() >= 0 and columns.max() < width):
        raise GraphError(f"{folder / name}_features.json has a column beyond the {width} of its definition")
    features = sp.csr_array((np.ones(len(columns), dtype=np.float32), (rows, columns)), shape=(nodes, width))
    features.sum_duplicates()
    features.data[:] = 1  # a column listed twice is still one
    labels = np.empty(nodes, dtype=np.int64)
    labels[target[:, 0]] = target[:, -1]
    return Raw(edges[:, 0], edges[:, 1], features, labels)


# -------------------------------------------------------------------- attributed graphs


def read_attributed(folder: Path, name: str) -> Raw:
    """``attrs.npz`` (a SciPy matrix), ``edgelist.txt`` and ``labels.txt``: BlogCatalog and Flickr."""
    features = sp.csr_array(sp.load_npz(folder / "attrs.npz"))
    edges = np.loadtxt(folder / "edgelist.txt", dtype=np.int64, usecols=(0, 1))
    rows = [line.split() for line in (folder / "labels.txt").read_text().splitlines() if line.strip()]
    if any(len(row) != 2 for row in rows):
        raise GraphError(f"{name} has several labels per node, and one is supported")
    return Raw(edges[:, 0], edges[:, 1], features, np.array([int(row[1]) - 1 for row in rows], dtype=np.int64))


# -------------------------------------------------------------------- Facebook100

_YEAR, _NUM_FEATURE_COLUMNS = 5, 5  # status, gender, major, minor, dorm, year, high school


@dataclass(frozen=True)
class School:
    """The public definition of one school's task: the years to tell apart, and the codes of each feature column.

    Codes are written as ranges. A code that is not listed gives no column, as a missing value (0) does.
    """

    years: tuple[int, ...]
    codes: tuple[str, ...]

    def columns(self) -> list[IntArray]:
        """The codes of each column, in rising order."""
        return [np.concatenate([_code_range(part) for part in text.split(",")]) for text in self.codes]


SCHOOLS = {
    ("UCLA26", 1000): School(
        (2005, 2006, 2007, 2008, 2009),
        (
            "1-6",
            "1-2",
            "140-149,151-166,168,170-171,173-176,178-182,184-186,188-190,193-198,200-201,203-229,231-236,238-239,"
            "242-247,249-250,252-254,256,258-259,263-265,267-279,281-283,285-290,292-310,312-320,323-325,329-330,"
            "332-333,335,337-343,347-365,367-373,375-376",
            "140-149,151-159,161-166,168-171,173-176,178-185,188-189,193-229,231-236,238-239,242-243,245-247,249-250,"
            "252-254,256-259,263-265,267-279,282-283,286-308,310,312-314,316-320,323-325,327,329-330,332-333,335-343,"
            "347-365,367-376",
            "145,189-253",
        ),
    )
}
"""Schools whose years and codes are part of the dataset's definition, by name and smallest class."""


def read_facebook100(folder: Path, school: str, min_class_size: int) -> Raw:
    """One school: predict the year among years of at least ``min_class_size`` people.

    The graph is of the people of these years, with or without friends; ``node_ids`` are rows of the file. The first
    five columns are one-hot (0, a missing value, gives no column). Years and codes come from the school's definition
    in :data:`SCHOOLS`; for any other school they are read off its people, which levels that protect them refuse.
    """
    from scipy.io import loadmat

    stored = loadmat(folder / f"{school}.mat")
    adjacency, info = sp.csr_array(stored["A"]), stored["local_info"].astype(np.int64)
    defined = SCHOOLS.get((school, min_class_size))
    if defined is None:
        years = _large_years(info[:, _YEAR], school, min_class_size)
        codes = [np.unique(column[column > 0]) for column in info[:, :_NUM_FEATURE_COLUMNS].T]
    else:
        years, codes = np.array(defined.years), defined.columns()
    kept = np.flatnonzero(np.isin(info[:, _YEAR], years))
    features = sp.hstack([_one_hot(info[kept, place], known) for place, known in enumerate(codes)]).tocsr()
    source, target = adjacency[kept][:, kept].tocoo().coords
    labels = np.searchsorted(years, info[kept, _YEAR])
    return Raw(source, target, features, labels, (), kept, tuple(str(year) for year in years), defined is None)


def _large_years(year: IntArray, school: str, min_class_size: int) -> IntArray:
    values, counts = np.unique(year[year > 0], return_counts=True)
    large = values[counts >= min_class_size]
    if len(large) < 2:
        top = ", ".join(f"{values[at]}: {counts[at]}" for at in np.argsort(-counts)[:4])
        raise GraphError(
            f"{school} has {len(large)} years of at least {min_class_size} people (largest: {top}); "
            f"ask for smaller classes, as in fb100:{school}:{max(2, int(np.sort(counts)[-2]) // 2)}"
        )
    return large


def _one_hot(column: IntArray, codes: IntArray) -> sp.csr_array:
    place = np.minimum(np.searchsorted(codes, column), len(codes) - 1)
    known = np.flatnonzero(codes[place] == column)
    ones = np.ones(len(known), dtype=np.float32)
    return sp.csr_array((ones, (known, place[known])), shape=(len(column), len(codes)))


def _code_range(text: str) -> IntArray:
    low, _, high = text.partition("-")
    return np.arange(int(low), int(high or low) + 1)
