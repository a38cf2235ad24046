"""What leaves a fit, compared between two neighbours whose stages all answered the same: it must be identical."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.arrays import BoolArray, SingleArray
from discreet.audit.fingerprints import fingerprint, form
from discreet.audit.left_behind import watched
from discreet.audit.small_graphs import small_graph
from discreet.audit.words import recorded_words
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.privacy.release_folder import WEIGHTS, release_files

TIMES = ("fit_seconds_",)
"""What a fitted estimator holds and no two fits share: how long they took (see the page on sharp edges)."""


def differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """The names under which two sets of values differ, in bytes, type or shape, or which only one has."""
    names = sorted({*one, *two})
    return [name for name in names if name not in one or name not in two or _differ(one[name], two[name])]


def _differ(one: Any, two: Any) -> bool:
    if one is two:
        return False
    if type(one) is type(two) is np.ndarray and one.dtype != object:  # the common case, at every step of a fit
        return one.dtype != two.dtype or one.shape != two.shape or one.tobytes() != two.tobytes()
    return fingerprint(one) != fingerprint(two)


def fitted_attributes(estimator: NodeClassifier) -> dict[str, Any]:
    """What a fitted estimator holds, times apart."""
    return {name: value for name, value in vars(estimator).items() if name not in TIMES}


def words_faults(one: Sequence[str], two: Sequence[str]) -> list[str]:
    """What was said on one side and not on the other."""
    if list(one) == list(two):
        return []
    apart = [sentence for sentence in (*one, *two) if (sentence in one) != (sentence in two)] or ["how often"]
    return [f"what is said depends on private data: {apart[0].strip()}"]


def release_faults(
    first: NodeClassifier, second: NodeClassifier, graphs: Sequence[Graph], neighbors: Sequence[Graph]
) -> Iterator[str]:
    """Everything that leaves and differs: weights, caches, certificate, configuration, card, covered predictions, and
    whatever else the fitted estimators hold or say.
    """
    for name in differences(first._state(), second._state()):
        yield f"{name} of the release differs although every stage answered the same"
    for name in differences(fitted_attributes(first), fitted_attributes(second)):
        yield f"attribute {name} of the estimator differs although every stage answered the same"
    if first.certificate_ != second.certificate_:
        yield "the certificates differ"
    files = [release_files(fitted.certificate_, fitted._state(), fitted._config()) for fitted in (first, second)]
    for name in files[0]:
        if name != WEIGHTS and files[0][name] != files[1][name]:
            yield f"{name} of the release differs although every stage answered the same"
    if (repr(first), first._repr_html_()) != (repr(second), second._repr_html_()):
        yield "how the estimator shows itself differs although every stage answered the same"
    for graph, neighbor in zip(graphs, neighbors, strict=True):
        yield from _prediction_faults(first, second, graph, neighbor)


def _prediction_faults(first: NodeClassifier, second: NodeClassifier, graph: Graph, neighbor: Graph) -> Iterator[str]:
    if first.covers == "weights":
        return
    audience = "anyone" if first.covers == "weights+predictions" else "owner"
    with recorded_words() as words_on_graph:
        one = first.predict_proba(graph, audience=audience)
    with watched("prediction", second, again=True) as seen:
        two = second.predict_proba(neighbor, audience=audience)
    if _differ(first.predict_proba(graph, audience=audience), one):
        yield "predicting twice gives two answers, so something is drawn that no stage paid for"
    fault = _rows_fault(first, one, two, graph, neighbor)
    if fault is not None:
        yield fault
    yield from (*seen.faults, *words_faults(words_on_graph, seen.words))


def public_graph_faults(first: NodeClassifier, second: NodeClassifier, graph: Graph) -> Iterator[str]:
    """What two releases of the same weights say of a graph that is public: the same, whatever is covered."""
    public = _public_graph(graph.num_features, graph.num_classes, graph.directed)
    answers, words = [], []
    for fitted in (first, second):
        with recorded_words() as said:
            answers.append(_answer_or_refusal(fitted, public))
        words.append(said)
    if _differ(*answers):
        yield "predictions on a public graph differ although every stage answered the same"
    yield from words_faults(*words)


def _answer_or_refusal(fitted: NodeClassifier, public: Graph) -> Any:
    """Some methods predict on their own graph alone."""
    try:
        return fitted.predict_proba(public, public=True)
    except Exception as error:  # whatever it is, it must be the same on both sides
        return type(error).__qualname__, str(error)


@lru_cache(maxsize=8)
def _public_graph(num_features: int, num_classes: int, directed: bool) -> Graph:
    """A graph that has nothing to do with the audited ones."""
    rng = np.random.default_rng(0)
    return small_graph(
        rng, directed=directed, num_features=num_features, num_classes=num_classes, num_nodes=num_classes + 3
    )


def _rows_fault(first: NodeClassifier, one: SingleArray, two: SingleArray, graph: Graph, neighbor: Graph) -> str | None:
    if form(one) != form(two):
        return f"predictions are {form(one)} on one side and {form(two)} on the other"
    apart = np.array([a.tobytes() != b.tobytes() for a, b in zip(one, two, strict=True)])
    if first.covers == "weights+predictions" and apart.any():
        return "covered predictions differ although every stage answered the same"
    if first.covers == "weights+others-predictions" and (apart & ~_changed_records(graph, neighbor)).any():
        return "the prediction of another node differs although every stage answered the same"
    if first.covers == "own-prediction" and (apart & ~_ends_of_changes(graph, neighbor)).any():
        return "the own prediction of a node differs though none of its edges does"
    return None


def _ends_of_changes(graph: Graph, neighbor: Graph) -> BoolArray:
    """Nodes at which an edge was added, removed or weighed anew: they may see it."""
    changed = (graph.weighted_adjacency != neighbor.weighted_adjacency).tocoo()
    touched = np.zeros(graph.num_nodes, dtype=np.bool_)
    touched[changed.row] = touched[changed.col] = True
    return touched


def _changed_records(graph: Graph, neighbor: Graph) -> BoolArray:
    """Where features or labels differ: at the protected node alone."""
    one, two = (g.features if isinstance(g.features, np.ndarray) else g.features.toarray() for g in (graph, neighbor))
    return (one != two).any(axis=1) | (graph.labels != neighbor.labels)
