"""How well a fitted model predicts: every metric on every mask, from one pass of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.arrays import Array, IntArray
from discreet.graph.graph import MASKS, Graph
from discreet.graph.parts import LABELS
from discreet.methods.base import NodeClassifier
from discreet.methods.metrics import METRICS, class_scores, confusion, majority, measure, number_or_none

COVERED = "figures are computed from covered predictions and public labels: the guarantee covers them"
UNPROTECTED = "level none promises nothing: figures are as open as the model"
RESEARCH = "figures read private data: for the holder's eyes, outside every guarantee"
WITHHELD = (
    "labels are private at this level: figures of them are for the holder's eyes and are not shown; "
    "--private-figures shows them"
)
FIGURES = (
    *("classes", *(metric.replace("-", "_") for metric in METRICS)),
    *("majority", "by_class", "confusion", "warnings"),
)
"""What :func:`figures_of_fit` gives, in its order."""


def evaluate(estimator: NodeClassifier, graph: Graph) -> dict[str, dict[str, Any]]:
    """``{metric: {mask: figure}}``; under ``majority`` the accuracy of naming the commonest training class throughout;
    under ``by_class`` and ``confusion`` how each class fares on the test nodes.

    Masks without a labelled node are left out; a metric that is not defined is None. Where :func:`are_covered` does not
    hold these are research figures: they read private labels, or predictions outside the guarantee.
    """
    probabilities = estimator.predict_proba(graph, audience="owner", uncovered=not are_covered(estimator, graph))
    masks = {name: getattr(graph, f"{name}_mask") for name in MASKS}
    chosen = {name: mask & (graph.labels >= 0) for name, mask in masks.items() if mask is not None}
    pairs = {name: (graph.labels[ids], probabilities[ids]) for name, ids in chosen.items() if ids.any()}
    figures: dict[str, dict[str, Any]] = {
        metric: {name: number_or_none(measure(metric, *pair)) for name, pair in pairs.items()} for metric in METRICS
    }
    known: IntArray = pairs["train"][0] if "train" in pairs else np.empty(0, dtype=np.int64)
    figures["majority"] = {name: majority(known, labels) for name, (labels, _) in pairs.items()}
    test = {name: pair for name, pair in pairs.items() if name == "test"}
    names = class_names(estimator, graph)
    figures["by_class"] = {name: class_scores(*pair, names) for name, pair in test.items()}
    figures["confusion"] = {name: _table(*pair).tolist() for name, pair in test.items()}
    return figures


def are_covered(estimator: NodeClassifier, graph: Graph) -> bool:
    """Whether figures are a function of the release and of what is public: covered predictions, public labels."""
    level = estimator._checked_privacy().level
    if LABELS in level.private or estimator.covers != "weights+predictions":
        return False
    return estimator._uncovered(level.split(graph)[0]) is None


def class_names(estimator: NodeClassifier, graph: Graph) -> list[str]:
    """The names of the classes, in the order of their numbers."""
    return [str(name) for name in (estimator.classes_ if graph.class_names is None else graph.class_names)]


def warnings_of(figures: Mapping[str, Any]) -> list[str]:
    """What a good accuracy can hide on the test nodes: classes never predicted, no gain over naming one class."""
    if "test" not in figures["accuracy"]:
        return []
    found, rows = [], figures["by_class"]["test"]
    missed = [row["name"] for row in rows if row["nodes"] and not row["predicted"]]
    if missed:
        there = sum(row["nodes"] > 0 for row in rows)
        found.append(f"{len(missed)} of {there} classes are never predicted on the test nodes: {_listed(missed)}")
    if figures["accuracy"]["test"] <= figures["majority"]["test"]:
        found.append("accuracy on the test nodes is no better than naming the commonest class throughout")
    return found


def figures_of_fit(estimator: NodeClassifier, graph: Graph, *, private: bool) -> dict[str, Any]:
    """Figures by the names that ``discreet train`` reports, and a note on who may see them.

    Where labels are private they are None, unless ``private`` asks for them.
    """
    level = estimator._checked_privacy().level
    if LABELS in level.private and not private:
        return {**dict.fromkeys(FIGURES), "note": WITHHELD}
    found: dict[str, Any] = {name.replace("-", "_"): figure for name, figure in evaluate(estimator, graph).items()}
    found = {"classes": class_names(estimator, graph), **found}
    found["warnings"] = warnings_of(found)
    covered = COVERED if are_covered(estimator, graph) else RESEARCH
    return {**found, "note": UNPROTECTED if level.kind == "none" else covered}


def report_of_fit(estimator: NodeClassifier, graph: Graph, *, private_figures: bool = True) -> dict[str, Any]:
    """What was fitted, what it spent, and how well it does: what ``discreet train`` reports."""
    certificate, plan = estimator.certificate_, estimator.plan_
    return {
        "data": graph.name,
        "method": estimator.method,
        "level": certificate["level"]["spec"],
        "epsilon": plan.privacy.epsilon,
        "delta": plan.delta,
        "epsilon_spent": estimator.epsilon_spent_,
        "accounting": certificate["accounting"],
        **figures_of_fit(estimator, graph, private=private_figures),
        "seconds": estimator.fit_seconds_,
        "peak_rss_mb": _peak_mb(),
        "covers": certificate["covers"]["name"],
    }


def _table(labels: IntArray, probabilities: Array) -> IntArray:
    return confusion(labels, probabilities.argmax(axis=1), probabilities.shape[1])


def _listed(names: list[str], most: int = 5) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _peak_mb() -> float | None:
    """Peak resident memory of this process; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
