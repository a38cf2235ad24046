"""What was read off private data is refused, and what was declared is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from discreet.errors import GraphError
from discreet.graph import Graph, from_pandas, parts
from discreet.graph.schema import Column, Schema
from discreet.privacy.levels import parse_level

EDGES = pd.DataFrame({"s": ["a", "b"], "t": ["b", "c"]})
NODES = pd.DataFrame({"id": ["a", "b", "c"], "age": [1.0, 2.0, 9.0], "town": ["x", "y", "x"], "label": ["p", "q", "p"]})
DECLARED = (Column("age", "numeric", range=(0, 9)), Column("town", "category", categories=("x", "y")))
PRIVATE_RECORDS = ["node", "node:promised,max_degree=5", "neighbor:1", "local"]


@pytest.mark.parametrize("level", PRIVATE_RECORDS)
def test_classes_and_columns_are_declared_where_records_are_private(level: str) -> None:
    split = parse_level(level).split
    with pytest.raises(GraphError, match="--column classes="):
        split(from_pandas(EDGES, NODES))
    with pytest.raises(GraphError, match=r"columns age, town .* \[columns.age\] with kind = \"numeric\", range ="):
        split(from_pandas(EDGES, NODES, classes=["p", "q"]))
    split(from_pandas(EDGES, NODES, schema=Schema(DECLARED, classes=("p", "q"))))


def test_public_records_may_be_looked_at() -> None:
    for level in ("edge", "none"):
        parse_level(level).split(from_pandas(EDGES, NODES))


@pytest.mark.parametrize("level", ["edge", "node:promised,max_degree=5", "neighbor:1,edges=promised"])
def test_private_edges_are_not_asked_for_their_direction(level: str) -> None:
    graph = Graph.from_edges([0, 1], [1, 0], np.eye(2), [0, 1], num_classes=2)
    with pytest.raises(GraphError, match="directed=True or directed=False"):
        parse_level(level).split(graph)
    parse_level(level).split(Graph.from_edges([0, 1], [1, 0], np.eye(2), [0, 1], num_classes=2, directed=False))
    parse_level(level).split(graph.to_undirected())


def test_entries_that_stand_alone_have_no_direction_to_find() -> None:
    """On the owned basis every entry is its source's own, so that nothing depends on what was found."""
    graph = Graph.from_edges([0, 1], [1, 0], np.eye(2), [0, 1], num_classes=2)
    parse_level("node").split(graph)


def test_a_person_who_is_like_nobody_changes_no_fact() -> None:
    """The neighbour with a label, a town and an age of its own has the same public part, or is refused."""
    schema = Schema(
        (Column("age", "numeric", range=(0, 9)), Column("town", "category", categories=("x", "y"), other=True)),
        classes=("p", "q"),
    )
    odd = NODES.assign(age=[1.0, 2.0, 1e6], town=["x", "y", "elsewhere"], label=["p", "q", "q"])
    level = parse_level("node")
    one, two = (level.split(from_pandas(EDGES, nodes, schema=schema))[0] for nodes in (NODES, odd))
    assert one.facts == two.facts
    assert one.feature_names == two.feature_names
    assert one.schema == two.schema


@pytest.mark.parametrize("sparse", [False, True])
def test_keys_of_large_features_tell_every_byte_and_know_those_of_earlier_releases(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = np.arange(1, 41, dtype=np.float32).reshape(10, 4)

    def part_of(given: np.ndarray) -> parts.PublicPart:
        held = sp.csr_array(given) if sparse else given
        graph = Graph.from_edges([0], [1], held, np.zeros(10, dtype=np.int64), num_classes=2, directed=False)
        return parse_level("edge").split(graph)[0]

    earlier = parts.public_key(part_of(features))
    monkeypatch.setattr(parts, "HASHED_AT_ONCE", 24)
    whole = part_of(features)
    assert parts.has_key(whole, earlier)
    assert parts.GraphKeys([b"another", earlier]).find(whole) == 1
    keys = {parts.public_key(whole)}
    for place in np.ndindex(*features.shape):
        other = features.copy()
        other[place] += 1
        keys.add(parts.public_key(part_of(other)))
        assert not parts.has_key(part_of(other), earlier)
    assert len(keys) == 1 + features.size
    assert parts.public_key(part_of(features.reshape(5, 8).repeat(2, axis=0))) not in keys


@pytest.mark.parametrize("labels", [[0, 1, 2, 255], [1, 1, -1, 9]])
def test_class_numbers_that_hardly_occur_are_not_learned_unless_declared(labels: list[int]) -> None:
    def public_part(**declared: int) -> parts.PublicPart:
        graph = Graph.from_edges([0, 1], [1, 2], np.eye(4), labels, directed=False, **declared)
        return parse_level("edge").split(graph)[0]

    with pytest.raises(GraphError, match=rf"if {labels[-1]} marks them.* num_classes={labels[-1] + 1} if"):
        parts.refuse_empty_classes(public_part())
    parts.refuse_empty_classes(public_part(num_classes=300))
    private = Graph.from_edges([0, 1], [1, 2], np.eye(4), labels, directed=False, num_classes=300)
    parts.refuse_empty_classes(parse_level("node").split(private)[0])  # which holds no label to look at


def test_class_numbers_with_few_gaps_are_learned() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], np.eye(4), [1, 2, 4, -1], directed=False)
    for known in (graph, graph.with_labels(np.full(4, -1))):  # an outline of a graph may hold no labels
        parts.refuse_empty_classes(parse_level("edge").split(known)[0])
