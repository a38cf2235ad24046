"""Per-example clipping without per-example gradients: norms from one backward pass, then one weighted product.

For a layer y = xW + b, let example i own the rows a_ij of x and g_ij of ∂loss/∂y (one row in an MLP, one for
each node of an ego-net in a layer shared over it). Its gradient is Σ_j a_ij g_ijᵀ, with squared norm
Σ_jl (a_ij·a_il)(g_ij·g_il): two small Gram matrices. The clipped sum over examples is aᵀ(c ⊙ g), the product
that plain training computes anyway. Memory does not grow with batch × parameters.

**What the machine computes.** Rows a and g are single-precision numbers; by *term* is meant c_i times the exact
gradient that they stand for. All arithmetic on them here is in double precision: u = 2⁻⁵³, γ_n = nu/(1 − nu). Neither
products of four singles nor C over the longest gradient leave the range of normal doubles (``limits.NORM``).

*Norms.* Write P_i = Σ_j ‖a_ij‖‖g_ij‖ (for a bias Σ_j ‖g_ij‖; over parameters √ΣP²). A product of two singles is exact
in double, so an inner product of width w errs by at most γ_w times the product of the two norms, whatever the order of
summation. Sums over two axes are taken one axis at a time. So what is computed for the squared norm errs by at most
Γ·P_i², Γ = γ of (both widths + 2·slots + a few): by Gram matrices (width, product, two sums over slots), or through
G = Σ_j a_j g_jᵀ itself (‖Ĝ − G‖ ≤ γ_slots·P, so 2γ_slots·P² in the square, then two sums over the widths). 4Γ·P_i² is
added: once for this, the rest for the rounding of P_i and for sums over layers (of which there may be as many as the
layers are wide). No norm is underestimated, however the slots cancel.

*Clipping.* The factor c_i brings both the norm to C′ and P_i to K·C′, K = :data:`CANCELLATION`: an example whose slots
cancel more than K-fold is clipped harder than its norm asks, because its rounding errors are what is left of it. With
one slot nothing cancels: P_i is the norm, and K is 1.

*Factors.* c_i is a function of its own example up to rounding: the squared length that it divides by is at least
P_i²/K² and errs by at most ΓP_i² and a few roundings of its own, so c_i has a relative error of at most ΓK² (half of it
would do).

*Sums.* A product of N rows errs in each entry by at most γ_N Σ_k |a_k||g_k|, hence in norm by at most
γ_N Σ_i c_i P_i ≤ γ_N·n·K·C′ over n terms (over several parameters by Minkowski's inequality). Where an input row stands
in many slots, the g_k of these may be summed before they meet it (``ops.slot_rows``): a number then passes through two
sums of at most N, so γ_2N is what is set aside; M micro-batches that are added one after the other make that γ_{2N+M}.
With the errors of factors this is E = n(γ_{2N+M}·K + ΓK²)C′: a computed sum is within E of the sum of exact terms, in
whatever order, batch and portions it was made.

*Steps.* Let s be what is computed for a batch without the changed examples: the same bits on both graphs. With i ≥ 1
of them the sum is within i·C′ + 2E of s, and C′ = C − 2E (:meth:`ClipRule.within`) makes that no more than i·C, which
is what the proofs of ``privacy.events`` ask; between both graphs it moves by at most 2i·C′ + 2E. An example that is
null adds exactly zero, but its place in the batch may move the rounding, and where a proof needs s itself (Poisson
batches under null) that is too much: the caller leaves such examples out (``queries.gradients`` does).

*What this rests on.* The rows of an example must be the same bits on both graphs, whatever the other examples hold and
however many there are: E does not cover single-precision rounding. That is for the model to see to: dense products in
whole tiles (``ops.row_products``), and nothing in which a number's rounding depends on its place. Tests compare the
bits of all rows of the library's networks in batches of many sizes, on processors; kernels for sparse products on GPUs
may share a row's work by what other rows hold. (With plain products the other terms of a Poisson batch moved together
by up to 1e-6 C on ordinary data; placed at ties between logits of 1e9, for weights known beforehand, by 4.5 C.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from discreet.arrays import IntArray
from discreet.errors import ParameterError, UnsupportedError
from discreet.ops.affine_calls import AffineCalls, pull_back, record
from discreet.ops.slot_rows import SlotRows
from discreet.ops.sparse import SparseMatrix

UNIT = 2.0**-53
"""The rounding unit of double precision."""
CANCELLATION = 64.0
"""K: how many times longer the parts of an example's gradient may be than their sum before it is clipped for that."""
LARGEST_ERROR = 0.01
"""The most of a clip norm that rounding may take; beyond it sums of so many terms are refused."""
_FEW = 16
"""Roundings beside those of sums: square roots, products, quotients."""
_BLOCK = 1 << 22


def gamma(roundings: int) -> float:
    """γ_n = nu/(1 − nu): n roundings in a row, relative to the sum of absolute values (Higham 2002, lemma 3.1)."""
    return roundings * UNIT / (1 - roundings * UNIT)


def norm_roundings(width: int, slots: int) -> int:
    """How many roundings in a row a squared norm takes: Γ is γ of it. Sums over two axes are taken one by one."""
    return width + 2 * slots + _FEW


@dataclass(frozen=True)
class Room:
    """How large sums may be, from public figures alone: what the error E of a step follows from.

    ``terms`` is the number of examples in a step, ``at_once`` in a micro-batch, and ``micro_batches`` how many of these
    make a step: each at most. None of them may depend on which batch was drawn, or clipping would.
    """

    terms: int = 1 << 12
    at_once: int = 1 << 12
    micro_batches: int = 1 << 8

    def error(self, width: int, slots: int) -> float:
        """E over C′, see the module; ``width`` is that of the widest layer, ``slots`` are rows per example."""
        longer = CANCELLATION if slots > 1 else 1.0
        of_sums = gamma(2 * self.at_once * slots + self.micro_batches + _FEW) * longer
        of_factors = gamma(norm_roundings(width, slots)) * longer**2
        return self.terms * (of_sums + of_factors)


DEFAULT_ROOM = Room()


class Sizes(NamedTuple):
    """Of each example, in one layer or in all: an upper bound on its squared norm, and the square of P."""

    square: Tensor
    parts: Tensor

    def factor(self, bound: float) -> Tensor:
        """What brings the norm to ``bound`` and P to K·bound; 0 where an example is not finite."""
        length = torch.maximum(self.square, self.parts / CANCELLATION**2).sqrt()
        factor = bound / length.clamp_min(bound)
        return torch.where(torch.isfinite(length), factor, torch.zeros_like(factor))


@dataclass(frozen=True)
class ClipRule:
    """Clip each example's whole gradient to one norm, or the part in each layer to a norm of its own.

    ``total`` bounds the norm of a clipped gradient over all parameters: the sensitivity to state. Clipping
    layers at C_l is one Gaussian mechanism with noise σ against ``total`` = √ΣC_l², not L of them against C_l.
    The norms are constants: taking them from private gradients would leak.
    """

    norms: tuple[float, ...]
    per_layer: bool = False
    room: Room = DEFAULT_ROOM

    def __post_init__(self) -> None:
        """Norms must be positive and finite."""
        for norm in self.norms:
            if isinstance(norm, bool) or not isinstance(norm, int | float) or not 0 < norm < math.inf:
                raise ParameterError(f"a clip norm must be a positive number, not {norm!r}")
        if not self.norms or (len(self.norms) > 1 and not self.per_layer):
            raise ParameterError(f"flat clipping takes one norm, not {len(self.norms)}")

    @classmethod
    def flat(cls, norm: float, room: Room = DEFAULT_ROOM) -> ClipRule:
        """One norm for the whole gradient."""
        return cls((norm,), room=room)

    @classmethod
    def layers(cls, norm: float, count: int, room: Room = DEFAULT_ROOM) -> ClipRule:
        """``count`` layers at norm/√count each, so that ``total`` is ``norm``."""
        if count < 1:
            raise ParameterError(f"the number of layers must be at least 1, not {count}")
        return cls((norm / math.sqrt(count),) * count, per_layer=True, room=room)

    @property
    def total(self) -> float:
        """The bound on a clipped gradient's norm over all parameters."""
        return math.sqrt(sum(norm**2 for norm in self.norms))

    def within(self, width: int, slots: int) -> list[float]:
        """C′ = C − 2E for each norm: what terms are clipped to so that computed sums keep to C."""
        error = self.room.error(width, slots)
        if error > LARGEST_ERROR:
            raise UnsupportedError(
                f"sums over {self.room.terms} examples of {slots} rows cannot be proved to keep to a clip norm within "
                f"{LARGEST_ERROR:.0%} in double precision: use fewer training nodes, or a smaller fan_in"
            )
        return [norm * (1 - 2 * error) * (1 - gamma(_FEW)) for norm in self.norms]

    def factors(self, sizes: Sequence[Sizes], width: int, slots: int) -> list[Tensor]:
        """What to multiply each example's part of each layer by. An example that is not finite gets factor 0."""
        bounds = self.within(width, slots)
        if self.per_layer and len(sizes) != len(bounds):
            raise ParameterError(f"there are {len(bounds)} clip norms for {len(sizes)} layers")
        if not self.per_layer:
            whole = Sizes(*(torch.stack(parts).sum(0) for parts in zip(*sizes, strict=True)))
            return [whole.factor(bounds[0])] * len(sizes)
        return [size.factor(bound) for size, bound in zip(sizes, bounds, strict=True)]


@dataclass(frozen=True)
class ClippedSum:
    """Σ_i clip(∇loss_i), without noise: private until the curator has added it.

    ``flat`` holds it, in double precision, in the order of the trainable parameters. ``norms`` bound the gradients'
    norms before clipping (whole, not by layer) and ``terms``, if asked for, are the clipped gradients one by one: both
    for audits alone.
    """

    flat: Tensor
    norms: Tensor
    terms: Tensor | None = None


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that train, in the model's order."""
    return [p for p in model.parameters() if p.requires_grad]


def widest_layer(model: nn.Module) -> int:
    """Inputs and outputs of the widest affine layer together: what rounding errors of norms grow with."""
    return max((sum(p.shape) for p in trainable(model) if p.ndim == 2), default=1)


def views_of(flat: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """The parts of a flat vector in the shapes of the parameters; they share its memory."""
    parts = torch.split(flat, [p.numel() for p in parameters])
    return [part.view(p.shape) for part, p in zip(parts, parameters, strict=True)]


def clipped_sum(
    model: nn.Module, losses_of: Callable[[], Tensor], rule: ClipRule, *, terms: bool = False
) -> ClippedSum:
    """The sum of clipped per-example gradients of a model whose parameters all lie in affine layers.

    ``losses_of()`` runs the model and returns one loss per example; an example that should not count has loss 0.
    Rows of any layer must be grouped by example: (examples, width), (examples, slots, width), or flattened in
    that order. See :func:`check_rows` for a test of that layout.

    Guarantee: changing one example changes one term, and every term has norm at most C′ of ``rule``, whatever the
    example holds; the computed sum is within E of the sum of terms (see the module). An example whose gradient
    overflows counts as zero. An empty batch gives zero. More examples than ``rule.room`` admits are refused.
    Reference: Goodfellow (2015) for dense layers; Li et al. (2022), "ghost norms", for shared ones.
    """
    parameters = trainable(model)
    losses, calls = record(model, losses_of)
    pull_back(losses, calls)
    losses = losses.detach()
    flat = torch.zeros(sum(p.numel() for p in parameters), device=losses.device, dtype=torch.float64)
    layers = [_LayerRows.of(call, len(losses)) for call in calls if call.outputs]
    if not layers:
        return ClippedSum(flat, torch.zeros_like(losses), _no_terms(losses, flat) if terms else None)
    if len(losses) > rule.room.at_once:
        raise UnsupportedError(f"there are more examples at once than the {rule.room.at_once} that were planned")
    sizes = [layer.sizes() for layer in layers]
    factors = rule.factors(sizes, max(layer.width for layer in layers), max(layer.slots for layer in layers))
    views = {id(p): view for p, view in zip(parameters, views_of(flat, parameters), strict=True)}
    for layer, factor in zip(layers, factors, strict=True):
        layer.add_clipped(factor, views)
    norms = torch.stack([size.square for size in sizes]).sum(0).sqrt()
    return ClippedSum(flat, norms, _terms(parameters, layers, factors) if terms else None)


def check_rows(model: nn.Module, losses_of: Callable[[], Tensor], *, seed: int = 0) -> None:
    """Refuse a model whose examples meet, or whose rows are not grouped by example.

    Weighting the losses by random numbers must weight every example's rows of every layer by its own number.
    Whether it does is a fact of the model's structure, not of the data (the numbers are fixed by a public seed and
    nothing of them is released); costs two backward passes, once.
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
    inputs: Tensor | SparseMatrix | SlotRows
    gradients: Tensor
    slots: int

    @classmethod
    def of(cls, call: AffineCalls, examples: int) -> _LayerRows:
        _check_single([*call.inputs, *call.gradients])
        gradients = [_by_example(g, examples) for g in call.gradients]
        if len(call.inputs) == 1 and not isinstance(call.inputs[0], Tensor):
            rows = gradients[0]
            return cls(call, call.inputs[0], rows.flatten(0, 1), rows.shape[1])
        if not all(isinstance(given, Tensor) for given in call.inputs):
            raise UnsupportedError("a layer that reads sparse features may be called once in a forward pass")
        inputs = [_by_example(given, examples) for given in call.inputs if isinstance(given, Tensor)]
        rows_in, rows_out = (parts[0] if len(parts) == 1 else torch.cat(parts, 1) for parts in (inputs, gradients))
        return cls(call, rows_in.flatten(0, 1), rows_out.flatten(0, 1), rows_out.shape[1])

    @property
    def layer(self) -> nn.Module:
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
        per_input = _row_squares(self._kept_inputs) if weight else 0.0
        square = (per_input + float(bias)) * _row_squares(self._kept_gradients)
        square = square * (1 + 2 * gamma(self.width + _FEW))
        return Sizes(square, square)

    @cached_property
    def _kept_gradients(self) -> Tensor:
        """The gradients in double precision, for norms and sums alike; as they are where that would take much room."""
        return self.gradients.double() if self.gradients.numel() <= _BLOCK else self.gradients

    @cached_property
    def _kept_inputs(self) -> Tensor | SparseMatrix | SlotRows:
        """The same of dense inputs."""
        small = isinstance(self.inputs, Tensor) and self.inputs.numel() <= _BLOCK
        return self.inputs.double() if isinstance(self.inputs, Tensor) and small else self.inputs

    def _portions(self) -> Iterator[tuple[int, int]]:
        """Examples from … to, a few at a time: double precision takes twice the memory."""
        examples = len(self.gradients) // self.slots
        width = self.gradients.shape[1] + (self.inputs.shape[1] if isinstance(self.inputs, Tensor) else 0)
        step = max(1, _BLOCK // max(1, self.slots * width))
        return ((first, min(first + step, examples)) for first in range(0, max(examples, 1), step))

    def _shared(self, first: int, last: int, weight: bool, bias: bool) -> Sizes:
        """The sizes of some examples whose rows share the layer."""
        rows = slice(first * self.slots, last * self.slots)
        blocks = self._kept_gradients[rows].double().reshape(last - first, self.slots, -1)
        lengths = _lengths(blocks)
        square, parts = torch.zeros_like(lengths[:, 0]), torch.zeros_like(lengths[:, 0])
        if bias:
            alone = lengths.sum(1).square()
            square = square + blocks.sum(1).square().sum(1) + self._spare() * alone
            parts = parts + alone
        if weight:
            found = self._shared_weight(rows, blocks, lengths)
            square, parts = square + found.square, parts + found.parts
        return Sizes(square * (1 + gamma(_FEW)), parts * (1 + gamma(_FEW)))

    def _spare(self) -> float:
        """What of P² is added to a squared norm: once Γ for its own error, the rest for that of P and of later sums."""
        return 4 * gamma(norm_roundings(self.width, self.slots))

    def _shared_weight(self, rows: slice, blocks: Tensor, lengths: Tensor) -> Sizes:
        if isinstance(self.inputs, SlotRows):
            grams = self.inputs.grams(rows.start // self.slots, rows.stop // self.slots)
            square, others = _gram_squares(grams, blocks), torch.diagonal(grams, dim1=1, dim2=2).sqrt()
        elif isinstance(self.inputs, SparseMatrix):
            square, others = _sparse_squares(self.inputs.scipy_rows(rows.start, rows.stop), blocks)
        else:
            assert isinstance(self._kept_inputs, Tensor)
            given = self._kept_inputs[rows].double().reshape(*blocks.shape[:2], -1)
            square, others = _dense_squares(given, blocks), _lengths(given)
        parts = (others * lengths).sum(1).square()
        return Sizes(square.clamp_min(0) + self._spare() * parts, parts)

    def add_clipped(self, factor: Tensor, views: dict[int, Tensor]) -> None:
        """Add Σ_i factor_i·(gradient of example i) to the parameters' views."""
        inputs, gradients = self._finite(factor)
        by_row = self._by_row(factor)
        weight, bias = _trains(self.layer, "weight"), _trains(self.layer, "bias")
        if weight and isinstance(inputs, SparseMatrix):
            product = inputs.double_transposed @ (gradients * by_row)
        elif weight and isinstance(inputs, SlotRows):
            product = inputs.transposed_times(gradients * by_row)
        if weight and not isinstance(inputs, Tensor):
            views[id(self.layer.weight)] += product if self.call.in_by_out else product.T
        for start in range(0, len(gradients), self._rows_at_once()):
            part = slice(start, start + self._rows_at_once())
            scaled = gradients[part] * by_row[part]
            if weight and isinstance(inputs, Tensor):
                given = inputs[part].double()
                left, right = (given, scaled) if self.call.in_by_out else (scaled, given)
                views[id(self.layer.weight)].addmm_(left.T, right)
            if bias:
                views[id(self.layer.bias)].addmv_(scaled.T, scaled.new_ones(len(scaled)))  # twice as fast as a sum

    def _rows_at_once(self) -> int:
        return max(1, _BLOCK // max(self.gradients.shape[1], self.inputs.shape[1]))

    def _by_row(self, factor: Tensor) -> Tensor:
        """One factor per example as a column, one per row."""
        return (factor if self.slots == 1 else factor.repeat_interleave(self.slots)).unsqueeze(1)

    def _finite(self, factor: Tensor) -> tuple[Tensor | SparseMatrix | SlotRows, Tensor]:
        """Rows of examples with factor 0 made zero, for zero times infinity is no number. (Tables are finite.)

        To ask whether there are any would make a GPU wait in every layer, so there rows are masked unasked.
        """
        asks = factor.device.type == "cpu" or isinstance(self.inputs, SparseMatrix)
        if not len(factor) or (asks and bool(factor.min() > 0)):
            return self._kept_inputs, self._kept_gradients
        rows = self._by_row(factor) == 0
        gradients = self._kept_gradients.masked_fill(rows, 0.0)
        if isinstance(self.inputs, SlotRows):
            return self.inputs, gradients
        if isinstance(self.inputs, SparseMatrix):
            return self.inputs.without_rows(rows.squeeze(1).cpu().numpy()), gradients
        assert isinstance(self._kept_inputs, Tensor)
        return self._kept_inputs.masked_fill(rows, 0.0), gradients

    def terms(self, factor: Tensor) -> dict[int, Tensor]:
        """The clipped gradients one by one, (examples, numel) for each parameter; for audits of small batches."""
        inputs, gradients = self._finite(factor)
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


def _trains(layer: nn.Module, name: str) -> bool:
    parameter = getattr(layer, name, None)
    return isinstance(parameter, nn.Parameter) and parameter.requires_grad


def _check_single(rows: Sequence[Tensor | SparseMatrix | SlotRows]) -> None:
    """Refuse doubles: their squares can vanish or overflow in double precision, and with them a norm."""
    if any(part.dtype not in (torch.float32, torch.float16, torch.bfloat16) for part in rows):
        raise UnsupportedError("gradients are clipped in double precision, so the model must run in a shorter one")


def _by_example(rows: Tensor, examples: int) -> Tensor:
    """(examples, slots, width), whatever shape the layer saw."""
    count = math.prod(rows.shape[:-1])
    if examples == 0 or count % examples:
        if count == 0:
            return rows.reshape(0, 1, rows.shape[-1])
        raise UnsupportedError(
            "the rows that a layer saw are no multiple of the examples: rows must be grouped by example"
        )
    return rows.reshape(examples, count // examples, rows.shape[-1])


def _blocks(rows: Tensor, slots: int) -> Tensor:
    return rows.reshape(len(rows) // slots, slots, rows.shape[1])


def _largest(values: Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0


def _lengths(rows: Tensor) -> Tensor:
    """Norms along the last axis, in double precision; no square of a single vanishes or overflows there."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)
    return norms


def _row_squares(rows: Tensor | SparseMatrix | SlotRows) -> Tensor:
    return _lengths(rows).square() if isinstance(rows, Tensor) else rows.row_squares


def _gram_squares(grams: Tensor, blocks: Tensor) -> Tensor:
    """‖Σ_j a_j g_jᵀ‖² of each example, from the inner products of its rows a."""
    return (grams * (blocks @ blocks.mT)).sum(2).sum(1)


def _dense_squares(rows: Tensor, blocks: Tensor) -> Tensor:
    """‖Σ_j a_j g_jᵀ‖² of each example: by Gram matrices, or through the product itself where slots are many."""
    slots, width_in, width_out = rows.shape[1], rows.shape[2], blocks.shape[2]
    if slots * (width_in + width_out) <= 2 * width_in * width_out:
        return _gram_squares(rows @ rows.mT, blocks)
    step = max(1, _BLOCK // max(1, width_in * width_out))
    parts = [(rows[i : i + step].mT @ blocks[i : i + step]).square().sum(2).sum(1) for i in range(0, len(rows), step)]
    return torch.cat(parts) if parts else rows.new_zeros(0)


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


# -------------------------------------------------------------------- terms, for audits


def _no_terms(losses: Tensor, flat: Tensor) -> Tensor:
    return flat.new_zeros(len(losses), len(flat))


def _terms(parameters: Sequence[nn.Parameter], layers: Sequence[_LayerRows], factors: Sequence[Tensor]) -> Tensor:
    found: dict[int, Tensor] = {}
    for layer, factor in zip(layers, factors, strict=True):
        found |= layer.terms(factor)
    examples = len(factors[0])
    columns = [found.get(id(p), factors[0].new_zeros(examples, p.numel())) for p in parameters]
    return torch.cat(columns, dim=1)
