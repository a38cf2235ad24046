"""What leaves a fit, compared between two neighbours whose stages all answered the same: it must be identical."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from discreet.arrays import Array, BoolArray
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.privacy.release_folder import WEIGHTS, release_files


def differences(one: Mapping[str, Array], two: Mapping[str, Array]) -> list[str]:
    """The names under which two sets of arrays differ, or which only one has."""
    names = sorted({*one, *two})
    return [name for name in names if name not in one or name not in two or not np.array_equal(one[name], two[name])]


def release_faults(
    first: NodeClassifier, second: NodeClassifier, graphs: Sequence[Graph], neighbors: Sequence[Graph]
) -> Iterator[str]:
    """Everything that leaves and differs: weights, caches, certificate, configuration, card, covered predictions."""
    for name in differences(first._state(), second._state()):
        yield f"{name} of the release differs although every stage answered the same"
    if first.certificate_ != second.certificate_:
        yield "the certificates differ"
    files = [release_files(fitted.certificate_, fitted._state(), fitted._config()) for fitted in (first, second)]
    for name in files[0]:
        if name != WEIGHTS and files[0][name] != files[1][name]:
            yield f"{name} of the release differs although every stage answered the same"
    for graph, neighbor in zip(graphs, neighbors, strict=True):
        fault = _prediction_fault(first, second, graph, neighbor)
        if fault is not None:
            yield fault


def _prediction_fault(first: NodeClassifier, second: NodeClassifier, graph: Graph, neighbor: Graph) -> str | None:
    if first.covers == "weights":
        return None
    audience = "anyone" if first.covers == "weights+predictions" else "owner"
    one, two = first.predict_proba(graph, audience=audience), second.predict_proba(neighbor, audience=audience)
    if not np.array_equal(first.predict_proba(graph, audience=audience), one):
        return "predicting twice gives two answers, so something is drawn that no stage paid for"
    apart = (one != two).any(axis=1)
    if first.covers == "weights+predictions" and apart.any():
        return "covered predictions differ although every stage answered the same"
    if first.covers == "weights+others-predictions" and (apart & ~_changed_records(graph, neighbor)).any():
        return "the prediction of another node differs although every stage answered the same"
    if first.covers == "own-prediction" and (apart & ~_ends_of_changes(graph, neighbor)).any():
        return "the own prediction of a node differs though none of its edges does"
    return None


def _ends_of_changes(graph: Graph, neighbor: Graph) -> BoolArray:
    """Nodes at which an edge was added or removed: they may see it."""
    changed = (graph.adjacency != neighbor.adjacency).tocoo()
    touched = np.zeros(graph.num_nodes, dtype=np.bool_)
    touched[changed.row] = touched[changed.col] = True
    return touched


def _changed_records(graph: Graph, neighbor: Graph) -> BoolArray:
    """Where features or labels differ: at the protected node alone."""
    one, two = (g.features if isinstance(g.features, np.ndarray) else g.features.toarray() for g in (graph, neighbor))
    return (one != two).any(axis=1) | (graph.labels != neighbor.labels)
