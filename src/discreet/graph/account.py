"""An account of every column of two tables: what was read, what it became, and what was left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from discreet.graph.cells import UNKNOWN_WORDS
from discreet.graph.clean import UNLABELLED
from discreet.graph.edge_weights import WEIGHT_COLUMNS
from discreet.graph.graph import CLASS_LIST, WEIGHTS, Graph
from discreet.graph.parts import FEATURES, LABELS
from discreet.graph.schema import AS_IS, BOOLEAN, CATEGORY, IGNORE, INDICATOR, NUMERIC, Column, Schema, shorten

MOST = 0.5
"""The share of cells at an end of a range from which on something seems wrong."""
FEATURE = "feature"
TO_BE_DECLARED = "to be declared at this level"
TELLING = 10
"""Labelled nodes per value from which on it is no accident that a column tells the class of each."""


def account_of(graph: Graph, private: Collection[str] = ()) -> list[dict[str, str]]:
    """One row per column: ``table``, ``column``, ``read as`` and ``becomes``.

    Where the level keeps features or labels private, nothing that was read off them is in it.
    """
    schema = graph.schema
    if schema is None:
        return []
    rows = [_row("nodes", name, role, becomes) for name, role, becomes in _node_roles(graph, private)]
    rows += [_row("nodes", column.name, *_column_words(column, FEATURES in private)) for column in schema.columns or ()]
    direction = "edges with directions" if schema.directed else "edges, both ways"
    rows += [
        _row("edges", str(name), role, direction) for role in ("source", "target") if (name := getattr(schema, role))
    ]
    if schema.weight is not None and schema.weight not in schema.edges_ignored:
        whole = "" if schema.full_weight is None else f", {schema.full_weight:g} being a whole edge"
        rows.append(_row("edges", schema.weight, "weight", f"how much an edge counts, from 0 to 1{whole}"))
    if schema.time is not None and schema.time not in schema.edges_ignored:
        rows.append(_row("edges", schema.time, "time", "which edges are read"))
    return rows + [_row("edges", name, IGNORE, _left_out_words(graph, name)) for name in schema.edges_ignored]


def _left_out_words(graph: Graph, column: str) -> str:
    """Nothing becomes of it; of weights that nobody declared ``train`` wants to be told, unless all of them are 1."""
    if WEIGHTS not in graph.inferred or column.lower() not in WEIGHT_COLUMNS:
        return "nothing"
    return f"nothing; unless all are 1 train wants --column weight={column}, or --column weights=ignore"


def left_out(graph: Graph) -> str | None:
    """The columns that are not read, in one sentence; None where there are none."""
    if graph.schema is None:
        return None
    parts = ((graph.schema.ignored, "nodes"), (graph.schema.edges_ignored, "edges"))
    named = [f"{shorten(names)} of the {table} table" for names, table in parts if names]
    return f"columns that are not read: {'; '.join(named)}" if named else None


def beyond_ranges(graph: Graph) -> list[str]:
    """Numeric columns of which most cells lie at an end of the schema's range or beyond, one sentence each.

    For a table that is read by the schema of a model: another unit than in training looks like this. It reads the
    features, so it is for levels at which these are public. Columns of mostly zeros, with a range from 0, are common.
    """
    columns, names = graph.schema.columns if graph.schema else None, list(graph.feature_names or ())
    said = []
    for column in columns or ():
        if column.kind != NUMERIC or column.range is None or column.name not in names:
            continue
        cells = graph.features[:, [names.index(column.name)]]
        for end, cell, beyond in ((column.range[0], -1.0, "below"), (column.range[1], 1.0, "above")):
            share = float((cells == cell).sum()) / max(graph.num_nodes, 1)
            if share > MOST and end != 0 and column.range[0] != column.range[1]:
                said.append(
                    f"column {column.name!r}: {share:.0%} of the cells are {end:g} or {beyond}, which is the end of "
                    "its range in the model; is it in the same units as in training?"
                )
    return said


def doubts_of(graph: Graph, private: Collection[str]) -> list[str]:
    """What looks like an oversight in public tables, one sentence each: nothing that the level protects is read.

    Names that differ in upper and lower case alone, columns with one value or none, and columns that tell the class.
    """
    said = []
    if LABELS not in private and CLASS_LIST in graph.inferred:
        said += _case_doubts("classes", graph.class_names or ())
        unknown = [name for name in graph.class_names or () if name.lower() in UNKNOWN_WORDS]
        if unknown:
            said.append(f"read as classes: {shorten(unknown)}; leave a cell empty where its label is not known")
        if graph.num_classes == 1:
            said.append(f"every label is {shorten(graph.class_names or ())!r}: there is nothing to tell apart")
    if FEATURES in private or graph.schema is None:
        return said
    for column in graph.schema.measured:
        said += _case_doubts(f"categories of column {column.name!r}", column.categories or ())
        if column.kind == NUMERIC and column.range == (0.0, 0.0) and column.missing == INDICATOR:
            said.append(f"column {column.name!r} holds no value at all")  # with a 0 beside it, it would be a boolean
        elif column.missing is None and _has_one_value(column):
            said.append(f"column {column.name!r} holds one value throughout, so it tells nothing")
        elif LABELS not in private and column.kind in (CATEGORY, BOOLEAN) and _tells_the_class(graph, column):
            said.append(
                f"column {column.name!r} alone tells the class of every labelled node: will it be known of the nodes "
                f"that you predict? If not, leave it out (--column ignore={column.name})"
            )
    return said


def _has_one_value(column: Column) -> bool:
    if column.kind == CATEGORY:
        return len(column.categories or ()) == 1
    return column.kind == NUMERIC and column.range is not None and column.range[0] == column.range[1]


def _case_doubts(what: str, names: Iterable[str]) -> list[str]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.casefold(), []).append(name)
    pairs = [" and ".join(map(repr, same)) for same in found.values() if len(same) > 1]
    return [f"{what} that differ in upper and lower case alone: {shorten(pairs)}"] if pairs else []


def _tells_the_class(graph: Graph, column: Column) -> bool:
    """Whether nodes of one value always have one class, with two classes at least and many nodes per value."""
    known = np.flatnonzero(graph.labels != UNLABELLED)
    labels, names = graph.labels[known], graph.feature_names or ()
    wanted = {column.name, f"{column.name} (missing)", *(f"{column.name}={word}" for word in column.categories or ())}
    places = [place for place, name in enumerate(names) if name in wanted]
    if len(known) < TELLING * 2 * len(places) or len(np.unique(labels)) < 2:
        return False
    cells = graph.features[known][:, places]
    cells = cells if isinstance(cells, np.ndarray) else cells.toarray()
    values = np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)
    return len(np.unique(np.stack([values, labels]), axis=1).T) == len(np.unique(values))


def summary_of(graph: Graph) -> list[str]:
    """What was read of two tables, for a person, in one line or two; nothing where the graph came from elsewhere.

    Nothing in it was read off what a level protects: such a graph is refused before (``graph.parts``).
    """
    if graph.schema is None:
        return []
    used = sum(column.kind != IGNORE for column in graph.schema.columns or ())
    classes = shorten(graph.class_names or ()) or "none"
    kind = ("directed" if graph.directed else "undirected") + (
        _weight_words(graph.schema) if graph.edge_weights is not None else ""
    )
    words = f"{graph.num_features} features from {used} columns, classes {classes}; edges are read as {kind}"
    missing = left_out(graph)
    return [f"read {graph.name}: {graph.num_nodes} nodes, {words}", *([missing] if missing else [])]


def _weight_words(schema: Schema) -> str:
    if schema.full_weight is not None:
        return f", with weights, {schema.full_weight:g} being a whole edge"
    return ", with weights as they are: 1 and more is a whole edge, unless --column full_weight=NUMBER says what is"


def _row(table: str, column: str, role: str, becomes: str) -> dict[str, str]:
    return {"table": table, "column": column, "read as": role, "becomes": becomes}


def _node_roles(graph: Graph, private: Collection[str]) -> list[tuple[str, str, str]]:
    schema = graph.schema
    assert schema is not None
    hidden = LABELS in private and CLASS_LIST in graph.inferred
    classes = TO_BE_DECLARED if hidden else f"classes {shorten(graph.class_names or ())}"
    found = [(schema.id, "id", "the name of the node"), (schema.label, "label", classes)]
    found.append((schema.split, "split", "train, val or test"))
    return [(name, role, becomes) for name, role, becomes in found if name is not None]


def _column_words(column: Column, private: bool) -> tuple[str, str]:
    if private and column.measured:  # its kind, too, was read off the values
        return FEATURE, TO_BE_DECLARED
    if column.kind == IGNORE:
        say = f"; train wants --column ignore={column.name}, or its kind in schema.toml" if column.measured else ""
        return IGNORE, f"nothing{say}"
    words = {
        NUMERIC: lambda: (
            f"-1 to 1 ({column.scale}), from {column.range[0]:g} to {column.range[1]:g}" if column.range else ""
        ),
        CATEGORY: lambda: (
            f"one column each for {shorten(column.categories or ())}" + ("; other" if column.other else "")
        ),
        BOOLEAN: lambda: "0 or 1",
        AS_IS: lambda: "the number itself",
    }[column.kind]()
    if column.missing is not None:
        words += "; missing has a column" if column.missing == INDICATOR else f"; missing is {column.missing}"
    return column.kind, words
