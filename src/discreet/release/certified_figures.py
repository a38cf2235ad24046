"""Figures of a model on private labels, released with noise and certified: one more query to the private graph."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from discreet.arrays import FloatArray
from discreet.errors import ParameterError, UncoveredReleaseError
from discreet.files import to_json
from discreet.graph.graph import Graph
from discreet.limits import BINS, SEED
from discreet.mechanisms.curator import Curator
from discreet.methods.base import NodeClassifier, versions
from discreet.methods.metrics import figures_of_table, roc_auc_of_bins
from discreet.privacy.budget import Privacy
from discreet.privacy.certificate import digest, make_certificate
from discreet.privacy.composition import composed_with
from discreet.privacy.plan import Plan, Stage, make_plan
from discreet.queries.confusion import ConfusionTable, ScoreTable, chosen_ids
from discreet.release.evaluate import class_names, with_classes_of

CONFUSION, SCORES = "confusion", "scores"
SCORE_BINS = 20
"""Bins of scores from which ROC-AUC comes: more would split the same counts under more noise."""
COVERS = {
    "name": "figures",
    "means": "the tables of counts in this file and every figure computed from them, whoever reads them",
}


def plan_figures(
    estimator: NodeClassifier,
    graph: Graph,
    epsilon: float,
    delta: float | Literal["auto"] = "auto",
    *,
    ids: str = "test",
    bins: int = SCORE_BINS,
) -> Plan:
    """What asking for the figures costs, from public facts alone; refused where there is no bound."""
    if BINS.check("bins", bins) == 1:
        raise ParameterError(f"bins must be 0 (no ROC-AUC) or at least 2, not {bins}")
    level = estimator.checked_privacy().level
    public, _ = level.split(graph)
    chosen_ids(graph, ids)
    classes, covers = estimator.public_.num_classes, estimator.covers
    drafts = [Stage.of(CONFUSION, ConfusionTable(level, covers, classes, ids))]
    if bins:
        drafts.append(Stage.of(SCORES, ScoreTable(level, covers, classes, ids, bins)))
    reason = estimator._uncovered(public)
    if reason is not None:
        raise UncoveredReleaseError(f"{estimator.method}: {reason}")
    return make_plan(estimator.method, Privacy(level, epsilon, delta), public.num_nodes, drafts, covers)


def certified_figures(
    estimator: NodeClassifier,
    graph: Graph,
    epsilon: float,
    delta: float | Literal["auto"] = "auto",
    *,
    ids: str = "test",
    bins: int = SCORE_BINS,
    insecure_noise_seed: int | None = None,
) -> dict[str, Any]:
    """Noisy tables of labels against predictions, the figures that follow from them, and their certificate.

    Guarantee: for somebody in this graph who was not trained on, what is returned costs ``epsilon`` at the
    certificate's δ. For somebody who was, release and figures together cost what ``composed`` says.
    """
    if insecure_noise_seed is not None:
        SEED.check("insecure_noise_seed", insecure_noise_seed)
    graph = with_classes_of(estimator, graph)
    plan = plan_figures(estimator, graph, epsilon, delta, ids=ids, bins=bins)
    public, private = plan.privacy.level.split(graph)
    curator = Curator.with_fresh_noise(plan, [private], insecure_seed=insecure_noise_seed)
    confusion = curator.ask(CONFUSION, model=estimator)
    scores = curator.ask(SCORES, model=estimator) if bins else None
    curator.finish()
    certificate = make_certificate(
        plan,
        [public.facts],
        noise=curator.noise_description,
        for_release=curator.for_release,
        spent=curator.spent,
        versions=versions(),
    )
    certificate |= {"task": "figures of a released model", "covers": COVERS, "duties": []}
    return {
        "classes": class_names(estimator),
        "nodes": ids,
        **_figures(plan, confusion, scores),
        "composed": composed_with(estimator.certificate_, certificate),
        "certificate": certificate,
    }


def as_file(figures: Mapping[str, Any]) -> str:
    """The figures as JSON text, with a digest of all of it."""
    content: dict[str, Any] = to_json(dict(figures))
    return json.dumps({**content, "digest": digest(content)}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _figures(plan: Plan, confusion: FloatArray, scores: FloatArray | None) -> dict[str, Any]:
    found: dict[str, Any] = {**figures_of_table(confusion), "confusion": confusion.tolist()}
    found["noise_on_counts"] = plan.stage(CONFUSION).noise_std
    if scores is not None:
        query = plan.stage(SCORES).query
        assert isinstance(query, ScoreTable)
        areas = [
            roc_auc_of_bins(table[label], table.sum(axis=0) - table[label])
            for label, table in zip(query.scored, scores, strict=True)
        ]
        known = [area for area in areas if area is not None]
        found |= {"roc_auc": sum(known) / len(known) if known else None, "scores": scores.tolist()}
    return found
