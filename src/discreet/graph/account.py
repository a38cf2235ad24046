"""An account of every column of two tables: what was read, what it became, and what was left out."""

from __future__ import annotations

from collections.abc import Collection

from discreet.graph.graph import CLASS_LIST, Graph
from discreet.graph.parts import FEATURES, LABELS
from discreet.graph.schema import AS_IS, BOOLEAN, CATEGORY, IGNORE, INDICATOR, NUMERIC, Column, shorten

MOST = 0.5
"""The share of cells at an end of a range from which on something seems wrong."""
TO_BE_DECLARED = "to be declared at this level"


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
    return rows + [_row("edges", name, IGNORE, "nothing") for name in schema.edges_ignored]


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


def summary_of(graph: Graph) -> list[str]:
    """What was read of two tables, for a person, in one line or two; nothing where the graph came from elsewhere.

    Nothing in it was read off what a level protects: such a graph is refused before (``graph.parts``).
    """
    if graph.schema is None:
        return []
    used = sum(column.kind != IGNORE for column in graph.schema.columns or ())
    classes = shorten(graph.class_names or ()) or "none"
    kind = ("directed" if graph.directed else "undirected") + (
        ", with weights" if graph.edge_weights is not None else ""
    )
    words = f"{graph.num_features} features from {used} columns, classes {classes}; edges are read as {kind}"
    missing = left_out(graph)
    return [f"read {graph.name}: {graph.num_nodes} nodes, {words}", *([missing] if missing else [])]


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
    if column.kind == IGNORE:
        return IGNORE, "nothing"
    if private and column.measured:
        return column.kind, TO_BE_DECLARED
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
