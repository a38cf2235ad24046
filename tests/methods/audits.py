"""What the audits of noisy training share: levels of every basis, small budgets, and a star."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.audit.replay import ReplayReport, replay_audit
from discreet.audit.small_graphs import small_graph
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import parse_level
from tests.effort import caught, effort, replay_until

OWNED = "node:owned,max_degree=3,change=null"
BASES = [
    OWNED,
    "node:owned,max_degree=3,change=replace",
    "node:promised,max_degree=12,change=null",
    "node:promised,max_degree=12,change=replace",
    "node:thinned,d_max=12,p=0.5,change=null",
    "node:thinned,d_max=12,p=0.5,change=replace",
    "neighbor:2,max_degree=3",
    "neighbor:2,max_degree=12,edges=promised",
]
QUICK: dict[str, Any] = {"steps": 2, "hidden": 4, "insecure_noise_seed": 1}


def node(spec: str = OWNED, epsilon: float = 1.0) -> Privacy:
    """A budget at this level."""
    return Privacy(parse_level(spec), epsilon, 1e-3)


def audit(estimator: NodeClassifier, pairs: int = 5, spec: str = OWNED, seed: int = 0) -> ReplayReport:
    """The replay audit of an estimator at this level."""
    return replay_audit(estimator.set_params(privacy=node(spec)), small_graph, pairs=effort(pairs, 20), seed=seed)


def caught_in(estimator: NodeClassifier, most: int = 40, spec: str = OWNED) -> list[str]:
    """What the replay audit finds in an estimator with a planted fault, in so many pairs or fewer."""
    return replay_until(caught, estimator.set_params(privacy=node(spec)), small_graph, most=most).violations


def star(n: int = 8) -> Graph:
    """One hub that sends to all others, whose features are alike."""
    features = np.zeros((n, 4))
    features[:, 0] = 1
    ends = np.zeros(n - 1, int), np.arange(1, n)
    graph = Graph.from_edges(*ends, features, np.arange(n) % 3, directed=True, num_classes=3)
    return graph.with_masks(np.ones(n, bool), None, None)


def without_hub(graph: Graph) -> Graph:
    """The star's neighbour under null: the hub without record or entries."""
    labels, features = graph.labels.copy(), np.array(graph.features)
    labels[0], features[0] = -1, 0
    return graph.with_edges([], []).with_features(features).with_labels(labels)
