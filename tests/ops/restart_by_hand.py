"""R_m by its definition, dense, to check propagation with restart and its sensitivity."""

import math

import numpy as np

from discreet.graph.graph import Graph

INF = math.inf


def graph_of(n, edges, features=None, directed=False):
    pairs = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    x = np.eye(n, dtype=np.float32) if features is None else features
    return Graph.from_edges(pairs[:, 0], pairs[:, 1], x, np.zeros(n, dtype=np.int64), directed=directed, num_classes=2)


def matrix(n, edges, alpha, m):
    """R_m by its definition, dense."""
    a = np.eye(n)
    for u, v in edges:
        a[u, v] = a[v, u] = 1
    walk = a / a.sum(1, keepdims=True)
    if m == INF:
        return alpha * np.linalg.inv(np.eye(n) - (1 - alpha) * walk)
    total = np.zeros((n, n))
    power = np.eye(n)
    for i in range(int(m)):
        total += alpha * (1 - alpha) ** i * power
        power = power @ walk
    return total + (1 - alpha) ** m * power
