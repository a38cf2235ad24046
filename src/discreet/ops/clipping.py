"""Per-example clipping without per-example gradients: norms from one backward pass, then one weighted product.

For a layer y = xW + b, let example i own the rows a_ij of x and g_ij of ∂loss/∂y (one row in an MLP, one for
each node of an ego-net in a layer shared over it). Its gradient is Σ_j a_ij g_ijᵀ, with squared norm
Σ_jl (a_ij·a_il)(g_ij·g_il): two small Gram matrices. The clipped sum over examples is aᵀ(c ⊙ g), the product
that plain training computes anyway. Memory does not grow with batch × parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from discreet.errors import ParameterError, UnsupportedError
from discreet.ops.affine_calls import AffineCalls, pull_back, record
from discreet.ops.sparse import SparseMatrix

_ROUNDING = 2.0**-22
"""What single precision may hide of a squared norm whose parts cancel, relative to the parts: added to it."""

_BLOCK = 1 << 22


@dataclass(frozen=True)
class ClipRule:
    """Clip each example's whole gradient to one norm, or the part in each layer to a norm of its own.

    ``total`` bounds the norm of a clipped gradient over all parameters: the sensitivity to state. Clipping
    layers at C_l is one Gaussian mechanism with noise σ against ``total`` = √ΣC_l², not L of them against C_l.
    The norms are constants: taking them from private gradients would leak.
    """

    norms: tuple[float, ...]
    per_layer: bool = False

    def __post_init__(self) -> None:
        """Norms must be positive and finite."""
        for norm in self.norms:
            if isinstance(norm, bool) or not isinstance(norm, int | float) or not 0 < norm < math.inf:
                raise ParameterError(f"a clip norm must be a positive number, not {norm!r}")
        if not self.norms or (len(self.norms) > 1 and not self.per_layer):
            raise ParameterError(f"flat clipping takes one norm, not {len(self.norms)}")

    @classmethod
    def flat(cls, norm: float) -> ClipRule:
        """One norm for the whole gradient."""
        return cls((norm,))

    @classmethod
    def layers(cls, norm: float, count: int) -> ClipRule:
        """``count`` layers at norm/√count each, so that ``total`` is ``norm``."""
        if count < 1:
            raise ParameterError(f"the number of layers must be at least 1, not {count}")
        return cls((norm / math.sqrt(count),) * count, per_layer=True)

    @property
    def total(self) -> float:
        """The bound on a clipped gradient's norm over all parameters."""
        return math.sqrt(sum(norm**2 for norm in self.norms))

    def factors(self, squares: Sequence[Tensor]) -> list[Tensor]:
        """What to multiply each example's part of each layer by, given squared norms by layer.

        An example whose norm is not finite gets factor 0.
        """
        if self.per_layer and len(squares) != len(self.norms):
            raise ParameterError(f"there are {len(self.norms)} clip norms for {len(squares)} layers")
        if not self.per_layer:
            return [_factor(torch.stack(list(squares)).sum(0), self.norms[0])] * len(squares)
        return [_factor(square, norm) for square, norm in zip(squares, self.norms, strict=True)]


def _factor(square: Tensor, norm: float) -> Tensor:
    bound = norm * (1 - 1e-6)  # the product that follows rounds too
    factor = bound / square.sqrt().clamp_min(bound)
    return torch.where(torch.isfinite(square), factor, torch.zeros_like(factor))


@dataclass(frozen=True)
class ClippedSum:
    """Σ_i clip(∇loss_i), without noise: private until the curator has added it.

    ``flat`` holds it in the order of the trainable parameters. ``norms`` are the gradients' norms before clipping
    (whole, not by layer) and ``terms``, if asked for, the clipped gradients one by one: both for audits alone.
    """

    flat: Tensor
    norms: Tensor
    terms: Tensor | None = None


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that train, in the model's order."""
    return [p for p in model.parameters() if p.requires_grad]


def views_of(flat: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """The parts of a flat vector in the shapes of the parameters; they share its memory."""
    parts = torch.split(flat, [p.numel() for p in parameters])
    return [part.view(p.shape) for part, p in zip(parts, parameters, strict=True)]


def clipped_sum(
    model: nn.Module,
    losses_of: Callable[[], Tensor],
    rule: ClipRule,
    *,
    out: Tensor | None = None,
    terms: bool = False,
) -> ClippedSum:
    """The sum of clipped per-example gradients of a model whose parameters all lie in affine layers.

    ``losses_of()`` runs the model and returns one loss an example; an example that should not count has loss 0.
    Rows of any layer must be grouped by example: (examples, width), (examples, slots, width), or flattened in
    that order. ``out`` accumulates over micro-batches. See :func:`check_rows` for a test of that layout.

    Guarantee: changing one example changes the result by one term, and every term has norm at most
    ``rule.total``, whatever the example holds: squared norms get a margin for single-precision cancellation, and
    an example whose gradient overflows counts as zero. An empty batch gives zero.
    Reference: Goodfellow (2015) for dense layers; Li et al. (2022), "ghost norms", for shared ones.
    """
    parameters = trainable(model)
    losses, calls = record(model, losses_of)
    pull_back(losses, calls)
    losses = losses.detach()
    flat = torch.zeros(sum(p.numel() for p in parameters), device=losses.device) if out is None else out
    layers = [_LayerRows.of(call, len(losses)) for call in calls if call.outputs]
    squares = [layer.squares() for layer in layers]
    if not layers:
        return ClippedSum(flat, torch.zeros_like(losses), _no_terms(losses, flat) if terms else None)
    factors = rule.factors(squares)
    views = {id(p): view for p, view in zip(parameters, views_of(flat, parameters), strict=True)}
    for layer, factor in zip(layers, factors, strict=True):
        layer.add_clipped(factor, views)
    norms = torch.stack(squares).sum(0).sqrt()
    return ClippedSum(flat, norms, _terms(parameters, layers, factors) if terms else None)


def check_rows(model: nn.Module, losses_of: Callable[[], Tensor], *, seed: int = 0) -> None:
    """Refuse a model whose examples meet, or whose rows are not grouped by example.

    Weighting the losses by random numbers must weight every example's rows of every layer by its own number.
    Whether it does is a fact of the model's structure, not of the data; costs two backward passes, once.
    """
    losses, calls = record(model, losses_of)
    weights = torch.rand(len(losses), generator=torch.Generator().manual_seed(seed)).to(losses) + 0.5
    pull_back(losses, calls, keep=True)
    plain = [_by_example(g, len(losses)) for call in calls for g in call.gradients]
    pull_back(losses, calls, weights)
    weighted = [_by_example(g, len(losses)) for call in calls for g in call.gradients]
    for before, after in zip(plain, weighted, strict=True):
        expected = before * weights[:, None, None]
        if not torch.allclose(after, expected, rtol=1e-3, atol=1e-5 * _largest(before)):
            raise UnsupportedError(
                "the loss of one example depends on rows that belong to another, so no example has a gradient of its "
                "own to clip: examples must not meet, and rows must be grouped by example"
            )


# -------------------------------------------------------------------- one layer


@dataclass
class _LayerRows:
    """The rows of one layer, (examples × slots) of them, from all its calls."""

    call: AffineCalls
    inputs: Tensor | SparseMatrix
    gradients: Tensor
    slots: int

    @classmethod
    def of(cls, call: AffineCalls, examples: int) -> _LayerRows:
        gradients = [_by_example(g, examples) for g in call.gradients]
        if len(call.inputs) == 1 and isinstance(call.inputs[0], SparseMatrix):
            rows = gradients[0]
            return cls(call, call.inputs[0], rows.flatten(0, 1), rows.shape[1])
        if any(isinstance(given, SparseMatrix) for given in call.inputs):
            raise UnsupportedError("a layer that reads sparse features may be called once in a forward pass")
        inputs = [_by_example(given, examples) for given in call.inputs if isinstance(given, Tensor)]
        rows_in, rows_out = (parts[0] if len(parts) == 1 else torch.cat(parts, 1) for parts in (inputs, gradients))
        return cls(call, rows_in.flatten(0, 1), rows_out.flatten(0, 1), rows_out.shape[1])

    @property
    def layer(self) -> nn.Module:
        return self.call.layer

    def squares(self) -> Tensor:
        """Squared norm of each example's gradient in this layer, never below the truth."""
        weight, bias = _trains(self.layer, "weight"), _trains(self.layer, "bias")
        if self.slots == 1:
            per_input = _row_squares(self.inputs) if weight else 0.0
            return (per_input + float(bias)) * _row_squares(self.gradients)
        total = torch.zeros(len(self.gradients) // self.slots, device=self.gradients.device)
        blocks = _blocks(self.gradients, self.slots)
        if bias:
            total = total + _row_squares(blocks.sum(1)) + _ROUNDING * _row_norms(blocks).sum(1).square()
        return total + self._shared_weight_squares(blocks) if weight else total

    def _shared_weight_squares(self, blocks: Tensor) -> Tensor:
        if isinstance(self.inputs, SparseMatrix):
            return _sparse_squares(self.inputs, blocks)
        rows = _blocks(self.inputs, self.slots)
        parts = (_row_norms(rows) * _row_norms(blocks)).sum(1)
        width_in, width_out = rows.shape[2], blocks.shape[2]
        if self.slots * (width_in + width_out) <= 2 * width_in * width_out:
            square = ((rows @ rows.mT) * (blocks @ blocks.mT)).sum((1, 2))
        else:
            square = _direct_squares(rows, blocks)
        bound: Tensor = square.clamp_min(0) + _ROUNDING * parts.square()
        return bound

    def add_clipped(self, factor: Tensor, views: dict[int, Tensor]) -> None:
        """Add Σ_i factor_i·(gradient of example i) to the parameters' views."""
        inputs, gradients = self._finite(factor)
        scaled = gradients * self._by_row(factor)
        if _trains(self.layer, "weight"):
            view = views[id(self.layer.weight)]
            if isinstance(inputs, SparseMatrix):
                product = inputs.transposed @ scaled
                view += product if self.call.in_by_out else product.T
            elif self.call.in_by_out:
                view.addmm_(inputs.T, scaled)
            else:
                view.addmm_(scaled.T, inputs)
        if _trains(self.layer, "bias"):
            views[id(self.layer.bias)].addmv_(scaled.T, scaled.new_ones(len(scaled)))  # twice as fast as a sum

    def _by_row(self, factor: Tensor) -> Tensor:
        """One factor an example as a column, one a row."""
        return (factor if self.slots == 1 else factor.repeat_interleave(self.slots)).unsqueeze(1)

    def _finite(self, factor: Tensor) -> tuple[Tensor | SparseMatrix, Tensor]:
        """Rows of examples with factor 0 made zero, for zero times infinity is no number."""
        if not len(factor) or bool(factor.min() > 0):
            return self.inputs, self.gradients
        rows = self._by_row(factor) == 0
        gradients = self.gradients.masked_fill(rows, 0.0)
        if isinstance(self.inputs, SparseMatrix):
            return self.inputs, gradients
        return self.inputs.masked_fill(rows, 0.0), gradients

    def terms(self, factor: Tensor) -> dict[int, Tensor]:
        """The clipped gradients one by one, (examples, numel) for each parameter; for audits of small batches."""
        inputs, gradients = self._finite(factor)
        dense = inputs.csr.to_dense() if isinstance(inputs, SparseMatrix) else inputs
        rows, blocks = (_blocks(part, self.slots) for part in (dense, gradients))
        left, right = (rows, blocks) if self.call.in_by_out else (blocks, rows)
        found = {}
        if _trains(self.layer, "weight"):
            found[id(self.layer.weight)] = (left.mT @ right).flatten(1) * factor.unsqueeze(1)
        if _trains(self.layer, "bias"):
            found[id(self.layer.bias)] = blocks.sum(1) * factor.unsqueeze(1)
        return found


def _trains(layer: nn.Module, name: str) -> bool:
    parameter = getattr(layer, name, None)
    return isinstance(parameter, nn.Parameter) and parameter.requires_grad


def _by_example(rows: Tensor, examples: int) -> Tensor:
    """(examples, slots, width), whatever shape the layer saw."""
    count = rows.numel() // rows.shape[-1]
    if examples == 0 or count % examples:
        if count == 0:
            return rows.reshape(0, 1, rows.shape[-1])
        raise UnsupportedError(f"a layer saw {count} rows for {examples} examples: rows must be grouped by example")
    return rows.reshape(examples, count // examples, rows.shape[-1])


def _blocks(rows: Tensor, slots: int) -> Tensor:
    return rows.reshape(len(rows) // slots, slots, rows.shape[1])


def _largest(values: Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0


def _row_norms(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1)
    return norms


def _row_squares(rows: Tensor | SparseMatrix) -> Tensor:
    return rows.row_squares if isinstance(rows, SparseMatrix) else _row_norms(rows).square()


def _direct_squares(rows: Tensor, blocks: Tensor) -> Tensor:
    """‖Σ_j a_j g_jᵀ‖² through the product itself, a few examples at a time: cheaper for many slots."""
    step = max(1, _BLOCK // (rows.shape[2] * blocks.shape[2]))
    parts = [_row_squares((rows[i : i + step].mT @ blocks[i : i + step]).flatten(1)) for i in range(0, len(rows), step)]
    return torch.cat(parts) if parts else rows.new_zeros(0)


def _sparse_squares(matrix: SparseMatrix, blocks: Tensor) -> Tensor:
    """The same for sparse rows: sums over the (example, feature) pairs that occur, a few examples at a time."""
    examples, slots, width = blocks.shape
    found = blocks.new_zeros(examples)
    per_example = max(1, matrix.nnz // max(1, examples))
    step = max(1, _BLOCK // (per_example * width))
    for first in range(0, examples, step):
        last = min(first + step, examples)
        part = matrix.scipy_rows(first * slots, last * slots)
        dense = blocks[first:last].reshape(-1, width)
        found[first:last] = _sparse_block(part, dense, last - first, slots)
    return found


def _sparse_block(part: sp.csr_array, dense: Tensor, examples: int, slots: int) -> Tensor:
    row = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
    pair = (row // slots) * np.int64(part.shape[1]) + part.indices
    distinct, place = np.unique(pair, return_inverse=True)
    gather = sp.csr_array((part.data, (place, row)), shape=(len(distinct), part.shape[0]))
    sums = SparseMatrix(gather, dense.device).csr @ dense
    square = sums.new_zeros(examples)
    square.index_add_(0, torch.from_numpy(distinct // part.shape[1]).to(dense.device), _row_squares(sums))
    norms = torch.from_numpy(np.sqrt(part.multiply(part).sum(axis=1)).astype(np.float32)).to(dense.device)
    parts = (norms * _row_norms(dense)).view(examples, slots).sum(1)
    return square + _ROUNDING * parts.square()


# -------------------------------------------------------------------- terms, for audits


def _no_terms(losses: Tensor, flat: Tensor) -> Tensor:
    return flat.new_zeros(len(losses), len(flat))


def _terms(parameters: Sequence[nn.Parameter], layers: Sequence[_LayerRows], factors: Sequence[Tensor]) -> Tensor:
    found: dict[int, Tensor] = {}
    for layer, factor in zip(layers, factors, strict=True):
        found |= layer.terms(factor)
    examples = len(factors[0])
    columns = [found.get(id(p), p.new_zeros(examples, p.numel())) for p in parameters]
    return torch.cat(columns, dim=1)
