"""Graphs from and to pandas: a table of edges and a table of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from discreet.arrays import Array, BoolArray, IntArray
from discreet.errors import GraphError
from discreet.graph.edge_times import select_edges, time_column
from discreet.graph.edge_weights import Weights, read_weights, refuse_undeclared, undeclared, weight_column
from discreet.graph.encoding import encode
from discreet.graph.graph import CLASS_LIST, MASKS, WEIGHTS, Graph
from discreet.graph.labels import check_class_values, decode_classes, encode_classes
from discreet.graph.measuring import measure
from discreet.graph.schema import IGNORE, Column, Schema, shorten
from discreet.limits import shown

if TYPE_CHECKING:
    import pandas as pd

OtherLabels = Literal["refuse", "ignore"]
ID_COLUMNS = ("id", "node", "node_id")
LABEL_COLUMNS = ("label", "class", "y")
SPLIT_COLUMNS = ("split",)
# What a column of splits may say, and the number of each mask.
_SPLIT_WORDS = {"train": 1, "val": 2, "valid": 2, "validation": 2, "test": 3}


def from_pandas(
    edges: pd.DataFrame,
    nodes: pd.DataFrame,
    *,
    directed: bool | None = None,
    schema: Schema | None = None,
    source: str | None = None,
    target: str | None = None,
    id: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    split: str | None = None,
    classes: str | Sequence[Any] | None = None,
    weight: str | None = None,
    full_weight: float | str | None = None,
    weights: Weights = "refuse",
    other_labels: OtherLabels = "refuse",
    time: str | None = None,
    edges_until: str | None = None,
    drafting: bool = False,
    name: str = "graph",
) -> Graph:
    """Build a graph from a table of edges and a table of nodes.

    The features are encoded as the schema says, column by column name; see ``discreet.graph.measuring`` for what a
    column becomes of which nothing is declared. ``graph.schema`` holds every column and what became of it: read the
    tables of next month with ``schema=model.schema_``.

    Parameters
    ----------
    directed
        True keeps directions; by default each row is an undirected edge. Edges are never looked at to find out.
    schema
        What the columns mean; see ``discreet.graph.schema``. Where it lists columns, each of them must be in the
        table, and no other. The options below go before it.
    source, target
        Columns of the edge table; the first two by default.
    id
        Column of node ids; by default one named id, node or node_id, else the first. Ids may be
        anything; ``graph.node_ids`` keeps them. Whole numbers in one table match their text in the other.
    label
        Column of classes; by default one named label, class or y, if any. Empty or -1 is unlabelled.
    features
        Feature columns; by default all that are left. With it, any other column is ignored.
    ignore
        Columns of the node table that are not read.
    split
        Column with train, val, test or nothing; by default one named split, if any.
    classes
        The public class list. Without it the classes are those that occur in the table.
    weight, full_weight
        The column of the edge table that says how much an edge counts, and the number that counts as a whole edge, by
        default 1: weights are divided by it and clipped to [0, 1]. Of rows for the same edge the largest counts.
    weights
        A column named weight, weights or edge_weight that nobody declared is refused where it holds other values than
        1; ``ignore`` drops it, ``read`` reads it.
    other_labels
        A label outside the class list is refused, or ignored: the node is then unlabelled. Predicting needs no label.
    time, edges_until
        The column of the edge table that says when, by default one named time, timestamp or date; and the last moment
        of which edges are read: a date, a date with a time, or a number where the column holds numbers.
    drafting
        A column that cannot be read is ignored instead of refused, for a first look at a table.
    """
    _check_table("edge", edges)
    _check_table("node", nodes)
    if schema is not None and not isinstance(schema, Schema):
        raise GraphError(f"schema must be a Schema, as read_schema reads one from a file, not {type(schema).__name__}")
    _check_asked(nodes.columns, "node", id=id, label=label, split=split)
    given = (schema or Schema()).with_given(
        id=id,
        label=label,
        split=split,
        source=source,
        target=target,
        classes=_listed(classes),
        directed=directed,
        time=time,
        weight=weight,
        full_weight=_number(full_weight),
    )
    if edges_until is not None:
        given = replace(given, time=time_column(edges, given))
        edges = select_edges(edges, str(given.time), edges_until)
    columns = pick_node_columns(nodes.columns, given)
    if len(nodes) == 0:
        raise GraphError("the node table has no rows")
    settled = _settled_columns(nodes, given, columns, _listed(features), _listed(ignore) or (), drafting)
    keys = id_keys(nodes[columns["id"]])
    _check_ids(keys, nodes[columns["id"]])
    weighed = weight_column(list(edges.columns), weights, given)
    ends = pick_edge_columns(edges.columns, given.source, given.target, weighed)
    inferred = {CLASS_LIST} if given.classes is None else set()
    if weighed is None and weights != "ignore":
        if not drafting:
            refuse_undeclared(edges, given)
        elif undeclared(edges.columns, given):
            inferred.add(WEIGHTS)
    sources, targets = _match_endpoints(edges, ends, keys)
    labels, names = _labels(nodes, columns["label"], given.classes, other_labels == "refuse")
    masks: dict[str, Any] = {}
    if columns["split"] is not None:
        masks.update(masks_from_words(nodes[columns["split"]].tolist()))
    matrix, feature_names = encode(nodes, settled)
    complete = given.with_given(
        **columns, columns=settled, source=ends[0], target=ends[1], classes=names, directed=bool(given.directed)
    )
    complete = replace(complete, weight=weighed, full_weight=None if weighed is None else given.full_weight)
    read = (*ends, weighed, given.time if edges_until is not None else None)
    ignored = tuple(str(column) for column in edges.columns if column not in read)
    return Graph.from_edges(
        sources,
        targets,
        matrix,
        labels,
        directed=bool(given.directed),
        num_classes=None if names is None else len(names),
        edge_weights=None if weighed is None else read_weights(edges, weighed, given.full_weight),
        class_names=names,
        feature_names=feature_names,
        node_ids=keys.to_numpy(dtype=np.int64) if keys.dtype.kind == "i" else _text_array(keys),
        name=name,
        schema=replace(complete, edges_ignored=ignored),
        inferred=frozenset(inferred),
        **masks,
    )


def to_pandas(graph: Graph) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables (edges, nodes) that :func:`from_pandas` reads back; ids and class names are the caller's own.

    An undirected edge has two rows. Weights of edges are a column ``weight``, read with ``weights="read"``.
    Sparse features become sparse columns ``x0``, ``x1``, ….
    """
    import pandas as pd

    ids = graph.node_ids if graph.node_ids is not None else np.arange(graph.num_nodes)
    source, target = graph.edges()
    edges = pd.DataFrame({"source": ids[source], "target": ids[target]})
    if graph.edge_weights is not None:
        edges["weight"] = graph.edge_weights
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


def pick_node_columns(columns: Sequence[str], schema: Schema) -> dict[str, Any]:
    """Which columns of the node table hold the id, the label and the split.

    The label and the split that a schema names may be absent: the table to predict on has neither.
    """
    if len(columns) == 0:
        raise GraphError("the node table has no columns")
    _check_asked(columns, "node", id=schema.id)
    features = {column.name for column in schema.columns or ()}
    free = [column for column in columns if column not in features]
    present = set(columns)
    found: dict[str, Any] = {"id": schema.id or _usual(free, ID_COLUMNS) or columns[0]}
    for role, usual in (("label", LABEL_COLUMNS), ("split", SPLIT_COLUMNS)):
        named = getattr(schema, role)
        found[role] = (named if named in present else None) if named is not None else _usual(free, usual)
    return found


def pick_edge_columns(
    columns: Sequence[str], source: str | None, target: str | None, weight: str | None = None
) -> tuple[str, str]:
    """Which columns of the edge table hold the endpoints: the first two that are not taken."""
    _check_asked(columns, "edge", source=source, target=target)
    if weight is not None and weight in (source, target):
        raise GraphError(f"the column {weight!r} of the edge table cannot hold an endpoint and a weight")
    free = [column for column in columns if column not in (source, target, weight)]
    if len(free) < (source is None) + (target is None):
        raise GraphError(f"the edge table needs two columns of endpoints, but has {len(columns)}")
    if source is None:
        source = free.pop(0)
    return source, free[0] if target is None else target


def _check_asked(columns: Sequence[str], table: str, **asked: str | None) -> None:
    missing = next((name for name in asked.values() if name is not None and name not in list(columns)), None)
    if missing is not None:
        shown = ", ".join(str(column) for column in list(columns)[:12])
        raise GraphError(f"the {table} table has no column {missing!r} (it has: {shown})")


def _usual(columns: Sequence[str], usual: tuple[str, ...]) -> str | None:
    by_name = {str(column).lower(): column for column in reversed(list(columns))}
    return next((by_name[name] for name in usual if name in by_name), None)


def _check_table(table: str, held: Any) -> None:
    import pandas as pd

    if not isinstance(held, pd.DataFrame):
        raise GraphError(f"the {table} table must be a pandas DataFrame, not {type(held).__name__}")
    if not held.columns.is_unique:
        twice = held.columns[held.columns.duplicated()][0]
        raise GraphError(f"the {table} table has more than one column {twice!r}")
    odd = next((name for name in held.columns if not isinstance(name, str)), None)
    if odd is not None or held.columns.hasnans:
        raise GraphError(
            f"the {table} table has a column named {shown(odd)}, which is no text: "
            "rename its columns, with table.columns.map(str) for one"
        )


def _listed(given: str | Sequence[Any] | None) -> tuple[str, ...] | None:
    """One text is a list with commas; no class and no column of a table of ours holds one."""
    if given is None:
        return None
    if isinstance(given, str):
        return tuple(part.strip() for part in given.split(",") if part.strip())
    if isinstance(given, bytes | set | frozenset) or not isinstance(given, Iterable):
        raise GraphError(f"a list of names is wanted, not {shown(given)}")
    return tuple(str(part) for part in given)


def _number(given: float | str | None) -> float | None:
    """A number as a caller or a command line gives it; the schema says what is wrong with any other."""
    try:
        return None if given is None else float(given)
    except (TypeError, ValueError, OverflowError):
        raise GraphError(f"full_weight must be a number, not {given!r:.60}") from None


def _settled_columns(
    nodes: pd.DataFrame,
    schema: Schema,
    columns: dict[str, Any],
    features: tuple[str, ...] | None,
    ignore: tuple[str, ...],
    drafting: bool,
) -> tuple[Column, ...]:
    """Every column of the node table that has no other role, with what becomes of it."""
    taken = {column for column in columns.values() if column is not None}
    names = [column for column in nodes.columns if column not in taken]
    present = set(names)
    for asked in (*(features or ()), *ignore):
        if asked not in present:
            _check_asked(nodes.columns, "node", asked=asked)
            raise GraphError(f"the column {asked!r} of the node table has another role already")
    declared = schema.declared_for(names)
    if schema.columns is not None and features is None:
        _check_columns(schema, names, declared, ignore)
    left_out = set(ignore) | (set() if features is None else present - set(features))
    declared |= {name: Column(name, IGNORE) for name in left_out}
    order = list(features or ()) + [name for name in names if name in left_out] if features is not None else names
    if schema.columns is not None:  # the order of the schema, whatever that of the table
        rank = {column.name: place for place, column in enumerate(schema.columns)}
        order.sort(key=lambda name: rank.get(name, len(rank)))
    return measure(nodes, order, declared, drafting=drafting)


def _check_columns(schema: Schema, names: list[str], declared: dict[str, Column], ignore: tuple[str, ...]) -> None:
    """Refuse a table that lacks columns of the schema, or has more."""
    present, said = set(names), []
    wanted = (column for column in schema.columns or () if column.kind != IGNORE and not column.is_pattern)
    missing = [column.name for column in wanted if column.name not in present]
    extra = [name for name in names if name not in declared and name not in ignore]
    if missing:
        said.append(f"it lacks {shorten(missing)}")
    if extra:
        said.append(f'it has {shorten(extra)} beside (ignore them with --column ignore=NAME or kind = "ignore")')
    if said:
        raise GraphError(f"the node table does not have the columns of the schema: {'; '.join(said)}")


def _labels(
    nodes: pd.DataFrame, column: str | None, classes: tuple[str, ...] | None, refuse_unknown: bool
) -> tuple[IntArray | None, tuple[str, ...] | None]:
    if column is None:
        return None, classes
    values = nodes[column].tolist()
    if classes is None:
        check_class_values(values, column)
    return encode_classes(values, classes, refuse_unknown=refuse_unknown)


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


def _check_ids(keys: pd.Series, ids: pd.Series) -> None:
    if keys.dtype.kind != "i" and (keys == "").any():
        raise GraphError(f"row {int((keys == '').argmax())} of the node table has no id")
    kinds = {str if isinstance(node, str) else type(node) for node in ids.tolist()} if ids.dtype == object else set()
    if str in kinds and len(kinds) > 1:
        raise GraphError(
            f"the node ids in column {ids.name!r} are of two types, text and numbers: write all of them as text"
        )
    twice = keys.duplicated()
    if twice.any():
        raise GraphError(f"node id {str(keys[twice].iloc[0])!r:.80} stands more than once in the node table")


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
            _raise_unknown(column, int((rows < 0).argmax()), named, int((rows < 0).sum()), keys)
        found.append(rows.astype(np.int64))
    return tuple(found)


def _raise_unknown(column: str, row: int, named: pd.Series, count: int, keys: pd.Series) -> None:
    wanted = str(named.iloc[row])
    if wanted == "":
        raise GraphError(f"row {row} of the edge table has no {column!r}")
    words = keys.astype(str)
    like = words[words.str.lstrip("0").str.casefold() == wanted.lstrip("0").casefold()]
    hint = f": that has {like.iloc[0]!r:.80}, and ids must be written alike in both" if len(like) else ""
    raise GraphError(
        f"an edge names node {wanted!r:.80} (row {row}, column {column!r}; "
        f"{'no other row does so' if count == 1 else f'{count} rows do so'}), which is not in the node table{hint}"
    )
