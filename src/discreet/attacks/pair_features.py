"""What an attacker computes of a pair of nodes to learn what links look like, from predictions, features and links."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from discreet.arrays import FloatArray
from discreet.attacks.pairs import TINY, Pairs, distances
from discreet.graph.graph import Graph

DIRECTIONS = 16
"""Directions of the features that vary most; more say little else about links and slow the learner."""
_LEAST = 1e-7
"""The least probability that single precision tells from nothing."""


def feature_distance(graph: Graph, pairs: Pairs) -> FloatArray:
    """One minus the cosine of the features."""
    features = sp.csr_array(graph.features, dtype=np.float64)
    one, two = features[pairs.first], features[pairs.second]
    norms = np.sqrt(_squares(one) * _squares(two))
    product = np.asarray(one.multiply(two).sum(axis=1)).ravel()
    found: FloatArray = 1 - product / np.maximum(norms, TINY)
    return found


def likeness(rows: FloatArray, graph: Graph, pairs: Pairs) -> FloatArray:
    """Distances of predictions and of features, and the two entropies together: columns that mean the same everywhere.

    What was learnt of them on one graph can be used on another with other classes and features.
    """
    entropy = -(rows * np.log(np.maximum(rows, TINY))).sum(axis=1, keepdims=True)
    apart = entropy[pairs.first] - entropy[pairs.second]
    together = np.column_stack([_combine_ends(entropy, pairs), apart**2])
    return np.column_stack([distances(rows[pairs.first], rows[pairs.second]), together, feature_distance(graph, pairs)])


def everything(rows: FloatArray, graph: Graph, pairs: Pairs) -> FloatArray:
    """:func:`likeness`, and predictions, log-odds and features of both ends put together entry by entry.

    Nodes with many links differ from nodes with few, so what both ends *are* says something, not only how alike they
    are.
    """
    clipped = np.clip(rows, _LEAST, 1 - _LEAST)
    odds = np.log(clipped) - np.log1p(-clipped)
    sides = (rows, odds, _main_directions(graph), _size_of_record(graph))
    return np.column_stack([likeness(rows, graph, pairs), *(_combine_ends(side, pairs) for side in sides)])


def known_structure(known: sp.csr_array, pairs: Pairs, counted: FloatArray) -> FloatArray:
    """Common neighbours and degrees in the links that the attacker knows.

    ``counted`` is 1 where the pair itself is among these: it is left out of its own degrees, so that pairs to learn
    from look like pairs to attack.
    """
    degree = np.asarray(known.sum(axis=1)).ravel()
    one, two = degree[pairs.first] - counted, degree[pairs.second] - counted
    common = np.asarray(known[pairs.first].multiply(known[pairs.second]).sum(axis=1)).ravel()
    share = common / np.sqrt(np.maximum(one * two, 1))
    return np.column_stack([common, share, one * two, one + two, np.abs(one - two)])


def _combine_ends(values: FloatArray, pairs: Pairs) -> FloatArray:
    """Mean, product and difference of the two ends' entries (He et al. 2021)."""
    one, two = values[pairs.first], values[pairs.second]
    return np.column_stack([(one + two) / 2, one * two, np.abs(one - two)])


def _main_directions(graph: Graph) -> FloatArray:
    from sklearn.decomposition import TruncatedSVD

    features = sp.csr_matrix(graph.features, dtype=np.float64)
    wanted = min(DIRECTIONS, features.shape[1] - 1)
    if wanted < 1:
        return np.asarray(features.toarray())
    return np.asarray(TruncatedSVD(wanted, random_state=0).fit_transform(features), dtype=np.float64)


def _size_of_record(graph: Graph) -> FloatArray:
    """How many features a node has: people who fill in more are often those with more links."""
    features = sp.csr_array(graph.features)
    return np.asarray((features != 0).sum(axis=1), dtype=np.float64).reshape(-1, 1)


def _squares(rows: sp.csr_array) -> FloatArray:
    return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
