"""Inner products of rows in single precision, taken in double: machine code on processors, torch elsewhere.

Products of two singles are exact in double. Sums over dense rows are taken in an order of the processor's choice, which
is the same for all rows of one width; what is proved of them (``ops.clipping``) holds in any order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from discreet.arrays import FloatArray, IntArray, SingleArray
from discreet.ops.compiled import compiled, in_threads

_PORTION = 1 << 20
"""Numbers that one thread takes at a time."""


def row_squares(rows: Tensor) -> Tensor:
    """The squared norm of every row, in double precision."""
    if not is_for_machine_code(rows):
        norms: Tensor = torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)
        return norms.square()
    found = np.empty(len(rows))
    _fill(_add_squares, rows, 1, found)
    return torch.from_numpy(found)


def outer_squares(rows: Tensor, others: Tensor, beside: float, factor: float) -> Tensor:
    """(‖rows_i‖² + ``beside``)·‖others_i‖²·``factor`` for every i, in double precision: two sums, three roundings."""
    if not (is_for_machine_code(rows) and is_for_machine_code(others)):
        return (row_squares(rows) + beside) * row_squares(others) * factor
    one, other = rows.contiguous().numpy(), others.contiguous().numpy()
    found, kernel = np.empty(len(one)), compiled(_add_outer_squares, in_any_order=True)
    step = max(1, _PORTION // max(1, one.shape[1] + other.shape[1]))
    if len(found) <= step:
        kernel(one, other, beside, factor, found)
    else:
        parts = [slice(first, first + step) for first in range(0, len(found), step)]
        portions = [(one[part], other[part], beside, factor, found[part]) for part in parts]
        in_threads(kernel, portions, torch.get_num_threads())
    return torch.from_numpy(found)


def scale_rows(rows: Tensor, factors: Tensor, total: Tensor, *, goes_on: bool = False) -> Tensor:
    """Every row times its factor, in double precision: one rounding each. Their sum is written to ``total``, or added
    to what it holds where a sum ``goes_on``: as many more as there are rows.
    """
    if not is_for_machine_code(rows):
        scaled = rows.double().mul_(factors.unsqueeze(1))
        total.addmv_(scaled.T, factors.new_ones(len(rows)), beta=int(goes_on))  # twice as fast as a sum
        return scaled
    given = rows.contiguous().numpy(), factors.contiguous().numpy()
    found = np.empty(rows.shape)
    compiled(_scale_rows)(*given, found, total.numpy(), goes_on)
    return torch.from_numpy(found)


def row_grams(rows: Tensor, slots: int) -> Tensor:
    """(examples, slots, slots): the inner products of the rows of each example, of which it has so many in a row."""
    examples = len(rows) // slots
    if not is_for_machine_code(rows):
        blocks = rows.double().reshape(examples, slots, -1)
        return blocks @ blocks.mT
    found = np.empty((examples, slots, slots))
    _fill(_add_grams, rows, slots, found)
    return torch.from_numpy(found)


def sparse_row_grams(rows: sp.csr_array, index: IntArray) -> FloatArray:
    """(examples, slots, slots): the inner products of the rows ``index[i]`` of each example i.

    No entry of ``rows`` stands twice. Sums run along the columns in rising order.
    """
    examples, slots = index.shape
    found = np.empty((examples, slots, slots))
    step = max(1, _PORTION // max(1, slots * slots))
    stored = (rows.indptr, rows.indices, rows.data, rows.shape[1])
    portions = [(*stored, index[i : i + step], found[i : i + step]) for i in range(0, examples, step)]
    in_threads(compiled(_add_sparse_grams), portions, torch.get_num_threads())
    return found


def is_for_machine_code(rows: Tensor) -> bool:
    """Whether inner products of these rows are taken without turning them into doubles first."""
    return rows.device.type == "cpu" and rows.dtype == torch.float32


def _fill(kernel: Callable[..., None], rows: Tensor, slots: int, found: FloatArray) -> None:
    """Some examples at a time, on as many threads as torch has."""
    given = rows.contiguous().numpy()
    step = max(1, _PORTION // max(1, slots * given.shape[1]))
    firsts = range(0, len(found), step)
    portions = [(given[first * slots : (first + step) * slots], found[first : first + step]) for first in firsts]
    in_threads(compiled(kernel, in_any_order=True), portions, torch.get_num_threads())


def _add_squares(rows: SingleArray, found: FloatArray) -> None:
    for row in range(rows.shape[0]):
        total = 0.0
        for column in range(rows.shape[1]):
            entry = np.float64(rows[row, column])
            total += entry * entry
        found[row] = total


def _add_outer_squares(rows: SingleArray, others: SingleArray, beside: float, factor: float, found: FloatArray) -> None:
    for row in range(rows.shape[0]):
        total = other_total = 0.0
        for column in range(rows.shape[1]):
            entry = np.float64(rows[row, column])
            total += entry * entry
        for column in range(others.shape[1]):
            entry = np.float64(others[row, column])
            other_total += entry * entry
        found[row] = (total + beside) * other_total * factor


def _scale_rows(rows: SingleArray, factors: FloatArray, scaled: FloatArray, total: FloatArray, goes_on: bool) -> None:
    if not goes_on:
        total[:] = 0.0
    for row in range(rows.shape[0]):
        factor = factors[row]
        for column in range(rows.shape[1]):
            entry = np.float64(rows[row, column]) * factor
            scaled[row, column] = entry
            total[column] += entry


def _add_grams(rows: SingleArray, found: FloatArray) -> None:
    slots, width = found.shape[1], rows.shape[1]
    held = np.empty((slots, width))
    for example in range(found.shape[0]):
        for slot in range(slots):
            for column in range(width):
                held[slot, column] = rows[example * slots + slot, column]
        for one in range(slots):
            for other in range(one + 1):
                total = 0.0
                for column in range(width):
                    total += held[one, column] * held[other, column]
                found[example, one, other] = total
                found[example, other, one] = total


def _add_sparse_grams(
    indptr: IntArray, indices: IntArray, data: SingleArray, width: int, index: IntArray, found: FloatArray
) -> None:
    """Each row is written out once, and its product with every row before it reads the entries of that one alone."""
    written_out = np.zeros(width)
    for example in range(index.shape[0]):
        for one in range(index.shape[1]):
            first, last = indptr[index[example, one]], indptr[index[example, one] + 1]
            for entry in range(first, last):
                written_out[indices[entry]] = data[entry]
            for other in range(one + 1):
                row, total = index[example, other], 0.0
                for entry in range(indptr[row], indptr[row + 1]):
                    total += written_out[indices[entry]] * np.float64(data[entry])
                found[example, one, other] = total
                found[example, other, one] = total
            for entry in range(first, last):
                written_out[indices[entry]] = 0.0
