"""Link stealing (He et al. 2021): linked nodes get similar predictions, so similar predictions betray links."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from discreet.arrays import BoolArray, FloatArray
from discreet.attacks.pairs import Pairs, balanced_pairs, distances
from discreet.attacks.rates import Rates, rates_of
from discreet.graph.graph import Graph


def from_predictions(rows: FloatArray, pairs: Pairs) -> Rates:
    """Predictions alone: the mean rank over eight distances, closest first."""
    return rates_of(-_mean_rank(distances(rows[pairs.first], rows[pairs.second])), pairs.linked)


def with_features(rows: FloatArray, graph: Graph, pairs: Pairs) -> Rates:
    """Predictions and features: ranks of both together. Like links to like, so features alone say something too."""
    of_rows = _mean_rank(distances(rows[pairs.first], rows[pairs.second]))
    return rates_of(-(rankdata(of_rows) + rankdata(_feature_distance(graph, pairs))), pairs.linked)


def with_known_links(rows: FloatArray, graph: Graph, wanted: int, rng: np.random.Generator) -> Rates:
    """An attacker who knows all links among a random half of the nodes, and learns from these what links look like.

    Pairs of the other half are attacked.
    """
    order = rng.permutation(graph.num_nodes)
    known, attacked = (
        balanced_pairs(graph, wanted, rng, half) for half in (order[: len(order) // 2], order[len(order) // 2 :])
    )
    model = _learned(_pair_features(rows, graph, known), known.linked)
    return rates_of(model.predict_proba(_pair_features(rows, graph, attacked))[:, 1], attacked.linked)


def with_shadow(
    rows: FloatArray, graph: Graph, pairs: Pairs, shadow_rows: FloatArray, shadow: Graph, known: Pairs
) -> Rates:
    """An attacker who has another graph with its links, and a model of the same kind that was trained on it."""
    model = _learned(_pair_features(shadow_rows, shadow, known), known.linked)
    return rates_of(model.predict_proba(_pair_features(rows, graph, pairs))[:, 1], pairs.linked)


def _learned(features: FloatArray, linked: BoolArray):  # type: ignore[no-untyped-def]
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import QuantileTransformer

    scaled = QuantileTransformer(n_quantiles=min(200, len(features)), output_distribution="normal")
    return make_pipeline(scaled, LogisticRegression(max_iter=1000)).fit(features, linked)


def _pair_features(rows: FloatArray, graph: Graph, pairs: Pairs) -> FloatArray:
    """Distances of predictions and of features, and four ways to put the two entropies together."""
    entropy = -(rows * np.log(np.maximum(rows, 1e-12))).sum(axis=1)
    one, two = entropy[pairs.first], entropy[pairs.second]
    together = np.column_stack([(one + two) / 2, one * two, np.abs(one - two), (one - two) ** 2])
    of_rows = distances(rows[pairs.first], rows[pairs.second])
    return np.column_stack([of_rows, together, _feature_distance(graph, pairs)])


def _feature_distance(graph: Graph, pairs: Pairs) -> FloatArray:
    """One minus the cosine of the features."""
    features = sp.csr_array(graph.features, dtype=np.float64)
    one, two = features[pairs.first], features[pairs.second]
    norms = np.sqrt(_squares(one) * _squares(two))
    product = np.asarray(one.multiply(two).sum(axis=1)).ravel()
    found: FloatArray = 1 - product / np.maximum(norms, 1e-12)
    return found


def _squares(rows: sp.csr_array) -> FloatArray:
    return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()


def _mean_rank(columns: FloatArray) -> FloatArray:
    ranks: FloatArray = rankdata(columns, axis=0).mean(axis=1)
    return ranks
