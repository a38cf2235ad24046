"""Graphs from and to files: an edge list with a node table, and one ``.npz`` file.

The ``.npz`` layout (version 1, or 2 where edges have weights), all plain arrays, never pickled objects:

========================  =====================================================================
``format``, ``version``   the text ``discreet-graph`` and the number 1 or 2
``indptr``, ``indices``   CSR rows of senders, by receiver (int64)
``edge_weights``          optional, in version 2: one number in [0, 1] for each of ``indices`` (float32)
``features``              dense float32; or ``features_data``, ``features_indices``,
                          ``features_indptr`` and ``features_shape`` for CSR features
``labels``                class ids, -1 for none (int64), with ``num_classes``
``directed``, ``name``    a boolean and a text
``train_mask``, …         optional: booleans, also ``val_mask`` and ``test_mask``
``node_ids``              optional: whole numbers or text
``class_names``           optional: text
``split_names``,          optional: published splits, one row each of 0 (outside), 1 (train),
``split_parts``           2 (val), 3 (test)
========================  =====================================================================
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet.errors import DataNotFoundError, GraphError, OutputExistsError, ParameterError
from discreet.files import expand_home, whole
from discreet.graph.edge_weights import weight_column
from discreet.graph.graph import MASKS, Graph, NamedSplit
from discreet.graph.npz import PlainArrays, write_arrays
from discreet.graph.partitions import PartitionedGraph, has_partitions
from discreet.graph.schema import BOOLEAN, CATEGORY, IGNORE, Schema
from discreet.graph.schema_file import SCHEMA_FILE, read_schema
from discreet.graph.table_files import find_table, read_header, read_table
from discreet.graph.tables import from_pandas, id_keys, pick_edge_columns, pick_node_columns

if TYPE_CHECKING:
    import pandas as pd

FORMAT, VERSION, WITH_WEIGHTS = "discreet-graph", 1, 2
"""A file with weights has a number of its own, so that a version that knows none refuses it."""

# -------------------------------------------------------------------- tables


def read_graph(edges: str | Path, nodes: str | Path, *, directed: bool | None = None, **options: Any) -> Graph:
    """Read an edge list and a node table from CSV, TSV or Parquet files, each with a header.

    The options are those of :func:`discreet.graph.from_pandas`: ``schema`` (or the path of its file), ``source``,
    ``target``, ``id``, ``label``, ``features``, ``ignore``, ``split``, ``classes``, ``weight``, ``full_weight``,
    ``weights`` and ``name``. Ids in text files are read as written.
    """
    _check_options(options)
    edges, nodes = expand_home(edges), expand_home(nodes)
    options["schema"] = schema = _as_schema(options.get("schema"))
    roles_given = ("id", "label", "split", "source", "target", "weight")
    picked = schema.with_given(**{key: options.get(key) for key in roles_given})
    header = read_header(nodes)
    roles = pick_node_columns(header, picked)
    node_table = read_table(nodes, _text_columns(header, picked, roles))
    edge_header = read_header(edges)
    weighed = weight_column(edge_header, options.get("weights") or "refuse", picked)
    ends = pick_edge_columns(edge_header, picked.source, picked.target, weighed)
    if picked.source is None and picked.target is None:
        _check_has_header(edges, ends, set(node_table[roles["id"]].astype(str)))
    numbered = id_keys(node_table[roles["id"]]).dtype.kind == "i"
    return from_pandas(_read_edges(edges, list(ends), numbered), node_table, directed=directed, **options)


def load_path(path: str | Path, *, directed: bool | None = None, **options: Any) -> Graph:
    """Load a graph from a ``.npz`` file, or from a folder with ``edges`` and ``nodes`` tables, or with partitions.

    A folder holds ``edges.csv`` and ``nodes.csv`` (or ``.tsv``, ``.parquet``, ``.pq``), and maybe ``schema.toml``,
    which is used unless ``schema`` is given; the options are those of :func:`read_graph`. A ``.npz`` file knows its own
    columns; with ``directed=False`` it is symmetrised, and with ``mmap=True`` its dense features are left on disk.
    """
    path = expand_home(path)
    mmap = options.pop("mmap", False)
    if mmap and path.suffix != ".npz":
        raise ParameterError("features can be left on disk where a graph is one .npz file: see discreet.save_npz")
    if has_partitions(path):
        return _whole_partitions(path, directed, options)
    if path.is_dir():
        options.setdefault("name", path.resolve().name)
        if options.get("schema") is None and (path / SCHEMA_FILE).exists():
            options["schema"] = path / SCHEMA_FILE
        return read_graph(find_table(path, "edges"), find_table(path, "nodes"), directed=directed, **options)
    if not path.exists():
        raise DataNotFoundError(f"there is no file or folder at {path}")
    if path.suffix != ".npz":
        raise GraphError(f"{path} is neither a .npz file nor a folder with edges.csv and nodes.csv")
    _refuse_options("a .npz file has", options)
    return _as_directed(load_npz(path, mmap=mmap), path, directed)


def _whole_partitions(path: Path, directed: bool | None, options: Mapping[str, Any]) -> Graph:
    _refuse_options("partitions have", options)
    return _as_directed(PartitionedGraph(path).whole(), path, directed)


def _refuse_options(what: str, options: Mapping[str, Any]) -> None:
    given = sorted(key for key, value in options.items() if value is not None)
    if given:
        raise ParameterError(f"{what} no columns to choose: {', '.join(given)} cannot be used")


def _as_directed(graph: Graph, path: Path, directed: bool | None) -> Graph:
    if directed and not graph.directed:
        raise GraphError(f"{path} holds an undirected graph, and directed=True cannot be read from it")
    return graph.to_undirected() if directed is False else graph


def from_folder(folder: str | Path, *, directed: bool | None = None, **options: Any) -> Graph:
    """The graph of a folder with an edges table and a nodes table; options as in :func:`read_graph`."""
    if not expand_home(folder).is_dir():
        raise DataNotFoundError(f"there is no folder {folder}: a graph's folder holds an edges and a nodes table")
    return load_path(folder, directed=directed, **options)


def _as_schema(given: Any) -> Schema:
    if given is None or isinstance(given, Schema):
        return given or Schema()
    return read_schema(given)


def _text_columns(header: list[str], schema: Schema, roles: Mapping[str, str | None]) -> set[str]:
    """The columns of a text file whose cells are names: roles, categories and booleans."""
    declared = schema.declared_for([name for name in header if name not in roles.values()])
    written = {name for name, column in declared.items() if column.kind in (CATEGORY, BOOLEAN, IGNORE)}
    return written | {name for name in roles.values() if name is not None}


def _check_options(options: Mapping[str, Any]) -> None:
    known = set(inspect.signature(from_pandas).parameters) - {"edges", "nodes", "directed"}
    for name in options:
        if name not in known:
            raise ParameterError(f"unknown option {name!r} for reading a graph: use {', '.join(sorted(known))}")


def _read_edges(path: Path, ends: list[str], numbered: bool) -> pd.DataFrame:
    """Endpoints as numbers where node ids are numbers (far faster on long lists), as text otherwise."""
    if numbered:
        with contextlib.suppress(GraphError):
            return read_table(path, ends, np.int64)
    return read_table(path, ends)


def _check_has_header(path: Path, ends: tuple[str, str], ids: set[str]) -> None:
    """A first line that names two nodes is an edge, and reading it as a header would lose that edge."""
    if all(column in ids for column in ends):
        raise GraphError(
            f"{path} seems to have no header, as its first line names two nodes: "
            "add one, or name the columns with source and target"
        )


# -------------------------------------------------------------------- one file


def save_npz(graph: Graph, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the whole graph to one ``.npz`` file and return its path.

    The file appears whole or not at all, and an existing one is kept unless ``overwrite`` is set.
    """
    path = expand_home(path)
    if path.suffix != ".npz":
        raise GraphError(f"the file must end in .npz, not {path.name!r}")
    if path.exists() and not overwrite:
        raise OutputExistsError(f"{path} exists: choose another name, or pass overwrite=True")
    if not path.parent.is_dir():
        raise DataNotFoundError(f"there is no folder {path.parent} to write {path.name} in")
    arrays = _to_arrays(graph)
    with whole(path) as temporary, temporary.open("xb") as file:
        write_arrays(file, arrays)
    return path


def load_npz(path: str | Path, *, mmap: bool = False) -> Graph:
    """Read a graph that :func:`save_npz` wrote; everything in it is validated, nothing is unpickled.

    ``mmap`` leaves dense features in the file, to be read as they are needed: for features larger than memory. The
    file must not change while the graph is in use.
    """
    path = expand_home(path)
    arrays = PlainArrays(path)
    if "format" not in arrays or _text(arrays, "format") != FORMAT:
        raise GraphError(f"{path} was not written by discreet: build a graph and save it with save_npz")
    known = WITH_WEIGHTS if "edge_weights" in arrays else VERSION
    if _number(arrays, "version") != known:
        raise GraphError(f"{path} has layout version {arrays['version']}; what it holds is read as version {known}")
    return _from_arrays(arrays, arrays.on_disk("features") if mmap else None)


def _to_arrays(graph: Graph) -> dict[str, np.ndarray]:
    graph.check_in_memory()
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION if graph.edge_weights is None else WITH_WEIGHTS,
        "edge_weights": graph.edge_weights,
        "indptr": graph.indptr,
        "indices": graph.indices.astype(np.int64),
        "labels": graph.labels,
        "num_classes": graph.num_classes,
        "directed": graph.directed,
        "name": graph.name,
    }
    if isinstance(graph.features, np.ndarray):
        arrays["features"] = graph.features
    else:
        arrays |= {f"features_{part}": getattr(graph.features, part) for part in ("data", "indices", "indptr")}
        arrays["features_shape"] = graph.features.shape
    arrays |= {f"{name}_mask": getattr(graph, f"{name}_mask") for name in MASKS}
    arrays["node_ids"] = _plain_ids(graph)
    arrays["class_names"] = graph.class_names
    if graph.named_splits:
        arrays["split_names"] = [split.name for split in graph.named_splits]
        arrays["split_parts"] = np.stack([split.part for split in graph.named_splits])
    return {key: np.asarray(value) for key, value in arrays.items() if value is not None}


def _plain_ids(graph: Graph) -> np.ndarray | None:
    ids = graph.node_ids
    if ids is not None and ids.dtype.kind not in "iuU":
        kind = type(ids.tolist()[0]).__name__
        raise GraphError(f"node ids of type {kind} cannot be saved: use whole numbers or text")
    return ids


def _from_arrays(arrays: Mapping[str, np.ndarray], on_disk: np.ndarray | None = None) -> Graph:
    features: Any
    if on_disk is not None:
        features = on_disk
    elif "features" in arrays:
        features = arrays["features"]
    else:
        parts = tuple(arrays[f"features_{part}"] for part in ("data", "indices", "indptr"))
        features = _csr(parts, tuple(_flat(arrays, "features_shape").tolist()))
    names = (*(f"{name}_mask" for name in MASKS), "edge_weights")
    optional: dict[str, Any] = {name: arrays[name] for name in names if name in arrays}
    return Graph(
        indptr=arrays["indptr"],
        indices=arrays["indices"],
        features=features,
        labels=arrays["labels"],
        num_classes=_number(arrays, "num_classes"),
        directed=bool(_number(arrays, "directed")),
        node_ids=_flat(arrays, "node_ids") if "node_ids" in arrays else None,
        class_names=tuple(_flat(arrays, "class_names").tolist()) if "class_names" in arrays else None,
        named_splits=_named_splits(arrays) if "split_names" in arrays else (),
        name=_text(arrays, "name"),
        **optional,
    )


def _number(arrays: Mapping[str, np.ndarray], key: str) -> int:
    """A single whole number or truth value."""
    array = arrays[key]
    if array.shape != () or array.dtype.kind not in "biu":
        raise GraphError(f"{key} must be a single whole number, not {array.dtype} of shape {array.shape}")
    return int(array)


def _text(arrays: Mapping[str, np.ndarray], key: str) -> str:
    array = arrays[key]
    if array.shape != () or array.dtype.kind != "U":
        raise GraphError(f"{key} must be a single text, not {array.dtype} of shape {array.shape}")
    return str(array)


def _flat(arrays: Mapping[str, np.ndarray], key: str) -> np.ndarray:
    array = arrays[key]
    if array.ndim != 1 or array.dtype.kind not in "iuU":
        raise GraphError(f"{key} must be a flat array of whole numbers or text, not {array.dtype} of {array.shape}")
    return array


def _named_splits(arrays: Mapping[str, np.ndarray]) -> tuple[NamedSplit, ...]:
    names, parts = _flat(arrays, "split_names"), arrays["split_parts"]
    if parts.ndim != 2 or len(parts) != len(names) or parts.dtype.kind not in "iu":
        raise GraphError(f"split_parts must hold one row of whole numbers for each of {len(names)} split names")
    return tuple(NamedSplit(str(name), part) for name, part in zip(names, parts, strict=True))


def _csr(parts: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> sp.csr_array:
    try:
        matrix = sp.csr_array(parts, shape=shape)
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise GraphError(f"the features are not a valid CSR matrix ({error})") from error
    return matrix
