"""Encoders that users bring as modules of torch: read layer by layer, and built anew from layers of our own.

Guarantee: of the user's module its layers' types and sizes are read, before any data is. What runs on data is built
here from ``training.encoder_layers``, so no code of the user's does. Weights are drawn afresh: those of the module are
not used, so nothing that was learnt from private data elsewhere comes in through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from discreet.errors import ParameterError, UnsupportedError
from discreet.ops.affine_calls import register_scaling
from discreet.ops.slot_rows import SlotRows
from discreet.ops.sparse import SparseMatrix
from discreet.training import encoder_layers as layers_
from discreet.training.encoder_layers import EncoderLayers, Layer
from discreet.training.networks import ACTIVATIONS, Dropout, Linear, elu

Given = Tensor | SparseMatrix | SlotRows


_EPS = 1e-5
"""What layer normalisation adds to a variance; torch's own."""


class Residual(nn.Module):
    """x + f(x), for an encoder: ``Residual(nn.Linear(64, 64), nn.ReLU())``. f must keep the width."""

    def __init__(self, *layers: nn.Module) -> None:
        """Keep the layers in order."""
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        """The sum."""
        rows = x
        for layer in self.layers:
            rows = layer(rows)
        return x + rows


# -------------------------------------------------------------------- reading a module


def read_encoder(encoder: object) -> EncoderLayers:
    """The layers of a module, or of a list in words; an error with one sentence where they are not supported."""
    if not isinstance(encoder, nn.Module):
        return EncoderLayers.from_words(encoder)
    reader = _Reader()
    found = tuple(reader.read(encoder))
    return EncoderLayers(found, reader.inputs)


class _Reader:
    """Walks through a module's layers in the order in which they run, and keeps the width."""

    def __init__(self) -> None:
        self.inputs: int | None = None
        self._width: int | None = None
        self._owned: set[int] = set()

    def read(self, module: nn.Module) -> Iterator[Layer]:
        """The layers of one module."""
        kind = type(module)
        if issubclass(kind, nn.modules.lazy.LazyModuleMixin):  # it has hooks of its own
            raise _unsupported(module)
        _refuse_changed(module)
        if kind is nn.Sequential:
            assert isinstance(module, nn.Sequential)
            for child in module:  # children() would leave out one that stands twice
                yield from self.read(child)
        elif kind is Residual:
            assert isinstance(module, Residual)
            yield layers_.ResidualSum(tuple(layer for child in module.layers for layer in self.read(child)))
        elif kind is not nn.Identity:
            self._take_parameters(module)
            yield self._layer(module)

    def _layer(self, module: nn.Module) -> Layer:
        kind = type(module)
        if kind is nn.Linear:
            assert isinstance(module, nn.Linear)
            return self._linear(module)
        if kind is nn.LayerNorm:
            assert isinstance(module, nn.LayerNorm)
            return self._layer_norm(module)
        if kind is nn.Dropout:
            assert isinstance(module, nn.Dropout)
            return layers_.Dropout(float(module.p))
        if kind in _ACTIVATIONS:
            return _ACTIVATIONS[kind](module)
        raise _unsupported(module)

    def _linear(self, module: nn.Linear) -> layers_.Linear:
        self._expect(module.in_features, "a Linear")
        self._width = module.out_features
        return layers_.Linear(module.out_features, bias=module.bias is not None)

    def _layer_norm(self, module: nn.LayerNorm) -> layers_.LayerNorm:
        if len(module.normalized_shape) != 1 or module.eps != _EPS:
            raise UnsupportedError("an encoder takes LayerNorm over the last axis with torch's own eps")
        if module.elementwise_affine and module.bias is None:
            raise UnsupportedError("an encoder takes LayerNorm with weight and bias, or with elementwise_affine=False")
        self._expect(module.normalized_shape[0], "a LayerNorm")
        return layers_.LayerNorm(affine=module.elementwise_affine)

    def _expect(self, width: int, who: str) -> None:
        if self._width is None:
            self.inputs = self._width = width
        if width != self._width:
            raise ParameterError(
                f"{who} of the encoder reads {width} columns, and the layer before gives {self._width}"
            )

    def _take_parameters(self, module: nn.Module) -> None:
        """Every parameter belongs to one layer and trains."""
        for parameter in module.parameters(recurse=False):
            if id(parameter) in self._owned:
                raise UnsupportedError("two layers of the encoder share their parameters, which is not supported")
            if not parameter.requires_grad:
                raise UnsupportedError(
                    "a layer of the encoder is frozen, which has no use: an encoder gives an architecture, and its "
                    "weights are drawn afresh and trained"
                )
            self._owned.add(id(parameter))


def _refuse_changed(module: nn.Module) -> None:
    """A hook, or a forward of one object alone, is code that would not run here."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if any(getattr(module, name, None) for name in hooks):
        raise UnsupportedError(
            f"layer {type(module).__name__} of the encoder has hooks: they would run on private data, remove them"
        )
    if "forward" in vars(module):
        raise UnsupportedError(
            f"layer {type(module).__name__} of the encoder has a forward of its own: it would not run"
        )


def _unsupported(module: nn.Module) -> UnsupportedError:
    name = type(module).__name__
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return UnsupportedError(
            f"layer {name} of the encoder mixes the nodes of a batch, so no node has a gradient of its own to clip: "
            "use LayerNorm instead"
        )
    if isinstance(module, nn.modules.lazy.LazyModuleMixin):
        return UnsupportedError(f"layer {name} of the encoder does not know its width yet: use nn.Linear with both")
    return UnsupportedError(
        f"an encoder has no layer {name}: its code would run on private data; use nn.Sequential of Linear, LayerNorm, "
        f"Dropout, {', '.join(sorted(kind.__name__ for kind in _ACTIVATIONS))}, and discreet.Residual of these"
    )


def _gelu(module: nn.Module) -> layers_.Activation:
    assert isinstance(module, nn.GELU)
    if module.approximate != "none":
        raise UnsupportedError("an encoder takes GELU with approximate='none'")
    return layers_.Activation("gelu")


def _elu(module: nn.Module) -> layers_.Activation:
    assert isinstance(module, nn.ELU)
    if module.alpha != 1.0:
        raise UnsupportedError("an encoder takes ELU with alpha=1")
    return layers_.Activation("elu")


def _leaky_relu(module: nn.Module) -> layers_.Activation:
    assert isinstance(module, nn.LeakyReLU)
    return layers_.Activation("leaky-relu", float(module.negative_slope))


_ACTIVATIONS: dict[type[nn.Module], Callable[[nn.Module], layers_.Activation]] = {
    nn.ReLU: lambda _: layers_.Activation("relu"),
    nn.SELU: lambda _: layers_.Activation("selu"),
    nn.SiLU: lambda _: layers_.Activation("silu"),
    nn.Tanh: lambda _: layers_.Activation("tanh"),
    nn.Sigmoid: lambda _: layers_.Activation("sigmoid"),
    nn.GELU: _gelu,
    nn.ELU: _elu,
    nn.LeakyReLU: _leaky_relu,
}


# -------------------------------------------------------------------- building it anew


class Scale(nn.Module):
    """x ↦ x ⊙ weight + bias, column by column; it begins as the identity."""

    def __init__(self, width: int, device: torch.device) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, device=device))
        self.bias = nn.Parameter(torch.zeros(width, device=device))

    def forward(self, x: Tensor) -> Tensor:
        """The affine map."""
        return x * self.weight + self.bias


register_scaling(Scale)


class Normalize(nn.Module):
    """Layer normalisation without parameters."""

    def forward(self, x: Tensor) -> Tensor:
        """Every row by itself."""
        return nn.functional.layer_norm(x, x.shape[-1:])


class Activate(nn.Module):
    """A function of every number, of parts that round alike wherever a number stands (``training.networks``)."""

    def __init__(self, layer: layers_.Activation) -> None:
        super().__init__()
        self._layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """Number by number."""
        if self._layer.name == "leaky-relu":
            return torch.relu(x) - self._layer.slope * torch.relu(-x)
        return _FUNCTIONS[self._layer.name](x)


def _sigmoid(rows: Tensor) -> Tensor:
    """1/(1 + e⁻ˣ) through tanh, which rounds alike wherever a number stands."""
    return 0.5 * (1 + torch.tanh(0.5 * rows))


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    **ACTIVATIONS,
    "elu": elu,
    "sigmoid": _sigmoid,
    "silu": lambda rows: rows * _sigmoid(rows),
}


class Encoder(nn.Module):
    """The layers in order, ``outputs`` wide; then, in most methods, a linear map to what the method needs."""

    def __init__(self, layers: Sequence[nn.Module], outputs: int, last: Linear | None) -> None:
        super().__init__()
        self.layers, self.last, self.outputs = nn.ModuleList(layers), last, outputs

    def forward(self, x: Given) -> Tensor:
        """One row per row of ``x``."""
        rows: Given = x
        for layer in self.layers:
            rows = layer(rows)
        assert isinstance(rows, Tensor)
        return rows if self.last is None else self.last(rows)


def build_encoder(
    layers: EncoderLayers,
    num_features: int,
    outputs: int | None,
    generator: torch.Generator,
    *,
    dropout: bool,
) -> Encoder:
    """An encoder with fresh weights, and a linear map to ``outputs`` columns after it (None: without).

    ``dropout`` is False where noisy steps train it: which numbers are dropped would depend on who stands in a batch,
    and one example's gradient with it on the others.
    """
    layers.check_reads(num_features)
    built, width = _build(layers.layers, num_features, generator, dropout=dropout)
    last = None if outputs is None else Linear(width, outputs, generator)
    return Encoder(built, width if outputs is None else outputs, last)


def _build(
    layers: Sequence[Layer], width: int, generator: torch.Generator, *, dropout: bool
) -> tuple[list[nn.Module], int]:
    """Modules for the layers, and the width after them."""
    built: list[nn.Module] = []
    for layer in layers:
        if isinstance(layer, layers_.Linear):
            built.append(Linear(width, layer.units, generator, bias=layer.bias))
            width = layer.units
        elif isinstance(layer, layers_.ResidualSum):
            built.append(Residual(*_build(layer.layers, width, generator, dropout=dropout)[0]))
        elif isinstance(layer, layers_.LayerNorm):
            built += [Normalize(), *([Scale(width, generator.device)] if layer.affine else [])]
        elif isinstance(layer, layers_.Activation):
            built.append(Activate(layer))
        elif dropout:
            built.append(Dropout(layer.rate, generator))
    return built, width
