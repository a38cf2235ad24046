"""What a node may compute for itself at edge level: from public rows of others and its own edges, without noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.graph.graph import Graph

FloatArray = npt.NDArray[np.float64]


def with_labels(probabilities: FloatArray, graph: Graph) -> FloatArray:
    """The probabilities with the (public) training labels of the graph put in; none where it has no split."""
    filled = probabilities.copy()
    if graph.train_mask is not None:
        rows = np.flatnonzero(graph.train_mask & (graph.labels >= 0))
        filled[rows] = np.eye(probabilities.shape[1])[graph.labels[rows]]
    return filled


def neighbour_mixture(probabilities: FloatArray, graph: Graph, own_weight: float) -> FloatArray:
    """a·P_v + (1 − a)·mean over v's neighbours of Q, where Q is P with the training labels put in.

    Guarantee: row v reads the edges at v and no other; a node without neighbours keeps its own row.
    """
    degree = graph.in_degree()[:, None]
    heard = graph.adjacency @ with_labels(probabilities, graph)
    mixed = own_weight * probabilities + (1 - own_weight) * heard / np.maximum(degree, 1)
    return np.where(degree > 0, mixed, probabilities)
