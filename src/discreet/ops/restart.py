"""Propagation with restart (personalised PageRank, exact and truncated)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from discreet.arrays import Array, FloatArray, IntArray
from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.partitions import GraphInBlocks
from discreet.graph.parts import Topology
from discreet.limits import RESTART
from discreet.ops.compiled import compiled, in_threads
from discreet.ops.sparse import LANES, PORTIONS, goes_by_lanes, lanes_of, row_portions, sums_over_edges

Float = TypeVar("Float", np.float32, np.float64)
INFINITE = math.inf


def check_restart(alpha: float) -> None:
    """Refuse a restart probability at which the sensitivity formula has no meaning, or rounding would decide."""
    RESTART.check("alpha", alpha)


def check_steps(steps: Sequence[float]) -> tuple[float, ...]:
    """The steps as a tuple of whole numbers from 0 or infinity; anything else is refused."""
    listed = tuple(steps)
    if not listed:
        raise ParameterError("steps must name at least one number of propagation steps")
    for m in listed:
        number = isinstance(m, int | float) and not isinstance(m, bool)
        if not number or not (m == INFINITE or (m >= 0 and m == int(m))):
            raise ParameterError(f"steps must be whole numbers from 0, or inf, not {m!r}")
    return tuple(INFINITE if m == INFINITE else int(m) for m in listed)


# -------------------------------------------------------------------- the operation


def transition(graph: Topology, dtype: npt.DTypeLike = np.float64) -> sp.csr_array:
    """Ã = D⁻¹(A + I): each node averages over itself and its neighbours. Undirected graphs only."""
    _refuse_directed(graph)
    looped = graph.adjacency.astype(dtype) + sp.eye_array(graph.num_nodes, dtype=dtype, format="csr")
    weights = 1.0 / (graph.in_degree() + 1.0)
    looped.data *= np.repeat(weights, np.diff(looped.indptr)).astype(dtype)
    return looped.tocsr()


class Walk:
    """Ã of :func:`transition` for edges that can only be summed over, wherever they lie."""

    def __init__(self, graph: Topology) -> None:
        """Count neighbours once."""
        _refuse_directed(graph)
        self._graph = graph
        self._sizes = sums_over_edges(graph, np.ones((graph.num_nodes, 1))) + 1.0

    def __matmul__(self, rows: Array) -> Array:
        """Each row averaged over its node and the node's neighbours."""
        found = sums_over_edges(self._graph, rows)
        found += rows
        found /= self._sizes
        return found

    def goes_by_lanes(self, rows: Array) -> bool:
        """Whether :meth:`propagated_lanes` is for these rows over these edges."""
        plain = not isinstance(self._graph, GraphInBlocks) and self._graph.edge_weights is None
        return plain and rows.dtype == np.float64 and goes_by_lanes(rows)

    def propagated_lanes(self, start: FloatArray, alpha: float, wanted: Collection[int]) -> dict[int, FloatArray]:
        """R_m·start for the numbers m that are wanted, of :data:`sparse.LANES` columns, which stay in cache.

        Guarantee: the bits of :meth:`__matmul__`, scaling and restart one after the other.
        """
        matrix, threads = self._graph.adjacency, torch.get_num_threads()
        everyone = np.arange(len(start))
        ends = [0, len(start)] if threads == 1 else row_portions(matrix.indptr, everyone, threads * PORTIONS)
        found, restart = {0: start}, alpha * start
        current, following = start.copy(), np.empty_like(start)
        step = compiled(_take_step)
        for m in range(1, max(wanted) + 1):
            given = (matrix.indptr, matrix.indices, current, self._sizes, 1 - alpha, restart, following)
            in_threads(step, [(*given, first, last) for first, last in pairwise(ends)], threads)
            current, following = following, current
            if m in wanted:
                found[m] = current.copy()
        return found


def _refuse_directed(graph: Topology) -> None:
    if graph.directed:
        raise UnsupportedError(
            "propagation with restart needs an undirected graph (its sensitivity does not hold otherwise): "
            "use graph.to_undirected()"
        )


def iterations_for(alpha: float, dtype: npt.DTypeLike = np.float64) -> int:
    """Steps after which R_m X no longer moves within ``dtype``: depends on α alone, never on the graph.

    ‖R_∞x − R_m x‖ ≤ 2(1 − α)^m for rows of norm at most 1, and the count brings that below a rounding error.
    """
    return math.ceil(math.log(float(np.finfo(dtype).eps) / 4) / math.log1p(-alpha))


def propagate(
    walk: sp.csr_array | Walk, features: npt.NDArray[Float], alpha: float, steps: Sequence[float]
) -> npt.NDArray[Float]:
    """Z = (1/s)(R_{m₁}X ⊕ … ⊕ R_{m_s}X) with R_m = (1 − α)ÃR_{m−1} + αI, R₀ = I.

    ``m = inf`` iterates until float precision, so neither R_m nor anything else of size n × n is formed: the
    cost is entries × width for each step, shared between all the steps that are asked for.
    """
    check_restart(alpha)
    listed = check_steps(steps)
    counts = [iterations_for(alpha, features.dtype) if m == INFINITE else int(m) for m in listed]
    if isinstance(walk, Walk) and walk.goes_by_lanes(features):
        found = _by_lanes(walk, features, alpha, counts)
    else:
        found = _step_by_step(walk, features, alpha, counts)
    return np.asarray(np.hstack([found[m] for m in counts]) / features.dtype.type(len(listed)))


def _step_by_step(
    walk: sp.csr_array | Walk, features: npt.NDArray[Float], alpha: float, wanted: Collection[int]
) -> dict[int, npt.NDArray[Float]]:
    """R_m X for every m that is wanted."""
    found = {0: features}
    current, restart = features, alpha * features
    for m in range(1, max(wanted) + 1):
        current = walk @ current
        current *= 1 - alpha
        current += restart
        if m in wanted:
            found[m] = current.copy()
    return found


def _by_lanes(
    walk: Walk, features: npt.NDArray[Float], alpha: float, wanted: Collection[int]
) -> dict[int, npt.NDArray[Float]]:
    """The same bits, some columns after the others: no column is read for another."""
    found = {m: np.empty_like(features) for m in {0, *wanted}}
    for first in range(0, features.shape[1], LANES):
        for m, lanes in walk.propagated_lanes(lanes_of(features, first), alpha, wanted).items():
            found[m][:, first : first + LANES] = lanes[:, : features.shape[1] - first]
    return found


def _take_step(
    indptr: IntArray,
    indices: IntArray,
    current: FloatArray,
    sizes: FloatArray,
    kept: float,
    restart: FloatArray,
    following: FloatArray,
    first: int,
    last: int,
) -> None:
    """One step of the rows ``first`` to ``last`` (excluded), in the order of additions of ``sparse.edge_sums``."""
    for node in range(first, last):
        one = two = three = four = 0.0
        for entry in range(indptr[node], indptr[node + 1]):
            sender = np.uintp(indices[entry])  # without a sign there is nothing to ask about it
            one += current[sender, 0]
            two += current[sender, 1]
            three += current[sender, 2]
            four += current[sender, 3]
        size = sizes[node, 0]
        following[node, 0] = (one + current[node, 0]) / size * kept + restart[node, 0]
        following[node, 1] = (two + current[node, 1]) / size * kept + restart[node, 1]
        following[node, 2] = (three + current[node, 2]) / size * kept + restart[node, 2]
        following[node, 3] = (four + current[node, 3]) / size * kept + restart[node, 3]


def own_hop(
    walk: sp.csr_array, features: npt.NDArray[Float], alpha: float, steps: Sequence[float]
) -> npt.NDArray[Float]:
    """What each node can compute from its own edges: R̂_m = I for m = 0, else (1 − α)Ã + αI (eq. 16 of GCON).

    Guarantee: row v depends on the edges at v and on nothing else that is private at edge level.
    """
    listed = check_steps(steps)
    one = (1 - alpha) * (walk @ features) + alpha * features
    return np.asarray(np.hstack([features if m == 0 else one for m in listed]) / features.dtype.type(len(listed)))
