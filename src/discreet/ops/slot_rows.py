"""Rows of one table that stand in the slots of many examples: computed once for each node, not once for each slot.

An ego-net holds the records of its nodes, and a record stands in many ego-nets. So a linear map reads the table (or the
part of it that occurs) and its rows are handed to the slots; inner products of the rows of an example, which its norm
needs, are constants of a fit; and a sum over all slots is taken by node before it meets the table.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from discreet.arrays import IntArray
from discreet.graph.clean import Features
from discreet.ops.inner_products import sparse_row_grams
from discreet.ops.rows import row_product
from discreet.ops.sparse import SparseMatrix, select_rows

NARROW = 1024
"""Features up to which dense products are quicker: sparse ones this narrow tend to be a third full."""
MOST_WRITTEN_OUT = 1 << 26
"""Numbers up to which a sparse table is written out: 256 MiB."""
DEVICE_SHARE = 8
"""A GPU, on which dense products cost little, writes out what takes at most this part of its memory."""
_AT_ONCE = 1 << 22
"""Numbers in double precision that are held while inner products are made."""
_READ_WHOLE = 4
"""On a device the whole table is read where it has at most so many times as many rows as there are slots: rows that no
slot holds cost less than to look for those that one holds."""
_MOST_COPIED = 1 << 26
"""Numbers of rows that are copied out of a table together on a device."""


class RowTable:
    """Rows in single precision, one per node, and what is made of them once for a fit."""

    def __init__(self, rows: Tensor | SparseMatrix) -> None:
        """Rows must be finite: a row that is not would meet all examples in a sum."""
        self.rows = rows

    @classmethod
    def of(cls, features: Features, device: str | torch.device) -> RowTable:
        """The table of a graph's features; sparse ones are written out where they are narrow.

        Guarantee: which it is depends on the shape and the device alone. (How many entries there are would say more of
        what a dense product costs beside a sparse one; but where features are private, so is their number, and the two
        round apart.)
        """
        if isinstance(features, np.ndarray):
            return cls(torch.tensor(features, device=device))
        matrix = SparseMatrix(features, device)
        return cls(matrix.to_dense() if _written_out(features.shape, torch.device(device)) else matrix)

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self.rows.shape[0])

    def times(self, weight: Tensor) -> Tensor:
        """The product with a dense matrix; a row is the same bits whatever other rows the table has."""
        return self.rows @ weight if isinstance(self.rows, SparseMatrix) else row_product(self.rows, weight)

    def transposed_times(self, dense: Tensor) -> Tensor:
        """The product of the transpose, in double precision."""
        if isinstance(self.rows, SparseMatrix):
            return self.rows.double_transposed @ dense
        return self._double.T @ dense

    @cached_property
    def squares(self) -> Tensor:
        """The squared norm of every row, in double precision."""
        if isinstance(self.rows, SparseMatrix):
            return self.rows.row_squares
        norms: Tensor = torch.linalg.vector_norm(self.rows, dim=1, dtype=torch.float64)
        return norms.square()

    def at(self, nodes: IntArray) -> RowTable:
        """The table of these nodes alone."""
        return RowTable(select_rows(self.rows, torch.from_numpy(nodes).to(self.rows.device)))

    @cached_property
    def _double(self) -> Tensor:
        assert isinstance(self.rows, Tensor)
        return self.rows.double()


def _written_out(shape: tuple[int, int], device: torch.device) -> bool:
    """Whether a sparse table of this shape is held as a dense one there: in single precision and, for sums, double."""
    numbers = shape[0] * shape[1]
    if device.type != "cpu":
        return 12 * numbers <= torch.cuda.get_device_properties(device).total_memory // DEVICE_SHARE
    return shape[1] <= NARROW and numbers <= MOST_WRITTEN_OUT


class _Read(NamedTuple):
    """The table that a product reads, and which of its rows stands in which slot."""

    table: RowTable
    place: IntArray


class SlotRows:
    """The rows of the slots of some examples, example by example: row ``index[i, j]`` of the table in slot j of i.

    ``grams`` are the inner products of each example's rows (:func:`slot_grams`), where they were made beforehand.

    Guarantee: a product gives every slot the bits of its own row, whoever stands in other slots.
    """

    def __init__(self, table: RowTable, index: IntArray, grams: Tensor | None = None) -> None:
        """Nothing is computed yet."""
        self._table, self._index, self._grams = table, index, grams
        self.shape = (index.size, int(table.rows.shape[1]))
        self.dtype = table.rows.dtype

    def __matmul__(self, weight: Tensor) -> Tensor:
        """The product with a dense matrix, one row per slot: every node that occurs is multiplied once."""
        return self._read.table.times(weight).index_select(0, self._place)

    @cached_property
    def _place(self) -> Tensor:
        return torch.from_numpy(self._read.place).to(self._table.rows.device)

    @cached_property
    def row_squares(self) -> Tensor:
        """The squared norm of the row in every slot, in double precision."""
        squares = self._table.squares
        return squares[torch.from_numpy(self._index.reshape(-1)).to(squares.device)]

    def grams(self, first: int, last: int) -> Tensor:
        """The inner products of the rows of examples ``first`` to ``last`` (excluded)."""
        if self._grams is not None:
            return self._grams[first:last]
        return slot_grams(self._table, self._index[first:last])

    def transposed_times(self, dense: Tensor) -> Tensor:
        """Σ over slots of (its row)ᵀ·(its row of ``dense``), in double precision: by node first."""
        return self._read.table.transposed_times(self._by_node @ dense)

    def dense(self) -> Tensor:
        """All rows, written out; for audits of small batches."""
        rows = self._table.rows
        plain = rows.csr.to_dense() if isinstance(rows, SparseMatrix) else rows
        return plain[torch.from_numpy(self._index.reshape(-1)).to(plain.device)]

    @cached_property
    def _by_node(self) -> Tensor:
        """The matrix that adds up, for each row that is read, the slots in which it stands."""
        read = self._read
        count = np.bincount(read.place, minlength=len(read.table))
        order = np.argsort(read.place, kind="stable")
        ones, starts = np.ones(len(order)), np.concatenate([[0], np.cumsum(count)])
        matrix = sp.csr_array((ones, order, starts), shape=(len(count), len(order)))
        return SparseMatrix(matrix, self._table.rows.device).csr

    @cached_property
    def _read(self) -> _Read:
        if self._index.size >= len(self._table):
            return _Read(self._table, self._index.reshape(-1))
        nodes, place = np.unique(self._index, return_inverse=True)
        return _Read(self._table.at(nodes), place.reshape(-1))


class SlotsOnDevice(SlotRows):
    """The same for a dense table where ``places`` lies on its device: nothing is looked for on the processor, and all
    shapes follow from those of the table and of ``places``, so that a step can be recorded (``ops.recorded_sums``).
    """

    def __init__(self, table: RowTable, places: Tensor, grams: Tensor) -> None:
        """Nothing is computed yet."""
        assert isinstance(table.rows, Tensor)
        self._table, self._places, self._grams, self._rows = table, places.reshape(-1), grams, table.rows
        self.shape = (places.numel(), int(table.rows.shape[1]))
        self.dtype = table.rows.dtype

    @property
    def _reads_whole(self) -> bool:
        return len(self._table) <= _READ_WHOLE * len(self._places)

    def __matmul__(self, weight: Tensor) -> Tensor:
        """The product with a dense matrix, one row per slot."""
        if self._reads_whole:
            return self._table.times(weight).index_select(0, self._places)
        return row_product(self._rows.index_select(0, self._places), weight)

    @property
    def row_squares(self) -> Tensor:
        """The squared norm of the row in every slot, in double precision."""
        return self._table.squares.index_select(0, self._places)

    def transposed_times(self, dense: Tensor) -> Tensor:
        """Σ over slots of (its row)ᵀ·(its row of ``dense``), in double precision.

        Where the whole table is read, by node first: as the gradient of an embedding, which torch adds up in one order.
        """
        if self._reads_whole:
            by_node = torch.ops.aten.embedding_dense_backward(dense, self._places, len(self._table), -1, False)
            return self._table.transposed_times(by_node)
        total = dense.new_zeros(self.shape[1], dense.shape[1])
        step = max(1, _MOST_COPIED // self.shape[1])
        for start in range(0, len(dense), step):
            rows = self._rows.index_select(0, self._places[start : start + step])
            total.addmm_(rows.double().T, dense[start : start + step])
        return total

    def dense(self) -> Tensor:
        """All rows, written out; for audits of small batches."""
        return self._rows[self._places]


def slot_grams(table: RowTable, index: IntArray) -> Tensor:
    """(examples, slots, slots): the inner products of the rows of each example, in double precision."""
    rows = table.rows
    if isinstance(rows, SparseMatrix):
        return torch.from_numpy(sparse_row_grams(rows.scipy, index)).to(rows.device)
    examples, slots = index.shape
    found = torch.empty(examples, slots, slots, dtype=torch.float64, device=rows.device)
    step = max(1, _AT_ONCE // max(1, slots * int(rows.shape[1])))
    for start in range(0, examples, step):
        given = rows[torch.from_numpy(index[start : start + step]).to(rows.device)].double()
        found[start : start + step] = given @ given.mT
    return found
