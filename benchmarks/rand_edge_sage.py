"""Why RandEdge+SAGE is far better here than in the DPDGC paper's Table 2: its parts changed one at a time.

    python benchmarks/rand_edge_sage.py --data cora chameleon --splits 0 1 2

A SAGE network on a noisy copy of the graph, ε = 1 at edge level, scored on validation nodes. What varies:

- the copy: ``flipped`` (randomised response on every cell, which the paper names: false edges outnumber true ones by
  hundreds), ``as dense`` (randomised response, then so few of the edges kept that the copy is about as dense as the
  graph, which is what the published code of GAP does), ``none`` (no edges), ``true`` (the graph itself);
- what a node reads: the ``mean`` or the ``sum`` of its neighbours, beside its ``own`` row or without it;
- how long the network learns: ``200`` epochs at rate 0.01 (ours), or ``100`` at rate 0.001 (the paper's).

This reads edges without a guarantee (noise is drawn by numpy): research figures.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from discreet import load
from discreet.graph.graph import Graph
from discreet.graph.splits import split
from discreet.ops.rows import rows_of_norm

COPIES = ("none", "flipped", "as dense", "true")
EPSILON = 1.0
DENSITY_SHARE = 0.1
"""Of ε, for the density, in the published code."""
HIDDEN = 64
DENSE = 0.1
"""The share of cells above which a dense product is quicker."""


def noisy(graph: Graph, copy: str, rng: np.random.Generator) -> sp.csr_array:
    """The adjacency matrix of a copy, zeros and ones in single precision."""
    n = graph.num_nodes
    true = sp.csr_array(graph.adjacency)
    true = sp.csr_array((np.ones(true.nnz, dtype=np.float32), true.indices, true.indptr), shape=true.shape)
    if copy == "true":
        return true
    if copy == "none":
        return sp.csr_array((n, n), dtype=np.float32)
    if copy == "flipped":
        flips = rng.random((n, n), dtype=np.float32) < 1 / (1 + math.exp(EPSILON))
        upper = np.triu((true.toarray() > 0) ^ flips, 1)
        return sp.csr_array((upper | upper.T).astype(np.float32))
    return thinned(true, rng)


def thinned(true: sp.csr_array, rng: np.random.Generator) -> sp.csr_array:
    """Every cell by randomised response, the edges then kept at the rate that makes the copy as dense as the graph."""
    n, keep = true.shape[0], 1 / (1 + math.exp(-EPSILON * (1 - DENSITY_SHARE)))
    density = true.nnz / n**2
    rate = density / (2 * keep * density - keep - density + 1)
    kept = true.tocoo()
    chosen = rng.random(true.nnz) < keep * rate
    false = rng.integers(n, size=(2, rng.binomial(n**2 - true.nnz, (1 - keep) * rate)))
    rows, columns = np.concatenate([kept.row[chosen], false[0]]), np.concatenate([kept.col[chosen], false[1]])
    found = sp.csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=true.shape)
    found.data[:] = 1  # the few cells that were drawn twice
    return found


class Sage(nn.Module):
    """Two layers as ours has them; ``own`` says whether a node's own row has weights of its own."""

    def __init__(self, features: int, classes: int, own: bool) -> None:
        super().__init__()
        widths = [features, HIDDEN, classes]
        self.neighbors = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths)) if own else None
        self.norm, self.dropout = nn.LayerNorm(HIDDEN), nn.Dropout(0.5)

    def forward(self, x: Tensor, matrix: Tensor) -> Tensor:
        hidden = self.dropout(torch.relu(self.norm(self._layer(0, x, matrix))))
        return self._layer(1, hidden, matrix)

    def _layer(self, depth: int, x: Tensor, matrix: Tensor) -> Tensor:
        out = matrix @ product(x, self.neighbors[depth])
        return out if self.own is None else out + product(x, self.own[depth])


def product(x: Tensor, layer: nn.Module) -> Tensor:
    """A linear map of rows that may be sparse."""
    weight, bias = layer.parameters()
    return x @ weight.T + bias


def averaging(adjacency: sp.csr_array) -> sp.csr_array:
    """The same with rows that sum to 1 (or are empty)."""
    return sp.csr_array(sp.diags_array(1 / np.maximum(adjacency.sum(axis=1), 1)) @ adjacency, dtype=np.float32)


def as_tensor(matrix: sp.csr_array) -> Tensor:
    """Dense where most products would be."""
    if matrix.nnz > DENSE * matrix.shape[0] * matrix.shape[1]:
        return torch.tensor(matrix.toarray())
    parts = (matrix.indptr, matrix.indices, matrix.data)
    return torch.sparse_csr_tensor(*(torch.tensor(part) for part in parts), size=matrix.shape)


def score(graph: Graph, adjacency: sp.csr_array, reads: str, own: bool, course: tuple[int, float], seed: int) -> float:
    """Validation accuracy after the last epoch, in per cent."""
    torch.manual_seed(seed)
    matrix = as_tensor(averaging(adjacency) if reads == "mean" else adjacency)
    features = rows_of_norm(graph.features, 1.0)
    x = as_tensor(sp.csr_array(features, dtype=np.float32))
    labels = torch.tensor(graph.labels)
    train, val = (torch.tensor(mask & (graph.labels >= 0)) for mask in (graph.train_mask, graph.val_mask))
    network = Sage(x.shape[1], graph.num_classes, own)
    epochs, rate = course
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x, matrix)[train], labels[train]).backward()
        optimizer.step()
    network.eval()
    with torch.no_grad():
        right = network(x, matrix).argmax(dim=1)[val] == labels[val]
    return 100 * float(right.float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["cora", "chameleon"])
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--copies", nargs="+", choices=COPIES, default=COPIES)
    given = parser.parse_args()
    torch.set_num_threads(1)
    courses = {"200 at 0.01": (200, 0.01), "100 at 0.001": (100, 0.001)}
    for name in given.data:
        graph = load(name)
        for copy in given.copies:
            found: dict[tuple[str, bool, str], list[float]] = {}
            for number in given.splits:
                masked = split(graph, "75/10/15", number)
                adjacency = noisy(masked, copy, np.random.default_rng(number))
                for reads, own, course in itertools.product(("mean", "sum"), (True, False), courses):
                    if copy == "none" and (reads == "sum" or not own):
                        continue
                    value = score(masked, adjacency, reads, own, courses[course], number)
                    found.setdefault((reads, own, course), []).append(value)
            for (reads, own, course), values in found.items():
                kept = "own row" if own else "no own row"
                print(f"{name} | {copy} | {reads}, {kept} | {course} | {np.mean(values):.1f}", flush=True)


if __name__ == "__main__":
    main()
