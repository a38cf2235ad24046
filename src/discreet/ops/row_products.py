"""Products whose rows do not depend on their company: each row of rows·weight is the same bits in every batch.

Proofs of noisy steps compare batches with and without some examples, and take the rows of the others as the same on
both sides (``ops.clipping``). Libraries for matrix products choose their kernel by the product's shape, and the order
of additions within a row by its place at the edge of a tile: in 345 of 1,584 shapes a row's last bits change with the
size of the batch. With rows and outputs padded to whole tiles no row lies at an edge, and every row goes the same way.

This is a fact about libraries, not a theorem: tests compare bits over some thousand shapes, subsets and places (on
processors, with one thread and two). On other devices a kernel may also be chosen by the number of rows, so that
products there are made in blocks of one fixed shape.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

TILE = 16
"""Whole tiles on processors: the widest vectors hold 16 singles."""
BLOCK = 4096
"""Rows of every product on other devices: as many as a micro-batch may hold (``queries.gradients``)."""


def row_product(rows: Tensor, weight: Tensor) -> Tensor:
    """rows·weight for (…, inputs) and (inputs, outputs), forward and backward in whole tiles.

    Guarantee: in single precision, an output row depends on its input row and the weight alone, bit for bit, and so
    does a row of the gradient with respect to ``rows`` on its row of the outputs' gradient. Sums over rows (the
    gradient with respect to ``weight``) depend on all rows, as they must.
    """
    given = rows.flatten(0, -2) if rows.ndim > 2 else rows
    count, outputs = len(given), weight.shape[1]
    if given.requires_grad:  # then the backward pass has as many outputs as there are inputs here
        given, weight = pad(given, (0, _short(given.shape[1]))), pad(weight, (0, 0, 0, _short(weight.shape[0])))
    wide = pad(weight, (0, _short(outputs)))
    product = _on_processor(given, wide) if given.device.type == "cpu" else _in_blocks(given, wide)
    return product[:count, :outputs].reshape(*rows.shape[:-1], outputs)


def _short(size: int) -> int:
    """What is missing to a multiple of a tile."""
    return -size % TILE


def _on_processor(rows: Tensor, weight: Tensor) -> Tensor:
    short = _short(len(rows))
    if not short:
        return rows @ weight
    if rows.requires_grad:
        return pad(rows, (0, 0, 0, short)) @ weight
    whole = len(rows) - len(rows) % TILE  # of what is only read, and may be large, the last rows alone are copied
    return torch.cat([rows[:whole] @ weight, pad(rows[whole:], (0, 0, 0, short)) @ weight])


def _in_blocks(rows: Tensor, weight: Tensor) -> Tensor:
    padded = pad(rows, (0, 0, 0, -len(rows) % BLOCK))
    return torch.cat([block @ weight for block in torch.split(padded, BLOCK)]) if len(padded) else padded @ weight
