"""Inner products of rows in single precision, taken in double: machine code on processors, torch elsewhere.

Products of two singles are exact in double. Sums are taken in an order of the processor's choice, which is the same for
all rows of one width; what is proved of them (``ops.clipping``) holds in any order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from discreet.arrays import FloatArray, SingleArray
from discreet.ops.compiled import compiled, in_threads

_PORTION = 1 << 20
"""Numbers that one thread takes at a time."""


def row_squares(rows: Tensor) -> Tensor:
    """The squared norm of every row, in double precision."""
    if not _is_for_machine_code(rows):
        norms: Tensor = torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)
        return norms.square()
    found = np.empty(len(rows))
    _fill(_add_squares, rows, 1, found)
    return torch.from_numpy(found)


def row_grams(rows: Tensor, slots: int) -> Tensor:
    """(examples, slots, slots): the inner products of the rows of each example, of which it has so many in a row."""
    examples = len(rows) // slots
    if not _is_for_machine_code(rows):
        blocks = rows.double().reshape(examples, slots, -1)
        return blocks @ blocks.mT
    found = np.empty((examples, slots, slots))
    _fill(_add_grams, rows, slots, found)
    return torch.from_numpy(found)


def _is_for_machine_code(rows: Tensor) -> bool:
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
