"""Bringing a graph to the classes and columns that a model was fitted on."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from discreet.errors import ParameterError
from discreet.graph.clean import UNLABELLED
from discreet.graph.graph import Graph, PublicFacts
from discreet.graph.schema import IGNORE, Column, Schema, shorten


def match_graph(graph: Graph, schema: Schema, public: PublicFacts) -> Graph:
    """The graph with the model's classes, and with its features in the model's order.

    Columns are matched by name where both sides have names; one that is missing or too many is refused. Labels are
    matched by class name; a graph without labels is normal. Nothing here reads features or edges.
    """
    _check_encoding(graph, schema)
    _check_weights(graph, public)
    return _match_classes(_match_features(graph, schema, public), schema, public)


def _check_encoding(graph: Graph, schema: Schema) -> None:
    if schema.columns is None or graph.schema is None or graph.schema.columns is None:
        return
    ours, theirs = (_read_columns(each.columns) for each in (schema, graph.schema))
    if ours == theirs:
        return
    missing = sorted({column.name for column in ours} - {column.name for column in theirs})
    if missing:
        raise ParameterError(f"the graph lacks columns that the model was fitted on: {shorten(missing)}")
    raise ParameterError(
        "the graph was read from a table by another schema than the model's: read it with schema=model.schema_, "
        "so that ranges and categories are those of training"
    )


def _read_columns(columns: tuple[Column, ...] | None) -> set[Column]:
    """Those that give features: what else a table holds is no matter."""
    return {column for column in columns or () if column.kind != IGNORE}


def _check_weights(graph: Graph, public: PublicFacts) -> None:
    if public.weighted and graph.edge_weights is None:
        raise ParameterError("the model was fitted on edges with weights, and those of this graph have none")
    if graph.edge_weights is not None and not public.weighted:
        raise ParameterError(
            "the model was fitted on edges without weights, and those of this graph have some: read it without them "
            "(--column weights=ignore, graph.without_weights() in Python)"
        )


def _match_features(graph: Graph, schema: Schema, public: PublicFacts) -> Graph:
    wanted, held = schema.features, graph.feature_names
    if wanted is not None and held is not None and wanted != held:
        missing, extra = [n for n in wanted if n not in set(held)], [n for n in held if n not in set(wanted)]
        said = ([f"it lacks {shorten(missing)}"] if missing else []) + ([f"it has {shorten(extra)}"] if extra else [])
        if said:
            raise ParameterError(f"the graph does not have the features of the model: {'; '.join(said)}")
        place = {name: at for at, name in enumerate(held)}
        order = np.array([place[name] for name in wanted])
        moved = graph.features[:, order]
        return graph._derive(features=sp.csr_array(moved) if sp.issparse(moved) else moved, feature_names=wanted)
    held_features = graph.public.num_features
    if held_features != public.num_features:
        raise ParameterError(f"the model was fitted on {public.num_features} features, the graph has {held_features}")
    return graph


def _match_classes(graph: Graph, schema: Schema, public: PublicFacts) -> Graph:
    """Class names are the model's; a node whose label the model does not know counts as unlabelled."""
    wanted, held = schema.classes, graph.class_names
    if graph.num_classes == public.num_classes and (held == wanted or wanted is None or held is None):
        return graph
    labels = graph.labels
    if wanted is not None and held is not None:
        place = {name: at for at, name in enumerate(wanted)}
        moved = np.array([*(place.get(name, UNLABELLED) for name in held), UNLABELLED], dtype=np.int64)
        labels = moved[labels]
    labels = np.where(labels < public.num_classes, labels, UNLABELLED)
    return graph._derive(labels=labels, num_classes=public.num_classes, class_names=wanted)
