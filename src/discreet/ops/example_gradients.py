"""Clipped sums for any model, by computing per-example gradients a few at a time.

For models with parameters outside affine layers (attention vectors, GIN's ε, normalisation weights), where the
norms of :mod:`discreet.ops.clipping` do not reach. Slower, and memory is micro-batch × parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from discreet.errors import ParameterError
from discreet.ops.affine_calls import refuse_batch_statistics
from discreet.ops.clipping import ClippedSum, ClipRule, trainable

Forward = Callable[..., Tensor]
ExampleLoss = Callable[..., Tensor]


def clipped_sum_by_example(
    model: nn.Module,
    example_loss: ExampleLoss,
    batch: Sequence[Tensor],
    rule: ClipRule,
    *,
    micro_batch: int = 64,
    out: Tensor | None = None,
    terms: bool = False,
) -> ClippedSum:
    """The sum of clipped per-example gradients of ``example_loss(forward, *example)``.

    ``forward`` calls the model; ``example`` is one row of each tensor in ``batch``, without the batch dimension. With
    per-layer clipping, a layer is a module that owns parameters directly, in the model's order.

    Guarantee: as for :func:`discreet.ops.clipping.clipped_sum`. Examples cannot meet: each is differentiated alone.
    """
    refuse_batch_statistics(model)
    if micro_batch < 1:
        raise ParameterError(f"micro_batch must be at least 1, not {micro_batch}")
    parameters = trainable(model)
    flat = torch.zeros(sum(p.numel() for p in parameters), device=parameters[0].device) if out is None else out
    gradients_of = _gradient_function(model, example_loss)
    norms, kept = [flat.new_zeros(0)], [flat.new_zeros(0, len(flat))]
    for start in range(0, len(batch[0]), micro_batch):
        rows = _example_gradients(
            gradients_of, [part[start : start + micro_batch] for part in batch], parameters, model
        )
        clipped, before = _clip(rows, model, rule)
        flat += clipped.sum(0)
        norms.append(before)
        if terms:
            kept.append(clipped)
    return ClippedSum(flat, torch.cat(norms), torch.cat(kept) if terms else None)


def _gradient_function(model: nn.Module, example_loss: ExampleLoss) -> Callable[..., dict[str, Tensor]]:
    fixed = {name: p.detach() for name, p in model.named_parameters() if not p.requires_grad}
    fixed |= dict(model.named_buffers())

    def loss(free: dict[str, Tensor], *example: Tensor) -> Tensor:
        def forward(*inputs: Any) -> Tensor:
            result: Tensor = functional_call(model, {**free, **fixed}, inputs)
            return result

        return example_loss(forward, *example)

    one: Callable[..., dict[str, Tensor]] = grad(loss)
    return one


def _example_gradients(
    gradients_of: Callable[..., dict[str, Tensor]], part: list[Tensor], parameters: list[nn.Parameter], model: nn.Module
) -> Tensor:
    """(examples, parameters), in the order of the trainable parameters."""
    free = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    in_dims = (None, *(0 for _ in part))
    found = vmap(gradients_of, in_dims=in_dims, randomness="different")(free, *part)
    names = {id(p): name for name, p in model.named_parameters()}
    return torch.cat([found[names[id(p)]].reshape(len(part[0]), -1) for p in parameters], dim=1)


def _clip(rows: Tensor, model: nn.Module, rule: ClipRule) -> tuple[Tensor, Tensor]:
    """Clipped rows, and norms before clipping; rows that are not finite become zero."""
    groups = _groups(model) if rule.per_layer else [slice(0, rows.shape[1])]
    squares = [torch.linalg.vector_norm(rows[:, group], dim=1).square() for group in groups]
    clipped = torch.empty_like(rows)
    for group, factor in zip(groups, rule.factors(squares), strict=True):
        part = rows[:, group] * factor.unsqueeze(1)
        clipped[:, group] = torch.where(factor.unsqueeze(1) == 0, torch.zeros_like(part), part)
    return clipped, torch.stack(squares).sum(0).sqrt()


def _groups(model: nn.Module) -> list[slice]:
    """The columns of each module that owns trainable parameters directly."""
    groups, start, seen = [], 0, set[int]()
    for module in model.modules():
        own = [p for p in module.parameters(recurse=False) if p.requires_grad and id(p) not in seen]
        seen |= {id(p) for p in own}
        size = sum(p.numel() for p in own)
        if size:
            groups.append(slice(start, start + size))
            start += size
    return groups
