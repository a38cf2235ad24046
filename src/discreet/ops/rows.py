"""Rows one by one: bounding them (unit norm, or norm at most C), where what one node can contribute starts; and
products whose rows do not depend on their company.

**Products.** Each row of rows·weight is the same bits in every batch. Proofs of noisy steps compare batches with and
without some examples, and take the rows of the others as the same on both sides (``ops.clipping``). Libraries for
matrix products choose their kernel by the product's shape, and the order of additions within a row by its place at the
edge of a tile: in 345 of 1,584 shapes a row's last bits change with the size of the batch. With rows and outputs padded
to whole tiles no row lies at an edge, and every row goes the same way.

This is a fact about libraries, not a theorem: tests compare bits over some thousand shapes, subsets and places (on
processors, with one thread and two). On other devices a kernel may also be chosen by the number of rows, so that
products there are made in blocks of one fixed shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import pad

from discreet.arrays import Array, FloatArray, SingleArray
from discreet.errors import ParameterError
from discreet.graph.clean import Features
from discreet.graph.edge_weights import SUM_PLACES
from discreet.workers import thread_count

# Dividing in float32 can leave a norm one rounding step above 1; this margin keeps it below.
_MARGIN = 1 - 1e-6
# Sums over a million neighbours in double precision err by less than this part.
_DOUBLE_MARGIN = 1 - 1e-10
_AT_ONCE = 1 << 14  # rows, see portions
# Binary places of rows that are multiplied with their sums, see lattice_products.
PRODUCT_PLACES = 12
# Sums below and above are multiplied apart.
_HALFWAY = 2.0**10


def portions(count: int) -> Iterator[slice]:
    """So many rows in slices of a size that suits a processor's caches: what is worked out of them stays small."""
    for start in range(0, count, _AT_ONCE):
        yield slice(start, min(start + _AT_ONCE, count))


@contextmanager
def mapped_by_threads(count: int) -> Iterator[Callable[..., Iterable[None]]]:
    """A ``map`` over the :func:`portions` of so many rows, on all threads where there are several.

    For work that numpy does without the interpreter, each portion by itself.
    """
    threads = min(thread_count(), -(-count // _AT_ONCE))
    if threads < 2:
        yield map
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="rows") as pool:
        yield pool.map


def normalize_rows(rows: Tensor) -> Tensor:
    """Each row scaled to unit ℓ2 norm; a zero row stays zero.

    Guarantee: no row of the result has norm above 1, at every width. Norms are summed in double precision, where a
    million squares err by 10⁻¹⁰, and two roundings of single precision follow, within the margin. Depends on each row
    alone.
    """
    # Dividing by the largest entry first keeps squares away from where they vanish or overflow.
    largest = rows.abs().amax(dim=1, keepdim=True)
    scaled = rows / torch.where(largest > 0, largest, torch.ones_like(largest))
    norms = torch.linalg.vector_norm(scaled, dim=1, keepdim=True, dtype=torch.float64)
    unit: Tensor = scaled / norms.clamp_min(1.0).to(rows.dtype)
    return unit * _MARGIN


def cut_rows(rows: Array, norm: float) -> FloatArray:
    """Each row, in double precision, cut to ℓ2 norm at most ``norm``; shorter rows are left alone.

    Guarantee: for every input, no row of the result has norm above ``norm``, by a margin above what rounding adds to
    sums of a million of them. A row that is not finite becomes zero: it would show in exactly the sums that its edges
    carry it to. One too long to measure is cut to nothing. Depends on each row alone.
    """
    values = np.asarray(rows, dtype=np.float64)
    finite = np.where(np.isfinite(values).all(axis=1, keepdims=True), values, 0.0)
    bound = norm * _DOUBLE_MARGIN
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(finite, axis=1, keepdims=True)
    return np.asarray(finite * (bound / np.maximum(lengths, bound if bound > 0 else 1.0)))


def on_lattice(rows: Array, places: int = SUM_PLACES) -> Array:
    """Each entry cut off, towards zero, at a multiple of 2^−places, in the precision given.

    Guarantee: no row becomes longer, and each depends on itself alone. Sums of such rows are exact in double precision,
    in whatever order, while they stay below 2^(53 − places): rows of norm 1 in 23 places up to 2³⁰ of them. Scaling by
    powers of two is exact in either precision, so both give the same numbers.
    """
    scale = 2.0**places
    return np.asarray(np.trunc(rows * scale) / scale)


def cut_on_lattice(rows: Array, norm: float, places: int = SUM_PLACES) -> SingleArray:
    """:func:`cut_rows` at a ``norm`` of at most 1, then :func:`on_lattice` with at most 23 places, in single precision.

    Guarantee: that of both. Single precision holds the result exactly: entries are at most 2^places ≤ 2²³ steps.
    """
    found = np.empty(rows.shape, dtype=np.float32)

    def work(part: slice) -> None:
        found[part] = on_lattice(cut_rows(rows[part], norm), places)

    with mapped_by_threads(len(rows)) as each:
        list(each(work, portions(len(rows))))
    return found


def lattice_products(rows: Array, sums: FloatArray) -> FloatArray:
    """``rows.T @ sums`` for rows of norm at most 1 in :data:`PRODUCT_PLACES` places, and sums of up to 2³⁰ such rows,
    each times a weight and in :data:`SUM_PLACES` places.

    Guarantee: the exact table, rounded once. Of a portion of 2¹⁴ rows, products with the part of a sum from 2¹⁰ on are
    multiples of ¼ below 2⁴⁴ in all, those with the part below it multiples of 2⁻²⁴ below 2²⁴, and those with what lies
    below PRODUCT_PLACES (where edges have weights) multiples of 2⁻³⁵ below 4: all are exact in whatever order. Portions
    are added up with what each addition rounds away kept beside, which is exact too.
    """
    table = np.zeros((rows.shape[1], sums.shape[1]))
    lost = np.zeros_like(table)
    for part in portions(len(rows)):
        sent, low = rows[part].T.astype(np.float64), np.fmod(sums[part], _HALFWAY)
        coarse = on_lattice(low, PRODUCT_PLACES)
        for more in (sent @ (sums[part] - low), sent @ coarse, sent @ (low - coarse)):
            total = table + more
            added = total - table
            lost += (table - (total - added)) + (more - added)
            table = total
    return table + lost


def cut_sparse_rows(rows: sp.csr_array, norm: float) -> sp.csr_array:
    """:func:`cut_rows` for CSR, with the same guarantee; sparse stays sparse."""
    matrix = sp.csr_array(rows, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    count = matrix.shape[0]
    row = np.repeat(np.arange(count), np.diff(matrix.indptr))
    broken = np.bincount(row, weights=~np.isfinite(matrix.data), minlength=count) > 0
    values = np.where(broken[row], 0.0, matrix.data)
    bound = norm * _DOUBLE_MARGIN
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.bincount(row, weights=values**2, minlength=count))
    matrix.data = values * (bound / np.maximum(lengths, bound))[row]
    return matrix


def unit_rows(rows: Array) -> Array:
    """Each row scaled to unit ℓ2 norm, in the precision given; a zero row stays zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1.0), dtype=rows.dtype)


LENGTH_COLUMNS = 18
"""Columns that say how long a row was: one for each power of two from 2⁻⁸ to 2⁹."""
_SHORTEST = -8
"""The power of the first of them."""


def rows_of_norm(rows: Features, norm: float, length_norm: float = 0.0) -> Features:
    """Each row scaled to this ℓ2 norm, dense or CSR as given; a zero row stays zero. Depends on each row alone.

    Scaling forgets how long a row was. With ``length_norm`` the rows get :data:`LENGTH_COLUMNS` more columns that say
    so, of this norm: a length between two powers of two is shared between their columns.
    """
    scaled = _scaled_to_norm(rows, norm)
    if not length_norm:
        return scaled
    columns = _length_columns(_row_lengths(rows), length_norm).astype(rows.dtype)
    if isinstance(scaled, np.ndarray):
        return np.hstack([scaled, columns])
    return sp.csr_array(sp.hstack([scaled, sp.csr_array(columns)], format="csr"))


def _row_lengths(rows: Features) -> FloatArray:
    """In double precision, where no square of a feature vanishes or overflows."""
    if isinstance(rows, np.ndarray):
        parts = (rows[i : i + _AT_ONCE].astype(np.float64) for i in range(0, len(rows), _AT_ONCE))
        return np.asarray(np.sqrt(np.concatenate([(part**2).sum(axis=1) for part in parts] or [np.zeros(0)])))
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    squares = rows.data.astype(np.float64) ** 2
    return np.asarray(np.sqrt(np.bincount(row, weights=squares, minlength=rows.shape[0])))


def _length_columns(lengths: FloatArray, norm: float) -> FloatArray:
    """Where a length stands follows from its exponent, which is exact."""
    place = np.clip(
        np.where(lengths > 0, np.frexp(lengths)[1] - 1, _SHORTEST), _SHORTEST, _SHORTEST + LENGTH_COLUMNS - 2
    )
    share = np.clip(lengths / np.exp2(place) - 1, 0.0, 1.0)
    columns, rows = np.zeros((len(lengths), LENGTH_COLUMNS)), np.arange(len(lengths))
    columns[rows, place - _SHORTEST], columns[rows, place - _SHORTEST + 1] = 1 - share, share
    return np.asarray(columns * (norm / np.hypot(1 - share, share))[:, None])


def _scaled_to_norm(rows: Features, norm: float) -> Features:
    if isinstance(rows, np.ndarray):
        return _dense_of_norm(rows, norm)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    values = np.asarray(rows.data, dtype=np.float64)
    largest = np.zeros(rows.shape[0])
    np.maximum.at(largest, row, np.abs(values))
    values = values / np.where(largest > 0, largest, 1)[row]  # so that no square vanishes or overflows
    lengths = np.sqrt(np.bincount(row, weights=values**2, minlength=rows.shape[0]))
    values = (values * (norm / np.where(lengths > 0, lengths, 1))[row]).astype(rows.dtype)
    return sp.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)


def _dense_of_norm(rows: Array, norm: float) -> Array:
    """A portion at a time: double precision takes twice the memory."""
    scaled = np.empty_like(rows)
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE].astype(np.float64)
        largest = np.abs(part).max(axis=1, initial=0.0, keepdims=True)
        part /= np.where(largest > 0, largest, 1)  # so that no square vanishes or overflows
        lengths = np.sqrt((part**2).sum(axis=1, keepdims=True))
        scaled[start : start + _AT_ONCE] = part * (norm / np.where(lengths > 0, lengths, 1))
    return scaled


def clip_rows(rows: Tensor, max_norm: float) -> Tensor:
    """Each row scaled down to ℓ2 norm at most ``max_norm``; shorter rows are left alone.

    Guarantee: no row of the result has norm above ``max_norm``, at every width and however long it was (as
    :func:`normalize_rows`: norms, factors and products are in double precision, and one rounding of single precision
    follows). Depends on each row alone. ``max_norm`` must be a constant or released: reading it from the rows would
    leak. (A factor in single precision is a whole number of 2⁻¹⁴⁹: beside numbers of 10³⁸ that is too coarse, and rows
    came out at 1.2 times a norm of 10⁻⁶.)
    """
    if not max_norm > 0:
        raise ParameterError(f"the clip norm must be positive, not {max_norm}")
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)
    scale: Tensor = max_norm * _MARGIN / norms.clamp_min(torch.finfo(torch.float64).tiny)
    return (rows.double() * scale.clamp_max(1.0)).to(rows.dtype)


def finite_rows(rows: Tensor) -> Tensor:
    """Each row as it is, or zero where an entry overflowed. Depends on each row alone."""
    return torch.where(torch.isfinite(rows).all(dim=1, keepdim=True), rows, torch.zeros_like(rows))


def damp_rows(rows: Tensor) -> Tensor:
    """Each row rescaled to norm log(1 + norm): directions stay, hubs do not dominate. Post-processing only."""
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(torch.finfo(rows.dtype).tiny)
    factors: Tensor = torch.log1p(norms) / norms
    return rows * factors


# -------------------------------------------------------------------- products

TILE = 16
"""Whole tiles on processors: the widest vectors hold 16 singles."""
BLOCK = 4096
"""Rows of every product on other devices; a larger micro-batch (``queries.gradients``) takes several products."""


def row_product(rows: Tensor, weight: Tensor) -> Tensor:
    """rows·weight for (…, inputs) and (inputs, outputs), forward and backward in whole tiles.

    Guarantee: in single precision, an output row depends on its input row and the weight alone, bit for bit, and so
    does a row of the gradient with respect to ``rows`` on its row of the outputs' gradient. Sums over rows (the
    gradient with respect to ``weight``) depend on all rows, as they must.
    """
    given = rows.flatten(0, -2) if rows.ndim > 2 else rows
    count, outputs = given.shape[0], weight.shape[1]
    if given.requires_grad:  # then the backward pass has as many outputs as there are inputs here
        short = _short(given.shape[1])
        given, weight = _padded(given, columns=short), _padded(weight, rows=short)
    wide = _padded(weight, columns=_short(outputs))
    product = _on_processor(given, wide) if given.device.type == "cpu" else _in_blocks(given, wide)
    if product.shape != (count, outputs):
        product = product[:count, :outputs]
    return product if rows.ndim == 2 else product.reshape(*rows.shape[:-1], outputs)


def weight_slope(rows: Tensor, slope: Tensor) -> Tensor:
    """The gradient of :func:`row_product` on a processor with respect to its weight.

    ``rows`` have no gradient themselves, and ``slope`` is that of the product. The tiles are those that autograd has,
    so that the bits are too.
    """
    count, outputs = slope.shape
    whole, short = count - count % TILE, _short(count)
    wide = _padded(slope, columns=_short(outputs))
    if not short:
        found = rows.t() @ wide
    else:
        found = rows[:whole].t() @ wide[:whole]
        found = found + _padded(rows[whole:], rows=short).t() @ _padded(wide[whole:], rows=short)
    return found[:, :outputs]


def product_slopes(rows: Tensor, weight: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """The same where ``rows`` have a gradient too: of the weight, and of the rows."""
    count, outputs = slope.shape
    short = _short(count)
    wide = _padded(slope, rows=short, columns=_short(outputs))
    of_weight = _padded(rows, rows=short).t() @ wide
    of_rows = wide @ _padded(weight, columns=_short(outputs)).t()
    return of_weight[:, :outputs], of_rows[:count]


def _short(size: int) -> int:
    """What is missing to a multiple of a tile."""
    return -size % TILE


def _padded(matrix: Tensor, *, rows: int = 0, columns: int = 0) -> Tensor:
    """With so many rows and columns of zeros more; the matrix itself where there are none, which ``pad`` would copy."""
    return pad(matrix, (0, columns, 0, rows)) if rows or columns else matrix


def _on_processor(rows: Tensor, weight: Tensor) -> Tensor:
    count = rows.shape[0]
    short = _short(count)
    if not short:
        return rows @ weight
    if rows.requires_grad:
        return _padded(rows, rows=short) @ weight
    whole = count - count % TILE  # of what is only read, and may be large, the last rows alone are copied
    return torch.cat([rows[:whole] @ weight, _padded(rows[whole:], rows=short) @ weight])


def _in_blocks(rows: Tensor, weight: Tensor) -> Tensor:
    whole = len(rows) - len(rows) % BLOCK  # the last rows alone are copied to be padded
    parts = [block @ weight for block in torch.split(rows[:whole], BLOCK)] if whole else []
    if whole < len(rows) or not parts:
        parts.append(_padded(rows[whole:], rows=-len(rows) % BLOCK) @ weight)
    return parts[0] if len(parts) == 1 else torch.cat(parts)
