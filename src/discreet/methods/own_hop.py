"""What a node may compute for itself at edge level: from public rows of others and its own edges, without noise."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Array, FloatArray
from discreet.graph.parts import PublicPart


def with_labels(probabilities: Array, part: PublicPart) -> Array:
    """The probabilities with the (public) training labels of the graph put in; none where it has no split."""
    filled = probabilities.copy()
    if part.train_mask is not None:
        rows = np.flatnonzero(part.train_mask & (part.labels >= 0))
        filled[rows] = 0
        filled[rows, part.labels[rows]] = 1
    return filled


def neighbour_mixture(probabilities: FloatArray, part: PublicPart, own_weight: float) -> FloatArray:
    """a·P_v + (1 − a)·mean over v's neighbours of Q, where Q is P with the training labels put in.

    Edges with weights make a weighted mean: no noise is on it, so it needs no bound.

    Guarantee: row v reads the edges at v and no other; a node without neighbours keeps its own row.
    """
    edges = part.weighted_adjacency.astype(np.float64)
    total = np.asarray(edges.sum(axis=1))[:, None]
    mean = (edges @ with_labels(probabilities, part)) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, own_weight * probabilities + (1 - own_weight) * mean, probabilities)
