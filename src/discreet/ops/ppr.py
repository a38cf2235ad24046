"""Approximate personalised PageRank, row by row, sparse in and sparse out: by ISTA and by push.

The row of a source s is where a walk stops that starts at s and, at each step, stops with probability α or else goes to
a uniform neighbour. Both solvers return p with

    0 ≤ π(v) − p(v) ≤ ρ·deg(v)      (times 1 + γ for ISTA)

for every node v, and reach only nodes near the source: the work of a row depends on α and ρ, not on the graph's size.
A source without neighbours has all its mass at itself.

ISTA (Fountoulakis et al. 2019) minimises ½qᵀQq − α′sᵀD^{−1/2}q + ρα′‖D^{1/2}q‖₁ and returns p = D^{1/2}q. There the
walk is lazy; α′ = α/(2 − α) makes it the same PageRank. Its answer is the unique minimiser, up to γ; that of push
(Andersen, Chung and Lang 2006) depends on the order of the pushes, which here is first in, first out.

*Guarantee*: none of privacy. One node can move any row anywhere (a hub stands in all of them), so what is private
about rows is clipped in :mod:`discreet.queries.picks`, whose bounds hold for any rows at all, and noised in
:mod:`discreet.mechanisms.topk`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.arrays import BoolArray, FloatArray, IntArray
from discreet.errors import GraphError, ParameterError
from discreet.ops.compiled import compiled

Solver = Literal["ista", "push"]
Rows = tuple[IntArray, IntArray, FloatArray]


def appr_rows(
    adjacency: sp.csr_array,
    sources: npt.ArrayLike,
    *,
    alpha: float = 0.25,
    rho: float = 1e-4,
    gamma: float = 1e-4,
    solver: Solver = "ista",
    threads: int = 1,
) -> sp.csr_array:
    """One sparse row for each source (len(sources) × n), indices sorted.

    ``adjacency`` holds an undirected graph: a symmetric pattern, whose values and diagonal play no part.
    """
    _check(alpha, rho, gamma, solver, threads)
    graph = _pattern(adjacency)
    chosen = _checked_sources(sources, graph.shape[0])
    indptr, indices = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)

    def solve(part: IntArray) -> Rows:
        found: Rows
        if solver == "push":
            found = _push_rows(indptr, indices, part, alpha, rho)
        else:
            found = _ista_rows(indptr, indices, part, alpha / (2 - alpha), rho, gamma)
        return found

    parts = [part for part in np.array_split(chosen, threads) if len(part)]
    if len(parts) <= 1:
        found = [solve(part) for part in parts]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(solve, parts))
    return _stacked(found, len(chosen), graph.shape[0])


def _stacked(parts: list[Rows], rows: int, width: int) -> sp.csr_array:
    lengths = np.concatenate([[0], *(np.diff(indptr) for indptr, _, _ in parts)])
    indices = np.concatenate([np.empty(0, dtype=np.int64), *(part[1] for part in parts)])
    data = np.concatenate([np.empty(0), *(part[2] for part in parts)])
    matrix = sp.csr_array((data, indices, np.cumsum(lengths)), shape=(rows, width))
    matrix.sort_indices()
    return matrix


# -------------------------------------------------------------------- what comes in


def _check(alpha: float, rho: float, gamma: float, solver: str, threads: int) -> None:
    if not 0 < alpha < 1:
        raise ParameterError(f"alpha must lie strictly between 0 and 1, not {alpha!r}")
    if not 0 < rho < 1:
        raise ParameterError(f"rho must lie strictly between 0 and 1, not {rho!r}")
    if not 0 < gamma <= 1:
        raise ParameterError(f"gamma must lie in (0, 1], not {gamma!r}")
    if solver not in ("ista", "push"):
        raise ParameterError(f"solver must be ista or push, not {solver!r}")
    if threads < 1:
        raise ParameterError(f"threads must be at least 1, not {threads!r}")


def _pattern(adjacency: sp.csr_array) -> sp.csr_array:
    """The graph without loops; refused where an edge stands without its reverse."""
    graph = sp.csr_array(adjacency)
    if graph.shape[0] != graph.shape[1]:
        raise GraphError(f"an adjacency matrix is square, not {graph.shape}")
    entries = graph.tocoo()
    keep = (entries.row != entries.col) & (entries.data != 0)
    row, col = entries.row[keep].astype(np.int64), entries.col[keep].astype(np.int64)
    clean = sp.csr_array((np.ones(len(row)), (row, col)), shape=graph.shape)
    if (clean != clean.T.tocsr()).nnz:
        raise GraphError("personalised PageRank here needs an undirected graph: use graph.to_undirected()")
    return clean


def _checked_sources(sources: npt.ArrayLike, num_nodes: int) -> IntArray:
    chosen = np.asarray(sources, dtype=np.int64).reshape(-1)
    if ((chosen < 0) | (chosen >= num_nodes)).any():
        raise ParameterError(f"a source is not a node of a graph with {num_nodes} nodes")
    return chosen


# -------------------------------------------------------------------- kernels


@compiled
def _grown(indices: IntArray, data: FloatArray, needed: int) -> tuple[IntArray, FloatArray]:
    """The same arrays, or copies with room for ``needed`` entries."""
    if needed <= len(indices):
        return indices, data
    size = max(needed, 2 * len(indices))
    more_indices, more_data = np.empty(size, np.int64), np.empty(size, np.float64)
    more_indices[: len(indices)] = indices
    more_data[: len(data)] = data
    return more_indices, more_data


@compiled
def _collect(
    touched: IntArray,
    estimate: FloatArray,
    residual: FloatArray,
    seen: BoolArray,
    found: IntArray,
    values: FloatArray,
    filled: int,
) -> tuple[IntArray, FloatArray, int]:
    """Append the positive estimates of one source to ``found`` and ``values``, and clear its working arrays."""
    found, values = _grown(found, values, filled + len(touched))
    for v in touched:
        if estimate[v] > 0:
            found[filled], values[filled] = v, estimate[v]
            filled += 1
        residual[v], estimate[v], seen[v] = 0.0, 0.0, False
    return found, values, filled


@compiled
def _push_rows(indptr: IntArray, indices: IntArray, sources: IntArray, alpha: float, rho: float) -> Rows:
    """Push while some residual exceeds ρ·deg: α of it stays, the rest goes to the neighbours."""
    n = len(indptr) - 1
    residual, estimate = np.zeros(n), np.zeros(n)
    queued, seen = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    queue, touched = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    starts = np.zeros(len(sources) + 1, np.int64)
    found, values, filled = np.empty(1024, np.int64), np.empty(1024, np.float64), 0
    for at in range(len(sources)):
        source = sources[at]
        residual[source], seen[source], touched[0], count = 1.0, True, source, 1
        queue[0], head, tail, queued[source] = source, 0, 1, True
        while head != tail:
            u = queue[head]
            head = (head + 1) % (n + 1)
            queued[u] = False
            degree = indptr[u + 1] - indptr[u]
            amount = residual[u]
            if degree == 0:
                estimate[u] += amount
                residual[u] = 0.0
                continue
            estimate[u] += alpha * amount
            residual[u] = 0.0
            share = (1 - alpha) * amount / degree
            for entry in range(indptr[u], indptr[u + 1]):
                v = indices[entry]
                residual[v] += share
                if not seen[v]:
                    seen[v] = True
                    touched[count] = v
                    count += 1
                if not queued[v] and residual[v] > rho * (indptr[v + 1] - indptr[v]):
                    queued[v] = True
                    queue[tail] = v
                    tail = (tail + 1) % (n + 1)
        found, values, filled = _collect(touched[:count], estimate, residual, seen, found, values, filled)
        starts[at + 1] = filled
    return starts, found[:filled], values[:filled]


@compiled
def _ista_rows(indptr: IntArray, indices: IntArray, sources: IntArray, alpha: float, rho: float, gamma: float) -> Rows:
    """Proximal gradient steps of length 1, in p = D^{1/2}q and the residual r = −D^{1/2}∇f(q).

    A node moves by r − ρα·deg if that is positive. (Iterates only rise and gradients stay negative, so the soft
    threshold never takes back: Fountoulakis et al., lemma 4.)
    """
    n = len(indptr) - 1
    residual, estimate, seen = np.zeros(n), np.zeros(n), np.zeros(n, np.bool_)
    touched, moving, moves = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.float64)
    starts = np.zeros(len(sources) + 1, np.int64)
    found, values, filled = np.empty(1024, np.int64), np.empty(1024, np.float64), 0
    for at in range(len(sources)):
        source = sources[at]
        seen[source], touched[0], count = True, source, 1
        residual[source] = alpha
        unfinished = True
        if indptr[source + 1] == indptr[source]:
            estimate[source], unfinished = 1.0, False
        while unfinished:
            unfinished, active = False, 0
            for position in range(count):
                u = touched[position]
                threshold = rho * alpha * (indptr[u + 1] - indptr[u])
                if residual[u] > threshold:
                    moving[active], moves[active] = u, residual[u] - threshold
                    active += 1
                    if residual[u] > (1 + gamma) * threshold:
                        unfinished = True
            if not unfinished:
                break
            for position in range(active):
                u, move = moving[position], moves[position]
                estimate[u] += move
                residual[u] -= (1 + alpha) / 2 * move
                share = (1 - alpha) / 2 * move / (indptr[u + 1] - indptr[u])
                for entry in range(indptr[u], indptr[u + 1]):
                    v = indices[entry]
                    residual[v] += share
                    if not seen[v]:
                        seen[v] = True
                        touched[count] = v
                        count += 1
        found, values, filled = _collect(touched[:count], estimate, residual, seen, found, values, filled)
        starts[at + 1] = filled
    return starts, found[:filled], values[:filled]
