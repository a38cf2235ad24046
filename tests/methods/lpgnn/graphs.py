"""Graphs with features in {0, 1}, for methods that learn from reports."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.graph.synthetic import csbm


def graph(n: int = 400, width: int = 30, seed: int = 0) -> Graph:
    """Two classes, neighbours alike, features in {0, 1} that say a little of the class."""
    made = csbm(num_nodes=n, num_features=width, average_degree=12.0, phi=0.7, epsilon=9.0, seed=seed)
    return split(made.with_features(sp.csr_array((np.asarray(made.features) > 0).astype(np.float32))), "50/25/25", seed)
