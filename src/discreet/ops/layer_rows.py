"""The rows of one layer in a batch: upper bounds on the norms of its examples' gradients, and their clipped sum.

What is claimed of rounding here is proved in ``ops.clipping``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from discreet.arrays import FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.ops.affine_calls import AffineCalls
from discreet.ops.compiled import compiled
from discreet.ops.inner_products import is_for_machine_code, outer_squares, row_grams, row_squares, scale_rows
from discreet.ops.slot_rows import SlotRows
from discreet.ops.sparse import SparseMatrix

UNIT = 2.0**-53
"""The rounding unit of double precision."""
CANCELLATION = 64.0
"""K: how many times longer the parts of an example's gradient may be than their sum before it is clipped for that."""
FEW = 16
"""Roundings beside those of sums: square roots, products, quotients."""
_BLOCK = 1 << 22
"""Numbers of a block that is worked out at once: 32 MiB of doubles."""
_CACHED = 1 << 17
"""Doubles of a block of rows that is turned into doubles and multiplied: about what a processor's cache holds."""
_MANY_ROWS = 4
"""So many times as many rows as a product has columns: what it gains the other way round pays for turning it."""
_LEAST_ROWS = 128
"""Of a block: with fewer, a product is slower than the memory."""


def gamma(roundings: int) -> float:
    """γ_n = nu/(1 − nu): n roundings in a row, relative to the sum of absolute values (Higham 2002, lemma 3.1)."""
    return roundings * UNIT / (1 - roundings * UNIT)


def norm_roundings(width: int, slots: int, layers: int = 1) -> int:
    """How many roundings in a row a squared norm takes, in one layer or over all: Γ is γ of it. Sums over several axes
    are taken one by one.
    """
    return width + 2 * slots + layers + FEW


class Sizes(NamedTuple):
    """Of each example, in one layer or in all: an upper bound on its squared norm, and the square of P.

    Where both are the same tensor, nothing cancels.
    """

    square: Tensor
    parts: Tensor

    @classmethod
    def of_layers(cls, layers: Sequence[Sizes]) -> Sizes:
        """Of all layers together: sums, raised by more than they err."""
        raised = 1 + gamma(len(layers) + 2)
        square = torch.stack([layer.square for layer in layers]).sum(0) * raised
        if all(layer.parts is layer.square for layer in layers):
            return cls(square, square)
        return cls(square, torch.stack([layer.parts for layer in layers]).sum(0) * raised)

    def factor(self, bound: float) -> Tensor:
        """What brings the norm to ``bound`` and P to K·bound; 0 where an example is not finite."""
        longest = self.square
        if self.parts is not self.square:
            longest = torch.maximum(longest, self.parts / CANCELLATION**2)
        factor = bound / longest.sqrt().clamp_min(bound)  # 0 where the length is infinite
        return factor.nan_to_num_(nan=0.0)


def joint_factor(layers: Sequence[Sizes], bound: float) -> Tensor:
    """What brings the norm over all layers to ``bound``: :meth:`Sizes.factor` of them together, on a processor in one
    pass.
    """
    if any(layer.parts is not layer.square or layer.square.device.type != "cpu" for layer in layers):
        return Sizes.of_layers(layers).factor(bound)
    squares = np.array([layer.square.numpy() for layer in layers])
    found = np.empty(squares.shape[1])
    compiled(_write_factors)(squares, 1 + gamma(len(layers) + 2), bound, found)
    return torch.from_numpy(found)


def _write_factors(squares: FloatArray, raised: float, bound: float, found: FloatArray) -> None:
    for example in range(squares.shape[1]):
        total = 0.0
        for layer in range(squares.shape[0]):
            total += squares[layer, example]
        length = math.sqrt(total * raised)
        if length < bound:
            length = bound
        factor = (1.0 / length) * bound
        found[example] = factor if factor == factor else 0.0  # what is no number equals nothing


class LayerRows(Protocol):
    """What a batch's rows in one layer give. ``width`` and ``slots`` are what rounding errors grow with."""

    slots: int

    @property
    def width(self) -> int:
        """Inputs and outputs together."""

    def sizes(self) -> Sizes:
        """Upper bounds on squared norms, and squares of P, of each example in this layer."""

    def write_clipped(self, factor: Tensor, views: dict[int, Tensor], *, all_count: bool) -> None:
        """Write Σ_i factor_i·(gradient of example i) to the views of this layer's parameters, and take these out of
        ``views``: what they held before does not matter. ``all_count`` is :func:`all_count` of the factors.
        """

    def terms(self, factor: Tensor) -> dict[int, Tensor]:
        """The clipped gradients one by one, (examples, numel) for each parameter; for audits of small batches."""


def rows_of(call: AffineCalls, examples: int) -> LayerRows:
    """The rows of a layer, from all its calls."""
    return ScaledRows.of(call, examples) if call.scales_columns else AffineRows.of(call, examples)


# -------------------------------------------------------------------- x·weight + bias


@dataclass
class AffineRows:
    """The rows of one layer, (examples × slots) of them, from all its calls."""

    call: AffineCalls
    inputs: Tensor | SparseMatrix | SlotRows
    gradients: Tensor
    slots: int

    @classmethod
    def of(cls, call: AffineCalls, examples: int) -> AffineRows:
        """From all calls."""
        _check_single([*call.inputs, *call.gradients])
        if len(call.inputs) == 1 and call.gradients[0].ndim == 2 and len(call.gradients[0]) == examples:
            return cls(call, call.inputs[0], call.gradients[0], 1)
        gradients = [by_example(g, examples) for g in call.gradients]
        if len(call.inputs) == 1 and not isinstance(call.inputs[0], Tensor):
            rows = gradients[0]
            return cls(call, call.inputs[0], rows.flatten(0, 1), rows.shape[1])
        if not all(isinstance(given, Tensor) for given in call.inputs):
            raise UnsupportedError("a layer that reads sparse features may be called once in a forward pass")
        inputs = [by_example(given, examples) for given in call.inputs if isinstance(given, Tensor)]
        rows_in, rows_out = (parts[0] if len(parts) == 1 else torch.cat(parts, 1) for parts in (inputs, gradients))
        return cls(call, rows_in.flatten(0, 1), rows_out.flatten(0, 1), rows_out.shape[1])

    @property
    def layer(self) -> nn.Module:
        """Whose rows these are."""
        return self.call.layer

    @property
    def width(self) -> int:
        """Inputs and outputs together."""
        return int(self.inputs.shape[1] + self.gradients.shape[1])

    def sizes(self) -> Sizes:
        """Upper bounds on squared norms, and squares of P, of each example in this layer."""
        weight, bias = _trains(self.layer, "weight"), _trains(self.layer, "bias")
        if self.slots == 1:
            return self._one_slot(weight, bias)
        found = [self._shared(first, last, weight, bias) for first, last in self._portions()]
        return Sizes(*(torch.cat(parts) for parts in zip(*found, strict=True)))

    def _one_slot(self, weight: bool, bias: bool) -> Sizes:
        """‖agᵀ‖² = ‖a‖²‖g‖²: nothing cancels, so P is the norm itself."""
        raised = 1 + 2 * gamma(self.width + FEW)
        if weight and isinstance(self.inputs, Tensor):
            square = outer_squares(self.inputs, self.gradients, float(bias), raised)
        else:
            per_input = _row_squares(self.inputs) if weight else 0.0
            square = (per_input + float(bias)) * _row_squares(self.gradients) * raised
        return Sizes(square, square)

    def _portions(self) -> Iterator[tuple[int, int]]:
        """Examples from … to, a few at a time: double precision takes twice the memory."""
        examples = len(self.gradients) // self.slots
        width = self.gradients.shape[1] + (self.inputs.shape[1] if isinstance(self.inputs, Tensor) else 0)
        if self._takes_machine_code():
            width = self.slots  # rows stay as they are, and inner products alone are held
        block = 4 * _CACHED if self.gradients.device.type == "cpu" else _BLOCK
        step = max(1, block // max(1, self.slots * width))
        return ((first, min(first + step, examples)) for first in range(0, max(examples, 1), step))

    def _takes_machine_code(self) -> bool:
        """Whether all inner products of rows are made without turning these into doubles first."""
        if isinstance(self.inputs, SparseMatrix) or not is_for_machine_code(self.gradients):
            return False
        return isinstance(self.inputs, SlotRows) or (is_for_machine_code(self.inputs) and not self._slots_are_many())

    def _shared(self, first: int, last: int, weight: bool, bias: bool) -> Sizes:
        """The sizes of some examples whose rows share the layer."""
        rows = slice(first * self.slots, last * self.slots)
        grams = row_grams(self.gradients[rows], self.slots)
        lengths = torch.diagonal(grams, dim1=1, dim2=2).sqrt()
        square, parts = torch.zeros_like(lengths[:, 0]), torch.zeros_like(lengths[:, 0])
        if bias:
            alone = lengths.sum(1).square()
            square = square + grams.sum(2).sum(1).clamp_min(0) + self._spare() * alone
            parts = parts + alone
        if weight:
            found = self._shared_weight(rows, grams, lengths)
            square, parts = square + found.square, parts + found.parts
        return Sizes(square * (1 + gamma(FEW)), parts * (1 + gamma(FEW)))

    def _spare(self) -> float:
        """What of P² is added to a squared norm: once Γ for its own error, the rest for that of P and of later sums."""
        return 4 * gamma(norm_roundings(self.width, self.slots))

    def _shared_weight(self, rows: slice, grams: Tensor, lengths: Tensor) -> Sizes:
        if isinstance(self.inputs, SparseMatrix):
            blocks = _blocks(self.gradients[rows].double(), self.slots)
            square, others = _sparse_squares(self.inputs.scipy_rows(rows.start, rows.stop), blocks)
        elif isinstance(self.inputs, Tensor) and self._slots_are_many():
            given = self.inputs[rows]
            square, others = (
                _direct_squares(given, self.gradients[rows], self.slots),
                _lengths(given).view(-1, self.slots),
            )
        else:
            of_inputs = self._input_grams(self.inputs, rows)
            square, others = (of_inputs * grams).sum(2).sum(1), torch.diagonal(of_inputs, dim1=1, dim2=2).sqrt()
        parts = (others * lengths).sum(1).square()
        return Sizes(square.clamp_min(0) + self._spare() * parts, parts)

    def _slots_are_many(self) -> bool:
        """So many that the gradient itself is smaller than the rows that it is made of."""
        inputs, outputs = self.inputs.shape[1], self.gradients.shape[1]
        return self.slots * (inputs + outputs) > 2 * inputs * outputs

    def _input_grams(self, inputs: Tensor | SlotRows, rows: slice) -> Tensor:
        if isinstance(inputs, SlotRows):
            return inputs.grams(rows.start // self.slots, rows.stop // self.slots)
        return row_grams(inputs[rows], self.slots)

    def write_clipped(self, factor: Tensor, views: dict[int, Tensor], *, all_count: bool) -> None:
        """Write Σ_i factor_i·(gradient of example i) to the views of this layer's parameters, and take these out."""
        inputs, gradients = self._finite(factor, all_count)
        by_row = factor if self.slots == 1 else factor.repeat_interleave(self.slots)
        weight = views.pop(id(self.layer.weight)) if _trains(self.layer, "weight") else None
        bias = views.pop(id(self.layer.bias)) if _trains(self.layer, "bias") else by_row.new_empty(gradients.shape[1])
        if weight is not None and isinstance(inputs, Tensor):
            self._write_products(inputs, gradients, by_row, weight, bias)
            return
        scaled = scale_rows(gradients, by_row, bias)
        if weight is not None and not isinstance(inputs, Tensor):
            summed = _transposed_times(inputs, scaled)
            weight.copy_(summed if self.call.in_by_out else summed.T)

    def _write_products(self, inputs: Tensor, gradients: Tensor, by_row: Tensor, weight: Tensor, bias: Tensor) -> None:
        """Write the sum of scaled outer products to ``weight`` and that of scaled rows to ``bias``, block by block."""
        turned, kept = self._is_turned(), 0  # the first block takes the place of what stands there
        product = weight.new_empty(weight.shape[::-1]) if turned else weight
        for some_inputs, some_gradients, factors in _in_blocks((inputs, gradients, by_row), self._rows_at_once()):
            scaled, given = scale_rows(some_gradients, factors, bias, goes_on=bool(kept)), some_inputs.double()
            left, right = (given, scaled) if self.call.in_by_out != turned else (scaled, given)
            product.addmm_(left.T, right, beta=kept)
            kept = 1
        if turned:
            weight.copy_(product.T)

    def _is_turned(self) -> bool:
        """Whether a product of many dense rows is made the other way round: it is quicker the wider it is, beside its
        height. (By shapes alone; on a GPU it makes no difference.)
        """
        outputs, rows = self.gradients.shape[1], len(self.gradients)
        if not isinstance(self.inputs, Tensor) or self.gradients.device.type != "cpu":
            return False
        inputs = self.inputs.shape[1]
        height, width = (inputs, outputs) if self.call.in_by_out else (outputs, inputs)
        return height > width and rows >= _MANY_ROWS * width

    def _rows_at_once(self) -> int:
        """Of a block. On a GPU few large ones, for each is a call."""
        outputs = self.gradients.shape[1]
        inputs = self.inputs.shape[1] if isinstance(self.inputs, Tensor) else 0  # others are multiplied whole
        if self.gradients.device.type != "cpu":
            return max(1, _BLOCK // max(outputs, inputs))
        return max(_LEAST_ROWS, _CACHED // (outputs + inputs))

    def _finite(self, factor: Tensor, all_count: bool) -> tuple[Tensor | SparseMatrix | SlotRows, Tensor]:
        """Rows of examples with factor 0 made zero, for zero times infinity is no number. (Tables are finite.)"""
        if all_count or (isinstance(self.inputs, SparseMatrix) and bool(factor.min() > 0)):
            return self.inputs, self.gradients
        rows = (factor == 0).repeat_interleave(self.slots).unsqueeze(1)
        gradients = self.gradients.masked_fill(rows, 0.0)
        if isinstance(self.inputs, SlotRows):
            return self.inputs, gradients
        if isinstance(self.inputs, SparseMatrix):
            return self.inputs.without_rows(rows.squeeze(1).cpu().numpy()), gradients
        return self.inputs.masked_fill(rows, 0.0), gradients

    def terms(self, factor: Tensor) -> dict[int, Tensor]:
        """The clipped gradients one by one, (examples, numel) for each parameter; for audits of small batches."""
        inputs, gradients = self._finite(factor, all_count(factor))
        if isinstance(inputs, SlotRows):
            dense = inputs.dense()
        else:
            dense = inputs.csr.to_dense() if isinstance(inputs, SparseMatrix) else inputs
        rows, blocks = (_blocks(part.double(), self.slots) for part in (dense, gradients))
        left, right = (rows, blocks) if self.call.in_by_out else (blocks, rows)
        found = {}
        if _trains(self.layer, "weight"):
            found[id(self.layer.weight)] = (left.mT @ right).flatten(1) * factor.unsqueeze(1)
        if _trains(self.layer, "bias"):
            found[id(self.layer.bias)] = blocks.sum(1) * factor.unsqueeze(1)
        return found


# -------------------------------------------------------------------- x ⊙ weight + bias


@dataclass
class ScaledRows:
    """One layer that scales columns: the gradient of every example (``weight``, ``bias``), and P of each."""

    layer: nn.Module
    slots: int
    weight: Tensor
    bias: Tensor
    weight_parts: Tensor
    bias_parts: Tensor

    @classmethod
    def of(cls, call: AffineCalls, examples: int) -> ScaledRows:
        """From all calls, a few examples at a time: double precision takes twice the memory."""
        _check_single([*call.inputs, *call.gradients])
        inputs = torch.cat([by_example(given, examples) for given in call.inputs if isinstance(given, Tensor)], 1)
        gradients = torch.cat([by_example(given, examples) for given in call.gradients], 1)
        step = max(1, _BLOCK // max(1, gradients.shape[1] * gradients.shape[2]))
        starts = range(0, max(len(gradients), 1), step)
        found = [cls._summed(inputs[i : i + step].double(), gradients[i : i + step].double()) for i in starts]
        return cls(call.layer, gradients.shape[1], *(torch.cat(parts) for parts in zip(*found, strict=True)))

    @staticmethod
    def _summed(inputs: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients of weight and bias, then Σ_j of the norms of what they are sums of."""
        products = inputs * gradients
        return products.sum(1), gradients.sum(1), _lengths(products).sum(1), _lengths(gradients).sum(1)

    @property
    def width(self) -> int:
        """Of a row."""
        return int(self.bias.shape[1])

    def _trained(self) -> Iterator[tuple[nn.Parameter, Tensor, Tensor]]:
        """Every parameter that trains, its gradients by example, and P."""
        for name, gradients, parts in (
            ("weight", self.weight, self.weight_parts),
            ("bias", self.bias, self.bias_parts),
        ):
            if _trains(self.layer, name):
                yield getattr(self.layer, name), gradients, parts

    def sizes(self) -> Sizes:
        """With one slot nothing cancels, so P is the norm itself; otherwise 4Γ·P² is added to squared norms."""
        square, parts = torch.zeros_like(self.bias_parts), torch.zeros_like(self.bias_parts)
        for _, gradients, longest in self._trained():
            square, parts = square + _lengths(gradients).square(), parts + longest.square()
        if self.slots == 1:
            square = square * (1 + 2 * gamma(self.width + FEW))
            return Sizes(square, square)
        spare = 4 * gamma(norm_roundings(self.width, self.slots))
        return Sizes((square + spare * parts) * (1 + gamma(FEW)), parts * (1 + gamma(FEW)))

    def write_clipped(self, factor: Tensor, views: dict[int, Tensor], *, all_count: bool) -> None:
        """One product per parameter."""
        for parameter, gradients, _ in self._trained():
            counted = gradients if all_count else _where_counted(gradients, factor)
            views.pop(id(parameter)).addmv_(counted.T, factor, beta=0)

    def terms(self, factor: Tensor) -> dict[int, Tensor]:
        """What is added up, one by one."""
        return {id(p): _where_counted(g, factor) * factor.unsqueeze(1) for p, g, _ in self._trained()}


def _where_counted(gradients: Tensor, factor: Tensor) -> Tensor:
    """Gradients of examples with factor 0 made zero, for zero times infinity is no number."""
    return gradients.masked_fill((factor == 0).unsqueeze(1), 0.0)


# -------------------------------------------------------------------- shared


def all_count(factor: Tensor) -> bool:
    """Whether no example has factor 0. To ask would make a GPU wait, so there the answer is no, and rows are masked."""
    return factor.device.type == "cpu" and bool(compiled(_are_positive)(factor.numpy()))


def _are_positive(numbers: FloatArray) -> bool:
    for number in numbers:  # noqa: SIM110 - machine code
        if not number > 0:
            return False
    return True


def _trains(layer: nn.Module, name: str) -> bool:
    parameter = layer._parameters.get(name)
    return parameter is not None and parameter.requires_grad


def _check_single(rows: Sequence[Tensor | SparseMatrix | SlotRows]) -> None:
    """Refuse doubles: their squares can vanish or overflow in double precision, and with them a norm."""
    if any(part.dtype not in (torch.float32, torch.float16, torch.bfloat16) for part in rows):
        raise UnsupportedError("gradients are clipped in double precision, so the model must run in a shorter one")


def by_example(rows: Tensor, examples: int) -> Tensor:
    """(examples, slots, width), whatever shape the layer saw."""
    count = math.prod(rows.shape[:-1])
    if examples == 0 or count % examples:
        if count == 0:
            return rows.reshape(0, 1, rows.shape[-1])
        raise UnsupportedError(
            "the rows that a layer saw are no multiple of the examples: rows must be grouped by example"
        )
    return rows.reshape(examples, count // examples, rows.shape[-1])


def _in_blocks(rows: tuple[Tensor, ...], at_once: int) -> Iterator[tuple[Tensor, ...]]:
    """The same rows of all tensors, about so many at a time: equal blocks, for one of few rows is slow."""
    count = len(rows[0])
    blocks = max(1, round(count / at_once))
    if blocks == 1:
        yield rows
        return
    size = -(-count // blocks)
    for start in range(0, count, size):
        yield tuple(part[start : start + size] for part in rows)


def _blocks(rows: Tensor, slots: int) -> Tensor:
    return rows.reshape(len(rows) // slots, slots, rows.shape[1])


def _transposed_times(rows: SparseMatrix | SlotRows, dense: Tensor) -> Tensor:
    """The product of the transpose, in double precision."""
    return rows.transposed_times(dense) if isinstance(rows, SlotRows) else rows.double_transposed @ dense


def _lengths(rows: Tensor) -> Tensor:
    """Norms along the last axis, in double precision; no square of a single vanishes or overflows there."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)
    return norms


def _row_squares(rows: Tensor | SparseMatrix | SlotRows) -> Tensor:
    return row_squares(rows) if isinstance(rows, Tensor) else rows.row_squares


def _direct_squares(rows: Tensor, gradients: Tensor, slots: int) -> Tensor:
    """‖Σ_j a_j g_jᵀ‖² of each example, through the product itself."""
    width_in, width_out = rows.shape[1], gradients.shape[1]
    given, blocks = _blocks(rows.double(), slots), _blocks(gradients.double(), slots)
    step = max(1, _BLOCK // max(1, width_in * width_out))
    parts = [(given[i : i + step].mT @ blocks[i : i + step]).square().sum(2).sum(1) for i in range(0, len(given), step)]
    return torch.cat(parts) if parts else given.new_zeros(0)


def _sparse_squares(part: sp.csr_array, blocks: Tensor) -> tuple[Tensor, Tensor]:
    """The same for sparse rows, by sums over the (example, feature) pairs that occur; and the norms of the rows."""
    examples, slots, width = blocks.shape
    row = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
    pair = (row // slots) * np.int64(part.shape[1]) + part.indices
    distinct, place = np.unique(pair, return_inverse=True)
    values = part.data.astype(np.float64)
    gather = sp.csr_array((values, (place, row)), shape=(len(distinct), part.shape[0]))
    sums = SparseMatrix(gather, blocks.device).csr @ blocks.reshape(-1, width)
    square = sums.new_zeros(examples)
    owner: IntArray = distinct // part.shape[1]
    square.index_add_(0, torch.from_numpy(owner).to(blocks.device), sums.square().sum(1))
    norms = np.sqrt(np.bincount(row, weights=values**2, minlength=part.shape[0]))
    return square, torch.from_numpy(norms).to(blocks.device).view(examples, slots)
