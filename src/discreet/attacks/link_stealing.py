"""Link stealing (He et al. 2021): linked nodes get similar predictions, so similar predictions betray links."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from discreet.arrays import BoolArray, FloatArray
from discreet.attacks.pair_features import everything, feature_distance, known_structure, likeness
from discreet.attacks.pairs import Pairs, balanced_pairs, distances, pairs_of, undirected_keys
from discreet.attacks.rates import Rates, rates_of
from discreet.graph.graph import Graph

LEARNT_FROM = 20_000
"""Known links that the attack learns from, at most: more change little, and cost memory."""


def from_predictions(rows: FloatArray, pairs: Pairs) -> Rates:
    """Predictions alone: the mean rank over eight distances, closest first."""
    return rates_of(-_mean_rank(distances(rows[pairs.first], rows[pairs.second])), pairs.linked)


def with_features(rows: FloatArray, graph: Graph, pairs: Pairs) -> Rates:
    """Predictions and features: ranks of both together. Like links to like, so features alone say something too."""
    of_rows = _mean_rank(distances(rows[pairs.first], rows[pairs.second]))
    return rates_of(-(rankdata(of_rows) + rankdata(feature_distance(graph, pairs))), pairs.linked)


def with_known_nodes(rows: FloatArray, graph: Graph, wanted: int, rng: np.random.Generator) -> Rates:
    """An attacker who knows all links among a random half of the nodes, and learns from these what links look like.

    Pairs of the other half are attacked, of which no link is known.
    """
    order = rng.permutation(graph.num_nodes)
    known = balanced_pairs(graph, LEARNT_FROM, rng, order[: len(order) // 2])
    attacked = balanced_pairs(graph, wanted, rng, order[len(order) // 2 :])
    model = _fit_trees(everything(rows, graph, known), known.linked)
    return rates_of(model.predict_proba(everything(rows, graph, attacked))[:, 1], attacked.linked)


def with_known_links(rows: FloatArray, graph: Graph, wanted: int, rng: np.random.Generator) -> Rates:
    """An attacker who knows a random half of all links (the partial graph of He et al.), and attacks the other half.

    Known links say much by themselves: who has many, and who shares neighbours. ``links_alone`` in the result is what
    the same attacker reaches without the model and without features.
    """
    n = graph.num_nodes
    keys = rng.permutation(undirected_keys(graph))
    known_keys = keys[: len(keys) // 2]
    known, attacked = (
        pairs_of(graph, half, size, rng)
        for half, size in ((known_keys, LEARNT_FROM), (keys[len(known_keys) :], wanted))
    )
    ends = np.concatenate([known_keys // n, known_keys % n]), np.concatenate([known_keys % n, known_keys // n])
    links = sp.csr_array((np.ones(len(ends[0])), ends), shape=(n, n))
    taught = known_structure(links, known, known.linked.astype(np.float64))
    asked = known_structure(links, attacked, np.zeros(len(attacked.linked)))
    alone = rates_of(_fit_trees(taught, known.linked).predict_proba(asked)[:, 1], attacked.linked)
    model = _fit_trees(np.column_stack([taught, everything(rows, graph, known)]), known.linked)
    scores = model.predict_proba(np.column_stack([asked, everything(rows, graph, attacked)]))[:, 1]
    return rates_of(scores, attacked.linked, links_alone=alone.auc)


def with_shadow(
    rows: FloatArray, graph: Graph, pairs: Pairs, shadow_rows: FloatArray, shadow: Graph, known: Pairs
) -> Rates:
    """An attacker who has another graph with its links, and a model of the same kind that was trained on it."""
    model = _fit_trees(likeness(shadow_rows, shadow, known), known.linked)
    return rates_of(model.predict_proba(likeness(rows, graph, pairs))[:, 1], pairs.linked)


def _fit_trees(features: FloatArray, linked: BoolArray):  # type: ignore[no-untyped-def]
    """Boosted trees: they ask nothing of the scale of a column, and learn in a second."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=200, learning_rate=0.06, random_state=0).fit(features, linked)


def _mean_rank(columns: FloatArray) -> FloatArray:
    ranks: FloatArray = rankdata(columns, axis=0).mean(axis=1)
    return ranks
