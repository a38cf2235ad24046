"""A second opinion from features where labels are few: a ridge map on the features' leading directions.

A network that saw twenty labels a class knows little of other nodes; but which features go together can be seen on
all of them. The map learns what the network thinks of every node (training labels put in) from a few singular
directions, and a second one learns the opinion of the first. Features and labels must be public; no edge is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from discreet.graph.graph import Graph
from discreet.methods.own_hop import with_labels
from discreet.methods.public_encoder import encoder_width, leading_directions, ridge_head, unit_features
from discreet.ops.restart import unit_rows

FloatArray = npt.NDArray[np.float64]

FEW = 0.2
"""Labels are few where no more than this share of the nodes is for training."""
_TEMPERATURES = np.geomspace(0.02, 8.0, 61)


@dataclass(frozen=True)
class FeatureMap:
    """Scores of every class, linear in a node's (unit) features along ``basis``."""

    basis: FloatArray
    head: FloatArray

    def scores(self, graph: Graph) -> FloatArray:
        """One row a node."""
        return np.asarray(_embedded(graph, self.basis) @ self.head)

    @classmethod
    def fit(cls, graph: Graph, opinions: FloatArray, seed: int) -> list[FeatureMap]:
        """Two maps: of what the network thinks, and of what the first map thinks; training labels put in both times."""
        basis = leading_directions(graph.features, encoder_width("spectral", None, graph.public), seed)
        rows, maps = _embedded(graph, basis), []
        for _ in range(2):
            found = cls(basis, ridge_head(rows, with_labels(opinions, graph) - 1 / graph.num_classes))
            scores = rows @ found.head
            opinions = softmax(scores / best_temperature(scores, graph)[0], axis=1)
            maps.append(found)
        return maps


def best_temperature(logits: FloatArray, graph: Graph) -> tuple[float, float]:
    """What to divide logits by so that they fit the labels of :func:`judging` nodes best, and the loss then."""
    rows = judging(graph)
    if len(rows) == 0:
        return 1.0, np.inf
    chosen, labels = logits[rows], graph.labels[rows]
    losses = [-log_softmax(chosen / t, axis=1)[np.arange(len(rows)), labels].mean() for t in _TEMPERATURES]
    best = int(np.argmin(losses))
    return float(_TEMPERATURES[best]), float(losses[best])


def are_few(graph: Graph) -> bool:
    """Whether training labels are few; from public ids."""
    return graph.public.num_train <= FEW * graph.num_nodes


def has_validation(graph: Graph) -> bool:
    """Whether a validation node has a label."""
    return graph.val_mask is not None and bool((graph.val_mask & (graph.labels >= 0)).any())


def judging(graph: Graph) -> npt.NDArray[np.int64]:
    """The labelled validation nodes; without any, the labelled training nodes."""
    mask = graph.val_mask if has_validation(graph) else graph.train_mask
    return np.empty(0, dtype=np.int64) if mask is None else np.flatnonzero(mask & (graph.labels >= 0))


def _embedded(graph: Graph, basis: FloatArray) -> FloatArray:
    return unit_rows(np.asarray(unit_features(graph.features) @ basis, dtype=np.float64))
