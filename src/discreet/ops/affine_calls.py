"""What one forward and one backward pass show of the affine layers of a model: inputs, and output gradients.

For y = xW + b, or y = x ⊙ w + b, the gradient of one example is made of the rows of x and of ∂loss/∂y that belong to
it. Both are at hand after a backward pass that goes to the layers' outputs only, so neither gradients per example nor
a second pass are needed. The passes are plain autograd; nothing is wrapped, and the model is left as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from discreet.errors import UnsupportedError
from discreet.ops.slot_rows import SlotRows
from discreet.ops.sparse import SparseMatrix

_WEIGHT_IS_IN_BY_OUT: dict[type[nn.Module], bool] = {nn.Linear: False}
_SCALES_COLUMNS: set[type[nn.Module]] = set()


def register_affine(kind: type[nn.Module], *, weight_is_in_by_out: bool) -> None:
    """Declare that modules of this type compute x·weight + bias (or x·weightᵀ + bias) and nothing else."""
    _WEIGHT_IS_IN_BY_OUT[kind] = weight_is_in_by_out


def register_scaling(kind: type[nn.Module]) -> None:
    """Declare that modules of this type compute x ⊙ weight + bias, column by column, and nothing else."""
    _SCALES_COLUMNS.add(kind)


def _is_affine(module: nn.Module) -> bool:
    return type(module) in _WEIGHT_IS_IN_BY_OUT or type(module) in _SCALES_COLUMNS


@dataclass
class AffineCalls:
    """All calls of one affine layer in one forward pass, and what the backward pass brought to its outputs."""

    layer: nn.Module
    in_by_out: bool
    """Whether the weight's rows are inputs."""
    scales_columns: bool
    """Whether the layer multiplies each column by a number of its own, instead of by a matrix."""
    inputs: list[Tensor | SparseMatrix | SlotRows] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    makers: list[Any] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)

    @property
    def trained(self) -> list[nn.Parameter]:
        """The layer's parameters that train, in its order."""
        return [p for p in self.layer._parameters.values() if p is not None and p.requires_grad]

    @classmethod
    def of(cls, layer: nn.Module) -> AffineCalls:
        """None yet, of a layer of this kind."""
        kind = type(layer)
        return cls(layer, _WEIGHT_IS_IN_BY_OUT.get(kind, False), kind in _SCALES_COLUMNS)


def affine_layers(model: nn.Module) -> list[nn.Module]:
    """The affine layers with a parameter that trains, in the model's order.

    Guarantee: a model is refused that mixes examples by batch statistics (there a gradient of one example does not
    exist), or in which a parameter that trains does not belong to one affine layer alone.
    """
    found, trained, owned = [], set(), []
    for module in model.modules():  # one look at each: this runs in every step
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            _refuse_batch_statistics(model, module)
        own = [parameter for parameter in module._parameters.values() if parameter is not None]
        trains = [id(parameter) for parameter in own if parameter.requires_grad]
        trained.update(trains)
        if _is_affine(module):
            owned += [id(parameter) for parameter in own]
            found += [module] if trains else []
    if not trained <= set(owned) or len(set(owned)) < len(owned):
        raise UnsupportedError(
            "the model has parameters outside its affine layers, whose gradients cannot be clipped by example"
        )
    return found


def _refuse_batch_statistics(model: nn.Module, mixing: nn.Module) -> None:
    name = next(name for name, module in model.named_modules() if module is mixing)
    raise UnsupportedError(
        f"layer {name or 'itself'} ({type(mixing).__name__}) mixes the examples of a batch, so no example "
        "has a gradient of its own to clip: use LayerNorm or GroupNorm instead"
    )


def record(model: nn.Module, losses_of: Callable[[], Tensor]) -> tuple[Tensor, list[AffineCalls]]:
    """Run ``losses_of`` (one loss per example) and note the calls of the affine layers.

    Guarantee: every affine layer with a trainable parameter is returned, in the model's order, with its calls;
    a model that :func:`affine_layers` refuses, or one in which an output was changed in place, is refused.
    """
    calls = {module: AffineCalls.of(module) for module in affine_layers(model)}
    with torch.enable_grad(), _recording(calls):
        losses = losses_of()
    if losses.ndim != 1:
        raise UnsupportedError(f"one loss per example is needed, not a tensor of {losses.ndim} dimensions")
    _check_in_place(calls)
    return losses, list(calls.values())


def pull_back(losses: Tensor, calls: list[AffineCalls], weights: Tensor | None = None, *, keep: bool = False) -> None:
    """Fill ``gradients`` with ∂(Σ losses)/∂output, or ∂(Σ weights·losses)/∂output."""
    outputs = [output for call in calls for output in call.outputs]
    found: tuple[Tensor | None, ...] = (None,) * len(outputs)
    if outputs and losses.requires_grad:
        by_loss = torch.ones_like(losses) if weights is None else weights
        found = torch.autograd.grad(losses, outputs, by_loss, retain_graph=keep, allow_unused=True)
    filled = iter([torch.zeros_like(o) if g is None else g for o, g in zip(outputs, found, strict=True)])
    for call in calls:
        call.gradients = [next(filled) for _ in call.outputs]


@contextmanager
def _recording(calls: dict[nn.Module, AffineCalls]) -> Iterator[None]:
    def record(module: nn.Module, given: tuple[Any, ...], output: Tensor) -> None:
        call = calls[module]
        call.inputs.append(given[0].detach() if isinstance(given[0], Tensor) else given[0])
        call.outputs.append(output)
        call.makers.append(output.grad_fn)

    handles = [module.register_forward_hook(record) for module in calls]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _check_in_place(calls: dict[nn.Module, AffineCalls]) -> None:
    """An output that was overwritten stands for another value now, and its gradient for another layer."""
    for call in calls.values():
        for output, maker in zip(call.outputs, call.makers, strict=True):
            if output.grad_fn is not maker:
                raise UnsupportedError(
                    "the output of an affine layer was changed in place (an activation with inplace=True?): "
                    "per-example norms would be wrong, use the form that returns a new tensor"
                )
