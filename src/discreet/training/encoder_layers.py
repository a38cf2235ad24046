"""The architecture of an encoder that a user brings, as a list of layers in words: what a release stores of it.

``("linear 64", "relu", "layer-norm", "dropout 0.5", ("linear 64", "relu"))``: a layer is a name and its numbers, and a
list inside the list is a residual sum, x + f(x). Words hold no weights and no code, so they can be read from a file
that somebody else made, and checked before anything is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from discreet.errors import ParameterError
from discreet.limits import LAYERS, WIDTH, Limit, shown

PLAIN_ACTIVATIONS = ("relu", "elu", "selu", "gelu", "silu", "tanh", "sigmoid")
_RATE, _SLOPE = Limit(0.0, 0.99), Limit(0.0, 1.0)
"""Dropout of everything would leave nothing to learn from, and what remains is divided by the rest."""
MOST_ITEMS = 8 * LAYERS.high
"""Layers of every kind, activations and sums included: eight for each linear map that is allowed."""

Words = tuple[Any, ...]
"""Texts, and tuples of these for residual sums."""


@dataclass(frozen=True)
class Linear:
    """x ↦ xW + b, or xW without a bias."""

    units: int
    bias: bool = True

    def __post_init__(self) -> None:
        """Widths have an end."""
        WIDTH.check("the width of a linear layer", self.units)


@dataclass(frozen=True)
class Activation:
    """A function of every number; ``slope`` is that of ``leaky-relu`` below zero."""

    name: str
    slope: float = 0.0

    def __post_init__(self) -> None:
        """A slope of 1 is a straight line."""
        _SLOPE.check("the slope of leaky-relu", self.slope)


@dataclass(frozen=True)
class LayerNorm:
    """Every row brought to mean 0 and variance 1; with ``affine``, columns are then scaled and shifted."""

    affine: bool = True


@dataclass(frozen=True)
class Dropout:
    """Numbers set to zero at this rate while a network is trained on public data; noisy steps leave it out."""

    rate: float

    def __post_init__(self) -> None:
        """Something must be left."""
        _RATE.check("the rate of dropout", self.rate)


@dataclass(frozen=True)
class ResidualSum:
    """x + f(x), where f is a sequence of layers that keeps the width."""

    layers: tuple[Layer, ...]


Layer = Linear | Activation | LayerNorm | Dropout | ResidualSum


@dataclass(frozen=True)
class EncoderLayers:
    """The layers of an encoder, checked; ``inputs`` is the number of columns that it reads, where it says so."""

    layers: tuple[Layer, ...]
    inputs: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        if sum(1 for _ in _all_layers(self.layers)) > MOST_ITEMS:
            raise ParameterError(f"an encoder has at most {MOST_ITEMS} layers of every kind")
        maps = sum(isinstance(layer, Linear) for layer in _all_layers(self.layers))
        if not 1 <= maps <= LAYERS.high:
            raise ParameterError(f"an encoder has 1 to {LAYERS.high} linear layers, not {maps}")
        first = next(layer for layer in self.layers if not isinstance(layer, Dropout))
        if not isinstance(first, Linear):
            raise ParameterError("an encoder begins with a linear layer, because features may be sparse")
        self.outputs()

    @classmethod
    def from_words(cls, words: object) -> EncoderLayers:
        """Read ``("linear 64", "relu", …)``."""
        if not isinstance(words, list | tuple) or not words:
            raise ParameterError(
                f"an encoder is a torch.nn.Sequential, or a list of layers such as 'linear 64', not {shown(words)}"
            )
        return cls(_layers_from(words, LAYERS.high))

    def to_words(self) -> Words:
        """The layers in words, as a release stores them."""
        return _words_of(self.layers)

    def outputs(self) -> int:
        """The width of what comes out."""
        first = next(layer for layer in self.layers if isinstance(layer, Linear))
        return _width_after(self.layers, first.units)

    def check_reads(self, num_features: int) -> None:
        """Refuse a graph of another width than the encoder says that it reads."""
        if self.inputs is not None and self.inputs != num_features:
            raise ParameterError(f"the encoder reads {self.inputs} columns, and the graph has {num_features} features")


def _all_layers(layers: Sequence[Layer]) -> Iterator[Layer]:
    for layer in layers:
        yield layer
        if isinstance(layer, ResidualSum):
            yield from _all_layers(layer.layers)


def _width_after(layers: Sequence[Layer], width: int) -> int:
    """The width after these layers; an error where a residual sum would add rows of two widths."""
    for layer in layers:
        if isinstance(layer, Linear):
            width = layer.units
        elif isinstance(layer, ResidualSum):
            inside = _width_after(layer.layers, width)
            if inside != width:
                raise ParameterError(f"a residual sum of an encoder adds rows of width {width} and {inside}")
    return width


# -------------------------------------------------------------------- words


def _layers_from(words: Sequence[object], levels: int) -> tuple[Layer, ...]:
    if levels == 0 or len(words) > MOST_ITEMS:
        raise ParameterError(f"an encoder has at most {MOST_ITEMS} layers of every kind")
    return tuple(
        ResidualSum(_layers_from(word, levels - 1)) if isinstance(word, list | tuple) else _layer_from(word)
        for word in words
    )


def _layer_from(word: object) -> Layer:
    name, *rest = (isinstance(word, str) and word.split()) or [""]
    if name in PLAIN_ACTIVATIONS and not rest:
        return Activation(name)
    if name == "linear" and rest and rest[1:] in ([], ["no-bias"]):
        return Linear(_number(rest[0]), bias=len(rest) == 1)  # type: ignore[arg-type]
    if name == "layer-norm" and rest in ([], ["no-affine"]):
        return LayerNorm(affine=not rest)
    if name == "leaky-relu" and len(rest) <= 1:
        return Activation(name, _number(rest[0] if rest else "0.01"))
    if name == "dropout" and len(rest) == 1:
        return Dropout(_number(rest[0]))
    known = ", ".join(("linear N [no-bias]", "layer-norm [no-affine]", "dropout RATE", "leaky-relu SLOPE"))
    raise ParameterError(
        f"an encoder has no layer {shown(word)}: there are {known}, {', '.join(PLAIN_ACTIVATIONS)}, and lists of these"
    )


def _number(text: str) -> float:
    """A whole number as such, another as it is; a word stays one, and the layer refuses it."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text  # type: ignore[return-value]


def _words_of(layers: Sequence[Layer]) -> Words:
    return tuple(_words_of(layer.layers) if isinstance(layer, ResidualSum) else _word_of(layer) for layer in layers)


def _word_of(layer: Linear | Activation | LayerNorm | Dropout) -> str:
    if isinstance(layer, Linear):
        return f"linear {layer.units}" + ("" if layer.bias else " no-bias")
    if isinstance(layer, LayerNorm):
        return "layer-norm" if layer.affine else "layer-norm no-affine"
    if isinstance(layer, Dropout):
        return f"dropout {layer.rate!r}"
    return f"leaky-relu {layer.slope!r}" if layer.name == "leaky-relu" else layer.name
