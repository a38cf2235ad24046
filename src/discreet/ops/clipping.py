"""Per-example clipping without per-example gradients: norms from one backward pass, then one weighted product.

For a layer y = xW + b, let example i own the rows a_ij of x and g_ij of ∂loss/∂y (one row in an MLP, one for
each node of an ego-net in a layer shared over it). Its gradient is Σ_j a_ij g_ijᵀ, with squared norm
Σ_jl (a_ij·a_il)(g_ij·g_il): two small Gram matrices. The clipped sum over examples is aᵀ(c ⊙ g), the product
that plain training computes anyway. Memory does not grow with batch × parameters. For a layer that scales columns,
y = x ⊙ w + b (of layer normalisation), the gradient is Σ_j a_ij ⊙ g_ij: as wide as a row, so it is formed.

**What the machine computes.** Rows a and g are single-precision numbers; by *term* is meant c_i times the exact
gradient that they stand for. All arithmetic on them here is in double precision: u = 2⁻⁵³, γ_n = nu/(1 − nu). Neither
products of four singles nor C over the longest gradient leave the range of normal doubles (``limits.NORM``).

*Norms.* Write P_i = Σ_j ‖a_ij‖‖g_ij‖ (for a bias Σ_j ‖g_ij‖; over parameters √ΣP²). A product of two singles is exact
in double, so an inner product of width w errs by at most γ_w times the product of the two norms, whatever the order of
summation. Sums over two axes are taken one axis at a time. So what is computed for the squared norm errs by at most
Γ·P_i², Γ = γ of (both widths + 2·slots + a few): by Gram matrices (width, product, two sums over slots; of a bias,
whose squared norm is the sum of all g_j·g_l, by one of them), or through G = Σ_j a_j g_jᵀ itself (‖Ĝ − G‖ ≤ γ_slots·P,
so 2γ_slots·P² in the square, then two sums over the widths). The diagonals give the lengths in P_i. 4Γ·P_i² is
added: once for this, the rest for the rounding of P_i. A sum over L layers, of numbers that are not negative, errs by
at most γ_{L−1} of itself, and is raised by γ_{L+2}. No norm is underestimated, however the slots cancel and however
many layers there are.

*Norms of scaled columns.* With P_i = Σ_j ‖a_ij ⊙ g_ij‖ the same holds: products of two singles are exact, Ĝ errs in
each entry by at most γ_slots Σ_j |a_ij ⊙ g_ij|, in norm by γ_slots·P_i by Minkowski's inequality, so by 2γ_slots·P_i²
in the square (and γ_slots² of it), and one sum over the width follows: less than Γ·P_i². In sums over examples a number
passes through a sum over slots and one over examples, which γ_2N below counts.

*Clipping.* The factor c_i brings both the norm to C′ and P_i to K·C′, K = :data:`CANCELLATION`: an example whose slots
cancel more than K-fold is clipped harder than its norm asks, because its rounding errors are what is left of it. With
one slot nothing cancels: P_i is the norm, and K is 1.

*Factors.* c_i is a function of its own example up to rounding: the squared length that it divides by is at least
P_i²/K² and errs by at most ΓP_i² and, over L layers, γ_L and a few roundings of its own, so with Γ = γ of (both widths
+ 2·slots + L + a few) c_i has a relative error of at most ΓK² (half of it would do).

*Sums.* A product of N rows errs in each entry by at most γ_N Σ_k |a_k||g_k|, hence in norm by at most
γ_N Σ_i c_i P_i ≤ γ_N·n·K·C′ over n terms (over several parameters by Minkowski's inequality). Where an input row stands
in many slots, the g_k of these may be summed before they meet it (``ops.slot_rows``); elsewhere the products of blocks
of rows are added up. Either way a number passes through two sums of at most N, so γ_2N is what is set aside; M
micro-batches that are added one after the other make that γ_{2N+M}.
With the errors of factors this is E = n(γ_{2N+M}·K + ΓK²)C′: a computed sum is within E of the sum of exact terms, in
whatever order, batch and portions it was made.

*Steps.* Let s be what is computed for a batch without the changed examples: the same bits on both graphs. With i ≥ 1 of
them the sum is within i·C′ + 2E of s, and C′ = C − 2E (:meth:`ClipRule.norms_with_room`) makes that no more than i·C,
which is what the proofs of ``privacy.events`` ask; between both graphs it moves by at most 2i·C′ + 2E. An example that
is null adds exactly zero, but its place in the batch may move the rounding, and where a proof needs s itself (Poisson
batches under null) that is too much: the caller leaves such examples out (``queries.gradients`` does).

*What this rests on.* The rows of an example must be the same bits on both graphs, whatever the other examples hold and
however many there are: E does not cover single-precision rounding. That is for the model to see to: dense products in
whole tiles (``ops.rows``), and nothing in which a number's rounding depends on its place. Tests compare the
bits of all rows of the library's networks in batches of many sizes, on processors; kernels for sparse products on GPUs
may share a row's work by what other rows hold. (With plain products the other terms of a Poisson batch moved together
by up to 1e-6 C on ordinary data; placed at ties between logits of 1e9, for weights known beforehand, by 4.5 C.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from discreet.errors import ParameterError, UnsupportedError
from discreet.ops.affine_calls import pull_back, record
from discreet.ops.layer_rows import (
    CANCELLATION,
    FEW,
    LayerRows,
    Sizes,
    all_count,
    by_example,
    gamma,
    joint_factor,
    norm_roundings,
    rows_of,
)

LARGEST_ERROR = 0.01
"""The most of a clip norm that rounding may take; beyond it sums of so many terms are refused."""


@dataclass(frozen=True)
class Room:
    """How large sums may be, from public figures alone: what the error E of a step follows from.

    ``terms`` is the number of examples in a step, ``at_once`` in a micro-batch, and ``micro_batches`` how many of these
    make a step: each at most. None of them may depend on which batch was drawn, or clipping would.
    """

    terms: int = 1 << 12
    at_once: int = 1 << 12
    micro_batches: int = 1 << 8

    def error(self, width: int, slots: int, layers: int = 1) -> float:
        """E over C′, see the module; ``width`` is that of the widest layer, ``slots`` are rows per example."""
        longer = CANCELLATION if slots > 1 else 1.0
        of_sums = gamma(2 * self.at_once * slots + self.micro_batches + FEW) * longer
        of_factors = gamma(norm_roundings(width, slots, layers)) * longer**2
        return self.terms * (of_sums + of_factors)


DEFAULT_ROOM = Room()


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

    def norms_with_room(self, width: int, slots: int, layers: int = 1) -> list[float]:
        """C′ = C − 2E for each norm: what terms are clipped to so that computed sums keep to C."""
        error = self.room.error(width, slots, layers)
        if error > LARGEST_ERROR:
            raise UnsupportedError(
                f"sums over {self.room.terms} examples of {slots} rows cannot be proved to keep to a clip norm within "
                f"{LARGEST_ERROR:.0%} in double precision: use fewer training nodes, or a smaller fan_in"
            )
        return [norm * (1 - 2 * error) * (1 - gamma(FEW)) for norm in self.norms]

    def factors(self, sizes: Sequence[Sizes], width: int, slots: int) -> list[Tensor]:
        """What to multiply each example's part of each layer by. An example that is not finite gets factor 0."""
        bounds = self.norms_with_room(width, slots, len(sizes))
        if self.per_layer and len(sizes) != len(bounds):
            raise ParameterError(f"there are {len(bounds)} clip norms for {len(sizes)} layers")
        if not self.per_layer:
            return [joint_factor(sizes, bounds[0])] * len(sizes)
        return [size.factor(bound) for size, bound in zip(sizes, bounds, strict=True)]


@dataclass(frozen=True)
class ClippedSum:
    """Σ_i clip(∇loss_i), without noise: private until the curator has added it.

    ``flat`` holds it, in double precision, in the order of the trainable parameters. ``squares`` bound the gradients'
    squared norms before clipping, layer by layer, and ``terms``, if asked for, are the clipped gradients one by one:
    both for audits alone.
    """

    flat: Tensor
    squares: Sequence[Tensor]
    terms: Tensor | None = None

    @property
    def norms(self) -> Tensor:
        """Bounds on the gradients' norms before clipping, over all layers."""
        return torch.stack(list(self.squares)).sum(0).sqrt()


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that train, in the model's order."""
    return [p for p in model.parameters() if p.requires_grad]


def widest_layer(model: nn.Module) -> int:
    """Inputs and outputs of the widest affine layer together: what rounding errors of norms grow with."""
    return max((sum(p.shape) for p in trainable(model)), default=1)


def count_layers(model: nn.Module) -> int:
    """Modules with parameters of their own, over which squared norms are summed."""
    return sum(any(p.requires_grad for p in module.parameters(recurse=False)) for module in model.modules())


def views_of(flat: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """The parts of a flat vector in the shapes of the parameters; they share its memory."""
    parts = torch.split(flat, [p.numel() for p in parameters])
    return [part if p.ndim == 1 else part.view(p.shape) for part, p in zip(parts, parameters, strict=True)]


def clipped_sum(
    model: nn.Module,
    losses_of: Callable[[], Tensor],
    rule: ClipRule,
    *,
    shares: Tensor | None = None,
    terms: bool = False,
) -> ClippedSum:
    """The sum of clipped per-example gradients of a model whose parameters all lie in affine layers.

    ``losses_of()`` runs the model and returns one loss per example; an example that should not count has loss 0.
    Rows of any layer must be grouped by example: (examples, width), (examples, slots, width), or flattened in
    that order. See :func:`check_rows` for a test of that layout.

    ``shares`` are numbers in [0, 1] by which clipped terms are multiplied, one per example and a function of it alone:
    no term grows, and c_i has one more rounding, which half of ΓK² leaves room for.

    Guarantee: changing one example changes one term, and every term has norm at most C′ of ``rule``, whatever the
    example holds; the computed sum is within E of the sum of terms (see the module). An example whose gradient
    overflows counts as zero. An empty batch gives zero. More examples than ``rule.room`` admits are refused.
    Reference: Goodfellow (2015) for dense layers; Li et al. (2022), "ghost norms", for shared ones.
    """
    losses, calls = record(model, losses_of)
    parameters = [parameter for call in calls for parameter in call.trained]  # all that train, in the model's order
    pull_back(losses, calls)
    losses = losses.detach()
    numbers = sum(p.numel() for p in parameters)
    layers = [rows_of(call, len(losses)) for call in calls if call.outputs]
    if not layers:
        flat = torch.zeros(numbers, device=losses.device, dtype=torch.float64)
        return ClippedSum(flat, [torch.zeros_like(losses)], _no_terms(losses, flat) if terms else None)
    if len(losses) > rule.room.at_once:
        raise UnsupportedError(f"there are more examples at once than the {rule.room.at_once} that were planned")
    sizes = [layer.sizes() for layer in layers]
    factors = rule.factors(sizes, max(layer.width for layer in layers), max(layer.slots for layer in layers))
    if shares is not None:
        factors = [factor * shares.to(factor) for factor in factors]
    flat = torch.empty(numbers, device=losses.device, dtype=torch.float64)
    views = {id(p): view for p, view in zip(parameters, views_of(flat, parameters), strict=True)}
    counts = {id(factor): all_count(factor) for factor in factors}  # asked once where all layers share one
    for layer, factor in zip(layers, factors, strict=True):
        layer.write_clipped(factor, views, all_count=counts[id(factor)])
    for unwritten in views.values():
        unwritten.zero_()
    return ClippedSum(flat, [size.square for size in sizes], _terms(parameters, layers, factors) if terms else None)


def check_rows(model: nn.Module, losses_of: Callable[[], Tensor], *, seed: int = 0) -> None:
    """Refuse a model whose examples meet, or whose rows are not grouped by example.

    Weighting the losses by random numbers must weight every example's rows of every layer by its own number.
    Whether it does is a fact of the model's structure, not of the data (the numbers are fixed by a public seed and
    nothing of them is released); costs two backward passes, once.
    """
    losses, calls = record(model, losses_of)
    weights = torch.rand(len(losses), generator=torch.Generator().manual_seed(seed)).to(losses) + 0.5
    pull_back(losses, calls, keep=True)
    plain = [by_example(g, len(losses)) for call in calls for g in call.gradients]
    pull_back(losses, calls, weights)
    weighted = [by_example(g, len(losses)) for call in calls for g in call.gradients]
    for before, after in zip(plain, weighted, strict=True):
        expected = before * weights[:, None, None]
        if not torch.allclose(after, expected, rtol=1e-3, atol=1e-5 * _largest(before)):
            raise UnsupportedError(
                "the loss of one example depends on rows that belong to another, so no example has a gradient of its "
                "own to clip: examples must not meet, and rows must be grouped by example"
            )


def _largest(values: Tensor) -> float:
    return float(values.abs().max()) if values.numel() else 0.0


# -------------------------------------------------------------------- terms, for audits


def _no_terms(losses: Tensor, flat: Tensor) -> Tensor:
    return flat.new_zeros(len(losses), len(flat))


def _terms(parameters: Sequence[nn.Parameter], layers: Sequence[LayerRows], factors: Sequence[Tensor]) -> Tensor:
    found: dict[int, Tensor] = {}
    for layer, factor in zip(layers, factors, strict=True):
        found |= layer.terms(factor)
    examples = len(factors[0])
    columns = [found.get(id(p), factors[0].new_zeros(examples, p.numel())) for p in parameters]
    return torch.cat(columns, dim=1)
