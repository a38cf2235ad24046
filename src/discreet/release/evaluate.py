"""How well a fitted model predicts: every metric on every mask, from one pass of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.arrays import Array, BoolArray, IntArray
from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.convert import as_graph
from discreet.graph.graph import MASKS, Graph
from discreet.graph.parts import FEATURES, LABELS
from discreet.limits import shown
from discreet.methods.base import NodeClassifier
from discreet.methods.baselines.mlp import MLPClassifier
from discreet.methods.metrics import METRICS, class_scores, confusion, majority, measure, number_or_none
from discreet.privacy.certificate import UNVERIFIED
from discreet.privacy.plan import Plan
from discreet.queries.confusion import chosen_ids

COVERED = "figures are computed from covered predictions and public labels: the guarantee covers them"
UNPROTECTED = "level none promises nothing: figures are as open as the model"
RESEARCH = "research only: figures read private data, for the holder's eyes and outside every guarantee"
WITHHELD = (
    "labels are private at this level: figures of them are for the holder's eyes and are not shown; "
    "--private-figures shows them"
)
OUT_OF_REACH = (
    "a prediction reads its node's own edges, and those of this graph lie in partitions: discreet evaluate measures "
    "the release on the whole graph"
)
RARE = " (docs/guides/imbalance.md: class_weight and thresholds)"
FIGURES = (
    *("classes", *(metric.replace("-", "_") for metric in METRICS)),
    *("majority", "by_class", "confusion", "warnings"),
)
"""What :func:`figures_of_fit` gives, in its order."""


def evaluate(estimator: NodeClassifier, graph: Graph, ids: str | None = None) -> dict[str, dict[str, Any]]:
    """``{metric: {mask: figure}}``; under ``majority`` the accuracy of naming the commonest training class throughout;
    under ``by_class`` and ``confusion`` how each class fares on the test nodes.

    ``ids`` asks for one mask alone, or for ``all`` nodes. Masks without a labelled node are left out; a metric that is
    not defined is None. Where :func:`are_covered` does not hold these are research figures: they read private labels,
    or predictions outside the guarantee.
    """
    graph = with_classes_of(estimator, graph)
    return _measured(estimator, graph, ids, covered=are_covered(estimator, graph))


def _measured(estimator: NodeClassifier, graph: Graph, ids: str | None, *, covered: bool) -> dict[str, dict[str, Any]]:
    probabilities = estimator.predict_proba(graph, audience="owner", uncovered=not covered)
    pairs = {name: (graph.labels[chosen], probabilities[chosen]) for name, chosen in _labelled(graph, ids).items()}
    figures: dict[str, dict[str, Any]] = {
        metric: {name: number_or_none(measure(metric, *pair)) for name, pair in pairs.items()} for metric in METRICS
    }
    known = np.empty(0, dtype=np.int64) if graph.train_mask is None else graph.labels[graph.train_mask]
    figures["majority"] = {name: majority(known[known >= 0], labels) for name, (labels, _) in pairs.items()}
    detailed = {name: pair for name, pair in pairs.items() if name == (ids or "test")}
    names = class_names(estimator)
    figures["by_class"] = {name: class_scores(*pair, names) for name, pair in detailed.items()}
    figures["confusion"] = {name: _table(*pair).tolist() for name, pair in detailed.items()}
    return figures


def _labelled(graph: Graph, ids: str | None) -> dict[str, BoolArray]:
    """The labelled nodes of every mask, or of one; none without such nodes."""
    if ids is not None:
        masks = {ids: chosen_ids(graph, ids)}
    else:
        given = {name: getattr(graph, f"{name}_mask") for name in MASKS}
        masks = {name: mask for name, mask in given.items() if mask is not None}
    found = {name: mask & (graph.labels >= 0) for name, mask in masks.items()}
    return {name: mask for name, mask in found.items() if mask.any()}


def are_covered(estimator: NodeClassifier, graph: Graph) -> bool:
    """Whether figures are a function of the release and of what is public: covered predictions, public labels."""
    if LABELS in estimator.checked_privacy().level.private or estimator.covers != "weights+predictions":
        return False
    return not is_another_graph(estimator, graph)


def is_another_graph(estimator: NodeClassifier, graph: Graph) -> bool:
    """Whether the release says that it was not made for this graph; one whose predictions read no edge never does."""
    return estimator._uncovered_on(with_classes_of(estimator, graph)) is not None


def with_classes_of(estimator: NodeClassifier, graph: Graph) -> Graph:
    """The graph as the model reads it; a class that the model does not know is refused, for it cannot be met."""
    if not isinstance(estimator, NodeClassifier):
        raise ParameterError(f"a fitted model is wanted, not {shown(estimator)}")
    estimator._check_fitted()
    graph = graph if isinstance(graph, Graph) else as_graph(graph)
    known = estimator.schema_.classes
    unknown = [name for name in graph.class_names or () if known is not None and name not in known]
    if unknown and known is not None:
        raise ParameterError(
            f"the data has classes that the model does not know: {listed(unknown)} (it knows {listed(known)})"
        )
    return estimator._matched(graph)


def class_names(estimator: NodeClassifier) -> list[str]:
    """The names of the classes, in the order of their numbers."""
    return [str(name) for name in estimator.classes_]


def warnings_of(figures: Mapping[str, Any]) -> list[str]:
    """What a good accuracy can hide: classes that are never predicted, no gain over naming one class."""
    name = next(iter(figures["by_class"]), None)
    if name is None:
        return []
    found, rows, where = [], figures["by_class"][name], "labelled nodes" if name == "all" else f"{name} nodes"
    missed = [row["name"] for row in rows if row["nodes"] and not row["predicted"]]
    if missed:
        there = sum(row["nodes"] > 0 for row in rows)
        found.append(f"{len(missed)} of {there} classes are never predicted on the {where}: {listed(missed)}{RARE}")
    if figures["accuracy"][name] <= figures["majority"][name]:
        found.append(f"accuracy on the {where} is no better than naming the commonest class throughout")
    return found


def figures_of_fit(estimator: NodeClassifier, graph: Graph, *, private: bool, ids: str | None = None) -> dict[str, Any]:
    """Figures by the names that ``discreet train`` reports, and a note on who may see them.

    Where labels are private they are None, unless ``private`` asks for them.
    """
    level = estimator.checked_privacy().level
    if LABELS in level.private and not private:
        return {**dict.fromkeys(FIGURES), "note": WITHHELD}
    graph = with_classes_of(estimator, graph)
    covered = are_covered(estimator, graph)
    if not covered and graph.in_blocks:
        return {**dict.fromkeys(FIGURES), "note": OUT_OF_REACH}
    figures = _measured(estimator, graph, ids, covered=covered)
    found = {"classes": class_names(estimator), **{name.replace("-", "_"): value for name, value in figures.items()}}
    found["warnings"] = warnings_of(found)
    note = UNPROTECTED if level.kind == "none" else COVERED if covered else RESEARCH
    return {**found, "note": note}


def check_features_alone(estimator: NodeClassifier) -> None:
    """Refuse :func:`features_alone` where ``mlp`` would read private data without noise."""
    level = estimator.checked_privacy().level
    if level.private & {FEATURES, LABELS}:
        raise UnsupportedError(
            f"mlp reads features and labels without noise, and level {level.kind} protects them: leave --beside-mlp out"
        )


def features_alone(estimator: NodeClassifier, graph: Graph, ids: str | None = None) -> dict[str, dict[str, Any]]:
    """``{metric: {mask: figure}}`` of ``mlp`` with its defaults on the same split: what the edges have to add to.

    It reads public features and labels and no edge, so it costs nothing but time.
    """
    check_features_alone(estimator)
    baseline = MLPClassifier(estimator.privacy, random_state=estimator.random_state).fit(graph)
    figures = evaluate(baseline, graph, ids)
    return {metric.replace("-", "_"): figures[metric] for metric in METRICS}


def report_of_fit(estimator: NodeClassifier, graph: Graph, *, private_figures: bool = True) -> dict[str, Any]:
    """What was fitted, what it spent, and how well it does: what ``discreet train`` reports."""
    certificate, plan = estimator.certificate_, estimator.plan_
    return {
        "data": graph.name,
        "method": estimator.method,
        "level": certificate["level"]["spec"],
        "epsilon": plan.privacy.epsilon,
        "delta": plan.delta,
        **spent_by(plan),
        **figures_of_fit(estimator, graph, private=private_figures),
        "seconds": estimator.fit_seconds_,
        "peak_rss_mb": _peak_mb(),
        "covers": certificate["covers"]["name"],
    }


def spent_by(plan: Plan) -> dict[str, Any]:
    """What a fit spent, and whether that is proved; as published, what the paper claims beside what can be proved."""
    if plan.claim is None:
        return {"epsilon_spent": plan.epsilon, "accounting": plan.accounting, "verified": True}
    proved = min(plan.spend().values(), default=0.0)
    return {
        "epsilon_spent": proved,
        "accounting": plan.accounting,
        "verified": False,
        "claim": {"epsilon": plan.claim.epsilon, "by": plan.claim.formulas, "status": UNVERIFIED},
        "epsilon_proved": proved,
    }


def _table(labels: IntArray, probabilities: Array) -> IntArray:
    return confusion(labels, probabilities.argmax(axis=1), probabilities.shape[1])


MOST_LISTED = 5
"""Names that fit into a sentence."""


def listed(names: Sequence[str]) -> str:
    """Names in words, the first few of them."""
    more = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _peak_mb() -> float | None:
    """Peak resident memory of this process; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
