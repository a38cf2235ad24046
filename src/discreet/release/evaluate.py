"""How well a fitted model predicts: every metric on every mask, from one pass of predictions."""

from __future__ import annotations

from typing import Any

from discreet.graph.graph import MASKS, Graph
from discreet.methods.base import NodeClassifier
from discreet.methods.metrics import METRICS, class_scores, measure


def evaluate(estimator: NodeClassifier, graph: Graph) -> dict[str, dict[str, Any]]:
    """``{metric: {mask: figure}}``, and under ``by_class`` how each class fares on the test nodes.

    Masks without a labelled node are left out. These are research figures: they read private labels and predictions
    that the guarantee may not cover.
    """
    predicted = estimator.predict_proba(graph, audience="owner", uncovered=True).argmax(axis=1)
    masks = {name: getattr(graph, f"{name}_mask") for name in MASKS}
    chosen = {name: mask & (graph.labels >= 0) for name, mask in masks.items() if mask is not None}
    pairs = {name: (graph.labels[ids], predicted[ids]) for name, ids in chosen.items() if ids.any()}
    figures: dict[str, dict[str, Any]] = {
        metric: {name: measure(metric, *pair) for name, pair in pairs.items()} for metric in METRICS
    }
    figures["by_class"] = {name: class_scores(*pair) for name, pair in pairs.items() if name == "test"}
    return figures


def report_of_fit(estimator: NodeClassifier, graph: Graph) -> dict[str, Any]:
    """What was fitted, what it spent, and how well it does: what ``discreet train`` reports."""
    certificate, plan, figures = estimator.certificate_, estimator.plan_, evaluate(estimator, graph)
    return {
        "data": graph.name,
        "method": estimator.method,
        "level": certificate["level"]["spec"],
        "epsilon": plan.privacy.epsilon,
        "delta": plan.delta,
        "epsilon_spent": estimator.epsilon_spent_,
        "accounting": certificate["accounting"],
        "accuracy": figures["accuracy"],
        "by_class": figures["by_class"],
        "micro_f1": figures["micro-f1"],
        "macro_f1": figures["macro-f1"],
        "seconds": estimator.fit_seconds_,
        "peak_rss_mb": _peak_mb(),
        "covers": certificate["covers"]["name"],
    }


def _peak_mb() -> float | None:
    """Peak resident memory of this process; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
