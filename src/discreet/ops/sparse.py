"""Sparse products: those that train, a constant CSR matrix (features, or one hop over the edges) times a dense tensor;
and sums over private edges in double precision, on the processor and on all threads, each row added up in one order.

And :func:`one_thread_if`: for small work a second thread gains nothing; on a busy machine it can cost a hundredfold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from discreet.arrays import Array, BoolArray, FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.graph.edge_weights import weighted_sums
from discreet.graph.graph_in_blocks import GraphInBlocks
from discreet.graph.parts import Topology
from discreet.ops.compiled import compiled, in_threads

# The CSR kernels used here (product with a dense matrix) are the stable part of that interface.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)


Aggregation = Literal["sum", "mean", "symmetric"]
_SMALL = 8_000_000  # multiplications, a few milliseconds on one thread


@contextmanager
def one_thread_if(small: bool) -> Iterator[None]:
    """Run the block on one thread if it is small; torch's thread count is put back afterwards."""
    before = torch.get_num_threads()
    if not small or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class SparseMatrix:
    """A constant CSR matrix on a device; its transpose is made when a backward pass first needs it.

    ``matrix @ dense`` costs (stored entries) × (width) and runs on all threads that torch has.
    """

    def __init__(self, matrix: sp.csr_array, device: str | torch.device = "cpu") -> None:
        """Share the arrays of ``matrix`` where the device allows it; entries that stand twice are added up."""
        self._scipy = _without_duplicates(matrix)
        self.shape: tuple[int, int] = matrix.shape
        self.device = torch.device(device)

    @cached_property
    def csr(self) -> Tensor:
        """The matrix as torch holds it."""
        return _to_torch(self._scipy, self.device)

    @cached_property
    def transposed(self) -> Tensor:
        """The transpose, in CSR form too."""
        return _to_torch(self._scipy.T.tocsr(), self.device)

    @cached_property
    def double_transposed(self) -> Tensor:
        """The transpose in double precision."""
        return _to_torch(self._scipy.astype(np.float64).T.tocsr(), self.device)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the entries."""
        return torch.from_numpy(np.empty(0, self._scipy.data.dtype)).dtype

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return int(self._scipy.nnz)

    @cached_property
    def row_squares(self) -> Tensor:
        """The squared norm of every row, in double precision."""
        row = np.repeat(np.arange(self.shape[0]), np.diff(self._scipy.indptr))
        squares = np.bincount(row, weights=np.square(self._scipy.data, dtype=np.float64), minlength=self.shape[0])
        return torch.from_numpy(squares).to(self.device)

    @property
    def scipy(self) -> sp.csr_array:
        """The matrix on the host; no entry stands twice, and those of a row are in rising order of their columns."""
        return self._scipy

    def scipy_rows(self, first: int, last: int) -> sp.csr_array:
        """Rows ``first`` to ``last`` (excluded), on the host."""
        return self._scipy[first:last]

    def without_rows(self, gone: BoolArray) -> SparseMatrix:
        """The matrix with some rows made zero."""
        part = self._scipy
        data = np.where(np.repeat(gone, np.diff(part.indptr)), part.data.dtype.type(0), part.data)
        return SparseMatrix(sp.csr_array((data, part.indices, part.indptr), shape=part.shape), self.device)

    def times(self, factors: Array) -> SparseMatrix:
        """The matrix with every stored entry multiplied by a factor of its own."""
        part = self._scipy
        data = (part.data * factors).astype(part.data.dtype)
        return SparseMatrix(sp.csr_array((data, part.indices, part.indptr), shape=part.shape), self.device)

    def double(self) -> SparseMatrix:
        """The matrix in double precision: sums over many entries then keep to bounds that hold on paper."""
        return SparseMatrix(self._scipy.astype(np.float64), self.device)

    def to_dense(self) -> Tensor:
        """The matrix written out on its device, to which only what is not zero is sent."""
        part = self._scipy
        dense = torch.zeros(self.shape, dtype=self.dtype, device=self.device)
        row = np.repeat(np.arange(self.shape[0]), np.diff(part.indptr))
        place, values = torch.from_numpy(row * np.int64(self.shape[1]) + part.indices), torch.tensor(part.data)
        dense.view(-1)[place.to(self.device)] = values.to(self.device)
        return dense

    def work(self, dense: Tensor) -> int:
        """Multiplications that a product takes."""
        return int(self._scipy.nnz) * dense.shape[-1]

    def rows(self, index: IntArray) -> SparseMatrix:
        """The chosen rows."""
        return SparseMatrix(self._scipy[index], self.device)

    def transposed_product(self, dense: Tensor) -> Tensor:
        """The product of the transpose with a dense matrix."""
        with one_thread_if(self.work(dense) < _SMALL):
            return self.transposed @ dense

    def __matmul__(self, dense: Tensor) -> Tensor:
        """The product with a dense matrix."""
        product: Tensor = _Product.apply(self, dense)  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseMatrix, dense: Tensor) -> Tensor:
        ctx.matrix = matrix
        if matrix.device.type != "cpu":
            return _row_by_row(matrix.csr, dense)
        with one_thread_if(matrix.work(dense) < _SMALL):
            return matrix.csr @ dense

    @staticmethod
    def backward(ctx: Any, *grad: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix.transposed_product(grad[0])


def _row_by_row(matrix: Tensor, dense: Tensor) -> Tensor:
    """The product on a GPU, where each number of a row is added up by one thread, in the order of its entries.

    (The sparse product of the vendor's library shares out entries, so that the bits of a row depend on others.)
    """
    given = torch.nn.functional.embedding_bag(
        matrix.col_indices(),
        dense.contiguous(),
        matrix.crow_indices(),
        mode="sum",
        per_sample_weights=matrix.values().to(dense.dtype),
        include_last_offset=True,
    )
    return given


def _without_duplicates(matrix: sp.csr_array) -> sp.csr_array:
    """The norm of a row is that of its entries only if none stands twice."""
    if matrix.has_canonical_format:
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    return matrix


def _to_torch(matrix: sp.csr_array, device: torch.device) -> Tensor:
    index = np.int32 if matrix.nnz < 2**31 - 1 and max(matrix.shape) < 2**31 - 1 else np.int64
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # read-only arrays are fine: nothing writes to a constant matrix
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index, copy=False)),
            torch.from_numpy(matrix.indices.astype(index, copy=False)),
            torch.from_numpy(matrix.data),
            size=matrix.shape,
        ).to(device)


# -------------------------------------------------------------------- one hop over the edges


def hop_matrix(
    graph: Topology, aggregation: Aggregation, *, self_loops: bool = False, device: str = "cpu"
) -> SparseMatrix:
    """The matrix of one hop: row v gathers what reaches node v.

    *sum*: A. *mean*: D⁻¹A with D the in-degrees; a node that nothing reaches gets zero.
    *symmetric*: D^(−½) A D^(−½), for undirected graphs. ``self_loops`` puts A + I for A.
    Where edges have weights, A holds them, and *sum* alone is taken: what divides by degrees has no bound with them.
    """
    refuse_aggregation(graph, aggregation)
    return normalized(graph.weighted_adjacency, aggregation, self_loops=self_loops, device=device)


def refuse_aggregation(graph: Topology, aggregation: Aggregation) -> None:
    """Refuse *symmetric* on a directed graph, and all but *sum* where edges have weights."""
    if graph.edge_weights is not None and aggregation != "sum":
        raise UnsupportedError(f"{aggregation} aggregation does not take edges with weights: use sum")
    if aggregation == "symmetric" and graph.directed:
        raise UnsupportedError("symmetric aggregation needs an undirected graph: use mean, or to_undirected()")


def normalized(
    matrix: sp.csr_array, aggregation: Aggregation, *, self_loops: bool = False, device: str = "cpu"
) -> SparseMatrix:
    """:func:`hop_matrix` of an adjacency matrix, which is symmetric where ``symmetric`` is asked for."""
    if self_loops:
        matrix = (matrix + sp.eye_array(matrix.shape[0], dtype=np.float32, format="csr")).tocsr()
    if aggregation == "sum":
        return SparseMatrix(matrix, device)
    degree = np.diff(matrix.indptr)
    power = -1.0 if aggregation == "mean" else -0.5
    weight = np.where(degree > 0, np.maximum(degree, 1) ** power, 0.0).astype(np.float32)
    data = np.repeat(weight, degree)
    if aggregation == "symmetric":
        data *= weight[matrix.indices]
    return SparseMatrix(sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape), device)


# -------------------------------------------------------------------- features


def feature_tensor(features: Array | sp.csr_array, device: str | torch.device) -> Tensor | SparseMatrix:
    """Features as a model reads them: sparse stays sparse. Nothing may write to them: they may share memory."""
    if not isinstance(features, np.ndarray):
        return SparseMatrix(features, device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # read-only arrays are fine: no model writes to what it reads
        return torch.from_numpy(features).to(device)


AT_ONCE = 1 << 16
"""Rows that a network is shown together where it learns nothing: bounds memory, and suits a processor's caches."""


@torch.no_grad()
def map_rows(
    module: Callable[..., Tensor],
    features: Array | sp.csr_array,
    device: str | torch.device,
    beside: Tensor | None = None,
) -> Tensor:
    """What the module makes of every row of the features (and of the row ``beside`` it), a portion at a time.

    It must read each row by itself.
    """
    found: Tensor | None = None
    for start in range(0, max(features.shape[0], 1), AT_ONCE):
        portion = slice(start, start + AT_ONCE)
        rows = feature_tensor(features[portion], device)
        seen = module(rows) if beside is None else module(rows, beside[portion])
        if found is None:
            if features.shape[0] <= AT_ONCE:
                return seen
            found = seen.new_empty((features.shape[0], *seen.shape[1:]))
        found[portion] = seen
    assert found is not None
    return found


def select_rows(features: Tensor | SparseMatrix, index: Tensor) -> Tensor | SparseMatrix:
    """The chosen rows of either kind."""
    if isinstance(features, SparseMatrix):
        return features.rows(index.cpu().numpy())
    return features.index_select(0, index)


# -------------------------------------------------------------------- sums over edges, for answers to private data

_FEW_NUMBERS = 1 << 17
"""Numbers in ``rows`` up to which machine code of our own is not worth loading. Public: edges have no say in it."""
LANES = 4
"""Columns that are summed at a time, in registers: four doubles are one of a processor's vectors."""
_CACHE = 1 << 22
"""Bytes of so many columns of all rows that a processor's caches hold; what is fetched from memory is fetched whole."""
_NARROW = 16
"""Columns up to which edges are worth reading once for every few of them."""
PORTIONS = 8
"""Portions per thread, so that one with long rows does not hold up the others."""


def edge_sums(matrix: sp.csr_array, rows: Array, receivers: IntArray | None = None) -> FloatArray:
    """``matrix @ rows`` in double precision; of the rows ``receivers`` of the matrix alone, where these are given.

    Every entry of the matrix is 1. Guarantee: row v adds rows[u] over its entries (v, u) in their order, beginning with
    zero. So its bits depend on its own entries and on what is sent along them, and on no other row, number of threads,
    or device that the rest of a fit uses. Rows in single precision stay so in memory, which is half as much to read,
    and become doubles before anything is done with them.
    """
    sent = np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)
    if sent.size <= _FEW_NUMBERS:
        part = matrix if receivers is None else matrix[receivers]
        return np.asarray(part @ sent.astype(np.float64, copy=False))
    chosen = np.arange(matrix.shape[0]) if receivers is None else receivers
    width = sent.shape[1]
    if not goes_by_lanes(sent) and not 1 < width <= LANES:
        return _add_in_threads(_add, matrix, sent, chosen)
    sums = np.empty((len(chosen), width))
    for first in range(0, width, LANES):
        found = _add_in_threads(_add_lanes, matrix, lanes_of(sent, first), chosen)
        sums[:, first : first + LANES] = found[:, : width - first]
    return sums


def goes_by_lanes(rows: Array) -> bool:
    """Whether rows are many, and few columns of all of them fit in a processor's caches: public, edges have no say."""
    fit = len(rows) * LANES * rows.itemsize <= _CACHE
    return rows.size > _FEW_NUMBERS and fit and 1 < rows.shape[1] <= _NARROW


def lanes_of(rows: Array, first: int) -> Array:
    """A copy of the columns from ``first`` on, :data:`LANES` of them; those that are missing are zero."""
    lanes = np.zeros((len(rows), LANES), dtype=rows.dtype)
    some = rows[:, first : first + LANES]
    lanes[:, : some.shape[1]] = some
    return lanes


def sums_over_edges(graph: Topology, *tables: Array, hears: Array | None = None) -> FloatArray:
    """Row v adds up rows of a table over v's edges, each as much as the edge weighs.

    Guarantee: that of :func:`edge_sums`; where edges have weights, that of ``graph.edge_weights.weighted_sums``.
    Tables have one row per node. ``hears`` says for each node the number of the table that it hears; the first where it
    is None. The edges of a graph in partitions are summed over where they lie, to the same bits.
    """
    if isinstance(graph, GraphInBlocks):
        return graph.edge_sums(*tables, hears=hears)
    if hears is None:
        return _sums(graph, tables[0], None)
    found = np.zeros((graph.num_nodes, tables[0].shape[1]))
    for number, table in enumerate(tables):
        receivers = np.flatnonzero(hears == number)
        found[receivers] = _sums(graph, table, receivers)
    return found


def _sums(graph: Topology, table: Array, receivers: IntArray | None) -> FloatArray:
    if graph.edge_weights is None:
        return edge_sums(graph.adjacency, table, receivers)
    entries = graph.weighted_adjacency
    return weighted_sums(entries if receivers is None else entries[receivers], table)


def neighbour_sums(graph: Topology, rows: Array, aggregation: Aggregation) -> FloatArray:
    """One hop over ``rows`` as :func:`hop_matrix` defines it, in double precision, with that guarantee."""
    refuse_aggregation(graph, aggregation)
    if aggregation == "sum":
        return sums_over_edges(graph, rows)
    if aggregation == "mean":
        counted = sums_over_edges(
            graph, np.hstack([rows, np.ones((len(rows), 1), dtype=rows.dtype)])
        )  # the last column counts edges
        return np.asarray(counted[:, :-1] / np.maximum(counted[:, -1:], 1))
    degree = np.maximum(graph.in_degree(), 1)[:, None]
    return edge_sums(graph.adjacency, rows / np.sqrt(degree)) / np.sqrt(degree)


def _add_in_threads(add: Callable[..., None], matrix: sp.csr_array, sent: Array, chosen: IntArray) -> FloatArray:
    sums, threads = np.empty((len(chosen), sent.shape[1])), torch.get_num_threads()
    ends = [0, len(chosen)] if threads == 1 else row_portions(matrix.indptr, chosen, threads * PORTIONS)
    portions = [
        (matrix.indptr, matrix.indices, sent, chosen[first:last], sums[first:last]) for first, last in pairwise(ends)
    ]
    in_threads(compiled(add), portions, threads)
    return sums


def row_portions(indptr: IntArray, chosen: IntArray, count: int) -> list[int]:
    """Where to cut the chosen rows, so that portions have about as many entries each."""
    work = np.cumsum(indptr[chosen + 1] - indptr[chosen] + 1)
    cuts = np.searchsorted(work, np.linspace(0, work[-1], count + 1)[1:-1])
    return [0, *cuts.tolist(), len(chosen)]


def _add(indptr: IntArray, indices: IntArray, sent: Array, chosen: IntArray, sums: FloatArray) -> None:
    width = sent.shape[1]
    for place in range(len(chosen)):
        receiver = chosen[place]
        for column in range(width):
            sums[place, column] = 0.0
        for entry in range(indptr[receiver], indptr[receiver + 1]):
            sender = indices[entry]
            for column in range(width):
                sums[place, column] += np.float64(sent[sender, column])


def _add_lanes(indptr: IntArray, indices: IntArray, sent: Array, chosen: IntArray, sums: FloatArray) -> None:
    """The same sums in the same order, of :data:`LANES` columns."""
    for place in range(len(chosen)):
        one = two = three = four = 0.0
        for entry in range(indptr[chosen[place]], indptr[chosen[place] + 1]):
            sender = np.uintp(indices[entry])  # without a sign there is nothing to ask about it
            one += np.float64(sent[sender, 0])
            two += np.float64(sent[sender, 1])
            three += np.float64(sent[sender, 2])
            four += np.float64(sent[sender, 3])
        sums[place, 0], sums[place, 1], sums[place, 2], sums[place, 3] = one, two, three, four
