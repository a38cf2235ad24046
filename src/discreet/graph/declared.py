"""Refusing what was read off private data: classes, direction, ranges and categories are declared there."""

from __future__ import annotations

from collections.abc import Collection

from discreet.errors import GraphError
from discreet.graph.graph import CLASS_LIST, COLUMNS, DIRECTION, Graph
from discreet.graph.schema import AS_IS, shorten
from discreet.graph.schema_file import line_to_add

EDGES, FEATURES, LABELS = "edges", "features", "labels"


def check_declared(graph: Graph, private: Collection[str]) -> None:
    """Refuse a graph of which something was read off a part that the level protects.

    One person with a label, a category or a value that nobody else has would change the shape of the model, and give
    themselves away with certainty. The names of columns are the header's, and nobody's data.
    """
    if EDGES in private and DIRECTION in graph.inferred:
        raise GraphError(
            "whether the edges have directions was read off the edges, which this level protects: say directed=True "
            "or directed=False"
        )
    if LABELS in private and CLASS_LIST in graph.inferred:
        raise GraphError(
            "the classes were read off the labels, which this level protects: declare them, with "
            '--column classes=ONE,TWO, with classes = ["ONE", "TWO"] under [nodes] in schema.toml, or with '
            "num_classes in Python"
        )
    if FEATURES in private and COLUMNS in graph.inferred:
        raise GraphError(
            f"the feature columns of {graph.name} were read off the values that occur, which this level protects: "
            "build the graph with columns that are public knowledge"
        )
    if FEATURES in private and graph.schema is not None and graph.schema.measured:
        _refuse_measured(graph)


def _refuse_measured(graph: Graph) -> None:
    assert graph.schema is not None
    measured = graph.schema.measured
    names = shorten(column.name for column in measured)
    example = next((column for column in measured if column.kind != AS_IS), measured[0])
    raise GraphError(
        f"the kinds, ranges or categories of the columns {names} were read off features that this level protects: "
        f"declare them in schema.toml, for example {line_to_add(example)} "
        "(discreet data FOLDER --write-schema drafts the file)"
    )
