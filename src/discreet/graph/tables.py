"""Graphs from and to pandas: a table of edges and a table of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from discreet.arrays import Array, BoolArray, IntArray
from discreet.errors import GraphError
from discreet.graph.graph import MASKS, Graph
from discreet.graph.labels import decode_classes, encode_classes

if TYPE_CHECKING:
    import pandas as pd

Weights = Literal["refuse", "ignore"]
ID_COLUMNS = ("id", "node", "node_id")
LABEL_COLUMNS = ("label", "class", "y")
SPLIT_COLUMNS = ("split",)
WEIGHT_COLUMNS = ("weight", "weights", "edge_weight")
_SPLIT_WORDS = {"train": 1, "val": 2, "valid": 2, "validation": 2, "test": 3}


def from_pandas(
    edges: pd.DataFrame,
    nodes: pd.DataFrame,
    *,
    directed: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    split: str | None = None,
    classes: Sequence[Any] | None = None,
    weights: Weights = "refuse",
    name: str = "graph",
) -> Graph:
    """Build a graph from a table of edges and a table of nodes.

    Parameters
    ----------
    directed
        False reads each row as an undirected edge, True keeps directions, None looks: a table that
        holds both directions of every edge is undirected, any other is directed.
    source, target
        Columns of the edge table; the first two by default.
    id
        Column of node ids; by default one named id, node or node_id, else the first. Ids may be
        anything; ``graph.node_ids`` keeps them. Whole numbers in one table match their text in the other.
    label
        Column of classes; by default one named label, class or y, if any. Empty or -1 is unlabelled.
    features
        Feature columns; by default all numeric columns that are left, and any other column is an error.
    split
        Column with train, val, test or nothing; by default one named split, if any.
    classes
        The public class list. Without it the classes are those that occur in the table.
    weights
        A weight column with values other than 1 is refused, or ignored.
    """
    for table, held in (("edge", edges), ("node", nodes)):
        if not held.columns.is_unique:
            twice = held.columns[held.columns.duplicated()][0]
            raise GraphError(f"the {table} table has more than one column {twice!r}")
    columns = pick_node_columns(nodes.columns, id=id, label=label, split=split)
    chosen = _feature_columns(nodes, features, columns)
    keys = id_keys(nodes[columns["id"]])
    _check_ids(keys)
    source, target = pick_edge_columns(edges.columns, source, target)
    check_weights(edges, weights)
    sources, targets = _match_endpoints(edges, (source, target), keys)
    labels, names = (None, None)
    if columns["label"] is not None:
        labels, names = encode_classes(nodes[columns["label"]].tolist(), classes)
    elif classes is not None:
        names = tuple(str(value) for value in classes)
    masks: dict[str, Any] = {}
    if columns["split"] is not None:
        masks.update(masks_from_words(nodes[columns["split"]].tolist()))
    return Graph.from_edges(
        sources,
        targets,
        _feature_matrix(nodes, chosen),
        labels,
        directed=directed,
        num_classes=None if names is None else len(names),
        class_names=names,
        node_ids=keys.to_numpy(dtype=np.int64) if keys.dtype.kind == "i" else _text_array(keys),
        name=name,
        **masks,
    )


def to_pandas(graph: Graph) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables (edges, nodes) that :func:`from_pandas` reads back; ids and class names are the caller's own.

    An undirected edge has two rows. Sparse features become sparse columns ``x0``, ``x1``, ….
    """
    import pandas as pd

    ids = graph.node_ids if graph.node_ids is not None else np.arange(graph.num_nodes)
    source, target = graph.edges()
    edges = pd.DataFrame({"source": ids[source], "target": ids[target]})
    head = {"id": ids, "label": pd.array(decode_classes(graph.labels, graph.class_names), dtype=object)}
    if any(getattr(graph, f"{name}_mask") is not None for name in MASKS):
        head["split"] = split_words(graph)
    width = [f"x{column}" for column in range(graph.num_features)]
    if sp.issparse(graph.features):
        body = pd.DataFrame.sparse.from_spmatrix(graph.features, columns=width)
    else:
        body = pd.DataFrame(graph.features, columns=width)
    return edges, pd.concat([pd.DataFrame(head), body], axis=1)


def split_words(graph: Graph) -> list[str]:
    """``train``, ``val``, ``test`` or an empty string for each node."""
    words = np.full(graph.num_nodes, "", dtype=object)
    for name in MASKS:
        mask = getattr(graph, f"{name}_mask")
        if mask is not None:
            words[mask] = name
    return words.tolist()


def masks_from_words(words: Sequence[Any]) -> dict[str, BoolArray]:
    """Masks from one word a node; the opposite of :func:`split_words`."""
    part = np.zeros(len(words), dtype=np.int8)
    for row, word in enumerate(words):
        if word is None or word != word or not str(word).strip():
            continue
        place = _SPLIT_WORDS.get(str(word).strip().lower())
        if place is None:
            raise GraphError(f"row {row} of the split is {word!r}; use train, val, test or leave it empty")
        part[row] = place
    return {f"{name}_mask": part == place for place, name in enumerate(MASKS, start=1)}


# -------------------------------------------------------------------- choosing columns


def pick_node_columns(
    columns: Sequence[str], *, id: str | None, label: str | None, split: str | None
) -> dict[str, str | None]:
    """Which columns of the node table hold the id, the label and the split."""
    if len(columns) == 0:
        raise GraphError("the node table has no columns")
    return {
        "id": _pick(columns, id, ID_COLUMNS, "node") or columns[0],
        "label": _pick(columns, label, LABEL_COLUMNS, "node"),
        "split": _pick(columns, split, SPLIT_COLUMNS, "node"),
    }


def pick_edge_columns(columns: Sequence[str], source: str | None, target: str | None) -> tuple[str, str]:
    """Which columns of the edge table hold the endpoints: the first two that are not taken."""
    for asked in (source, target):
        _pick(columns, asked, (), "edge")
    free = [column for column in columns if column not in (source, target)]
    if len(free) < (source is None) + (target is None):
        raise GraphError(f"the edge table needs two columns of endpoints, but has {len(columns)}")
    if source is None:
        source = free.pop(0)
    return source, free[0] if target is None else target


def _pick(columns: Sequence[str], asked: str | None, usual: tuple[str, ...], table: str) -> str | None:
    if asked is not None:
        if asked not in list(columns):
            shown = ", ".join(str(column) for column in list(columns)[:12])
            raise GraphError(f"the {table} table has no column {asked!r} (it has: {shown})")
        return asked
    by_name = {str(column).lower(): column for column in reversed(list(columns))}
    return next((by_name[name] for name in usual if name in by_name), None)


def _feature_columns(nodes: pd.DataFrame, features: Sequence[str] | None, columns: dict[str, str | None]) -> list[str]:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if isinstance(features, str):
        features = [features]
    taken = {column for column in columns.values() if column is not None}
    chosen = [c for c in nodes.columns if c not in taken] if features is None else list(features)
    for column in chosen:
        _pick(nodes.columns, column, (), "node")
        kind = nodes[column].dtype
        if not (is_numeric_dtype(kind) or is_bool_dtype(kind)):
            raise GraphError(
                f"column {column!r} of the node table is not numeric: encode it, or name the feature columns"
            )
    if not chosen:
        raise GraphError("the node table has no feature columns")
    return chosen


def _feature_matrix(nodes: pd.DataFrame, chosen: list[str]) -> Any:
    import pandas as pd

    part = nodes[chosen]
    if all(isinstance(kind, pd.SparseDtype) for kind in part.dtypes):
        return part.sparse.to_coo()
    return part.to_numpy(dtype=np.float64, na_value=np.nan)


# -------------------------------------------------------------------- matching ids


def id_keys(ids: pd.Series) -> pd.Series:
    """Ids as int64 where every one is a plain whole number, as text otherwise.

    "7" and 7 become the same key, while "007" stays text, so that no id loses its spelling.
    """
    import pandas as pd

    whole = pd.api.types.is_integer_dtype(ids.dtype) and not ids.isna().any()
    if whole and (ids.dtype.kind != "u" or ids.max() < 2**63):
        return ids.astype(np.int64).reset_index(drop=True)
    text = _as_text(ids)
    trimmed = text.str.replace(r"^(-?[0-9]+)\.0$", r"\1", regex=True)  # what a float column writes for 7
    plain = trimmed.str.fullmatch(r"0|-?[1-9][0-9]{0,17}")
    return trimmed.astype(np.int64) if len(text) and plain.all() else text


def _as_text(ids: pd.Series) -> pd.Series:
    """Text of each id, empty for a missing one; a float that is whole loses its point."""
    import pandas as pd

    def spell(value: Any) -> str:
        if isinstance(value, float | np.floating) and float(value).is_integer():
            return str(int(value))
        return str(value).strip()

    missing = ids.isna().to_numpy()
    words = [("" if gone else spell(value)) for value, gone in zip(ids.tolist(), missing, strict=True)]
    return pd.Series(words, dtype=object)


def _text_array(keys: pd.Series) -> Array:
    return np.array(keys.tolist(), dtype=np.str_)


def _check_ids(keys: pd.Series) -> None:
    if keys.dtype.kind != "i" and (keys == "").any():
        raise GraphError(f"row {int((keys == '').argmax())} of the node table has no id")
    twice = keys.duplicated()
    if twice.any():
        raise GraphError(f"node id {keys[twice].iloc[0]!r} stands more than once in the node table")


def _match_endpoints(edges: pd.DataFrame, columns: tuple[str, str], keys: pd.Series) -> tuple[IntArray, ...]:
    import pandas as pd

    index = pd.Index(keys)
    words: pd.Index | None = None
    found = []
    for column in columns:
        named = id_keys(edges[column])
        if named.dtype.kind == keys.dtype.kind == "i":
            rows = index.get_indexer(named)
        else:  # one table reads as numbers and the other does not: compare what is written
            words = pd.Index(keys.astype(str)) if words is None else words
            named = named.astype(str)
            rows = words.get_indexer(named)
        if (rows < 0).any():
            _raise_unknown(column, int((rows < 0).argmax()), named, int((rows < 0).sum()))
        found.append(rows.astype(np.int64))
    return tuple(found)


def _raise_unknown(column: str, row: int, named: pd.Series, count: int) -> None:
    if named.iloc[row] == "":
        raise GraphError(f"row {row} of the edge table has no {column!r}")
    raise GraphError(
        f"an edge names node {named.iloc[row]!r} (row {row}, column {column!r}), "
        f"which is not in the node table ({count} such rows)"
    )


# -------------------------------------------------------------------- the rest


def check_weights(edges: pd.DataFrame, weights: Weights) -> None:
    """Refuse a weight column that says more than which edges there are."""
    check_weights_option(weights)
    if weights == "ignore":
        return
    for column in edges.columns:
        if str(column).lower() in WEIGHT_COLUMNS and not (edges[column] == 1).all():
            raise GraphError(
                f"the edge table has weights in column {column!r}, and a graph here has none: "
                'drop them with weights="ignore"'
            )


def check_weights_option(weights: str) -> None:
    """Only the two words that are known."""
    if weights not in ("refuse", "ignore"):
        raise GraphError(f'weights must be "refuse" or "ignore", not {weights!r}')
