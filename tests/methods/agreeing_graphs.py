"""Graphs whose neighbours agree, more or less: for methods at edge level."""

import numpy as np

from discreet.graph.graph import Graph
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel


def edge(epsilon=1.0, delta=1e-5):
    return Privacy(EdgeLevel(), epsilon, delta)


def homophilous(n=240, classes=3, agree=0.9, seed=0, train=60):
    """Noisy features, and edges that mostly join nodes of one class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    source = np.repeat(np.arange(n), 4)
    same = rng.random(len(source)) < agree
    other = rng.integers(n, size=len(source))
    partner = rng.integers(n // classes, size=len(source)) * classes + labels[source]
    features = np.eye(classes)[labels] @ rng.standard_normal((classes, 20)) + 2.0 * rng.standard_normal((n, 20))
    graph = Graph.from_edges(
        source, np.where(same, partner, other), features, labels, directed=False, num_classes=classes
    )
    order = np.arange(n)
    return graph.with_masks(order[:train], order[train : train + 40], order[train + 40 :])
