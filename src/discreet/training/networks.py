"""Small networks with explicit randomness: every draw comes from a generator that the caller owns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar, overload

import torch
from torch import Tensor, nn

from discreet.arrays import Array, Arrays
from discreet.ops.affine_calls import register_affine
from discreet.ops.rows import damp_rows, finite_rows, normalize_rows, row_product
from discreet.ops.slot_rows import SlotRows
from discreet.ops.sparse import SparseMatrix

Module = TypeVar("Module", bound=nn.Module)
SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
"""Klambauer et al. (2017), as torch has them."""


def selu(rows: Tensor) -> Tensor:
    """SELU from parts that round alike wherever a number stands.

    (``torch.selu`` takes the last few numbers of a tensor by another exponential than the others, so that an example's
    rows would depend on how many there are.)
    """
    return SELU_SCALE * (torch.relu(rows) + SELU_ALPHA * torch.expm1(rows.clamp_max(0)))


def elu(rows: Tensor) -> Tensor:
    """ELU with α = 1, from the same parts."""
    return torch.relu(rows) + torch.expm1(rows.clamp_max(0))


def gelu(rows: Tensor) -> Tensor:
    """GELU, x·½(1 + erf(x/√2)), from parts that round alike wherever a number stands (``torch``'s does not)."""
    return 0.5 * rows * (1 + torch.erf(rows * math.sqrt(0.5)))


Activation = Literal["relu", "selu", "tanh", "gelu"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "selu": selu,
    "tanh": torch.tanh,
    "gelu": gelu,
}


class Linear(nn.Module):
    """x ↦ xW + b for rows of any kind, Glorot-initialised from a generator.

    Guarantee: a row is the same bits whatever rows stand beside it (``ops.rows``).
    """

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator, *, bias: bool = True) -> None:
        """Draw the weights; the bias starts at zero."""
        super().__init__()
        bound = (6 / (inputs + outputs)) ** 0.5
        draw = torch.rand(inputs, outputs, generator=generator, device=generator.device)
        self.weight = nn.Parameter((2 * draw - 1) * bound)
        self.bias = nn.Parameter(torch.zeros(outputs, device=generator.device)) if bias else None

    def forward(self, x: Tensor | SparseMatrix | SlotRows) -> Tensor:
        """The affine map."""
        product = row_product(x, self.weight) if isinstance(x, Tensor) else x @ self.weight
        return product if self.bias is None else product + self.bias


register_affine(Linear, weight_is_in_by_out=True)  # so that its gradients are clipped without being formed


_LEAST_WORD = -(2**63)
_LEVELS = 2**16  # a processor draws four numbers of sixteen bits from one word: twice as fast as uniform ones


class Dropout(nn.Module):
    """Dropout that draws from its own generator, so that fits do not touch torch's global state.

    For public records: networks that are trained by noisy steps have a rate of 0.
    """

    def __init__(self, rate: float, generator: torch.Generator) -> None:
        """Keep the generator; nothing is drawn yet."""
        super().__init__()
        self.rate = rate
        self.generator = generator

    @overload
    def forward(self, x: Tensor) -> Tensor: ...

    @overload
    def forward(self, x: SparseMatrix) -> SparseMatrix: ...

    def forward(self, x: Tensor | SparseMatrix) -> Tensor | SparseMatrix:
        """Zero entries at the given rate and rescale the rest, while training."""
        if isinstance(x, SparseMatrix):
            if not self.training or self.rate == 0:
                return x
            kept = torch.rand(x.nnz, generator=self.generator, device=x.device) >= self.rate
            return x.times((kept / (1 - self.rate)).cpu().numpy())
        mask = self.mask(x)
        return x if mask is None else x * mask

    def mask(self, x: Tensor) -> Tensor | None:
        """A fresh factor for every number: zero at the given rate; None where nothing is dropped.

        On a processor the rate is rounded to sixteen bits; factors have a mean of one at the rate as it was rounded.
        """
        if not self.training or self.rate == 0:
            return None
        if x.device.type != "cpu":
            return torch.rand(x.shape, generator=self.generator, device=x.device).ge_(self.rate).div_(1 - self.rate)
        words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)
        levels = words.random_(_LEAST_WORD, None, generator=self.generator).view(torch.int16)[: x.numel()].view(x.shape)
        dropped = min(round(self.rate * _LEVELS), _LEVELS - 1)
        return levels.to(torch.float32).ge_(dropped - _LEVELS // 2).mul_(_LEVELS / (_LEVELS - dropped))


def generators_of(network: nn.Module) -> set[torch.Generator]:
    """Those that its dropout draws from."""
    return {module.generator for module in network.modules() if isinstance(module, Dropout)}


class Begun(NamedTuple):
    """Rows on their way through an :class:`MLP`, before its first dropout."""

    rows: Tensor


class MLP(nn.Module):
    """Linear layers; between them layer normalisation (without parameters), an activation and dropout.

    Rows never meet (there is no batch normalisation), so per-example gradients exist. Normalising each
    hidden row makes one learning rate serve features of any scale.
    """

    def __init__(
        self, widths: Sequence[int], activation: Activation, dropout: float, generator: torch.Generator
    ) -> None:
        """``widths`` runs from the input to the output."""
        super().__init__()
        pairs = itertools.pairwise(widths)
        self.layers = nn.ModuleList(Linear(a, b, generator) for a, b in pairs)
        self.dropout = Dropout(dropout, generator)
        self.activation = ACTIVATIONS[activation]

    def begin(self, x: Tensor | SparseMatrix) -> Begun | None:
        """How far rows come before the first dropout: the same in every draw. None where nothing is dropped."""
        return Begun(self._activated(self.layers[0], x)) if len(self.layers) > 1 else None

    def hidden(self, x: Tensor | SparseMatrix | Begun) -> Tensor | SparseMatrix:
        """What the last linear map reads."""
        layers = list(self.layers)[:-1]
        given: Tensor | SparseMatrix
        if isinstance(x, Begun):
            given, layers = self.dropout(x.rows), layers[1:]
        else:
            given = x
        for layer in layers:
            given = self.dropout(self._activated(layer, given))
        return given

    def _activated(self, layer: nn.Module, x: Tensor | SparseMatrix) -> Tensor:
        hidden = layer(x)
        return self.activation(nn.functional.layer_norm(hidden, hidden.shape[-1:]))

    def forward(self, x: Tensor | SparseMatrix | Begun) -> Tensor:
        """Logits or embeddings: the last layer is linear."""
        out: Tensor = self.layers[-1](self.hidden(x))
        return out


EVIDENCE = 3.0
"""What a noisy head starts from: the weight of a neighbour's row beside a node's own log-probabilities."""


class Head(nn.Module):
    """A network with a linear path beside it: under Gaussian noise, evidence is linear in what was measured."""

    def __init__(
        self, widths: Sequence[int], activation: Activation, dropout: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.network = MLP(widths, activation, dropout, generator)
        self.linear = Linear(widths[0], widths[-1], generator)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.network(x) + self.linear(x)
        return logits

    @torch.no_grad()
    def start_from_evidence(self, classes: int) -> None:
        """Begin with: what the encoder says of a node, plus what its neighbours' rows say of each class."""
        last = self.network.layers[-1]
        assert isinstance(last, Linear)
        last.weight.zero_()
        blocks = self.linear.weight.view(-1, classes, classes)
        blocks.copy_(EVIDENCE * torch.eye(classes))
        blocks[0] = torch.eye(classes)


def scaled_rows(noisy: Tensor, noise_std: float, *, evidence: bool) -> Tensor:
    """What a head reads of noisy rows: weighed as evidence under Gaussian noise is, or damped."""
    return noisy / (1 + noise_std**2) if evidence else damp_rows(noisy / (1 + noise_std))


class OwnView(nn.Module):
    """What the encoder alone says of a node: class probabilities, or their logarithms for noisy steps."""

    def __init__(self, encoder: nn.Module, classifier: nn.Module, *, logarithms: bool) -> None:
        super().__init__()
        self.encoder, self.classifier, self._logarithms = encoder, classifier, logarithms

    def forward(self, features: Tensor | SparseMatrix | Begun) -> Tensor:
        """One row per node."""
        logits = self.classifier(self.encoder(features))
        return torch.log_softmax(logits, dim=1) if self._logarithms else torch.softmax(logits, dim=1)


class OwnRows(nn.Module):
    """What the encoder makes of a node before it names classes: rows of unit norm, as the node tells its neighbours."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, features: Tensor | SparseMatrix | Begun) -> Tensor:
        """One row per node."""
        encoded: Tensor = self.encoder(features)
        return finite_rows(normalize_rows(encoded - encoded.mean(dim=1, keepdim=True)))


class HeadBeside(nn.Module):
    """The head on a node's own view beside its cached rows."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def forward(self, own: Tensor, cached: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.head(torch.cat([own, cached], dim=1))
        return logits


FLATTENED = 1.5
"""Networks trained by noisy steps are too sure of themselves: by how much their logits are divided to begin with."""

MOST_LOG_ODDS = 20.0
"""No class is held to be less likely than the likeliest by more than a factor with this logarithm."""


class BoundedView(nn.Module):
    """The node model's log-probabilities less their largest, bounded, so that an extreme record stays a number."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor | SparseMatrix) -> Tensor:
        """One row per node."""
        logits = torch.nan_to_num(self.network(features))
        return (logits - logits.amax(dim=1, keepdim=True)).clamp_min(-MOST_LOG_ODDS)


class Weigher(nn.Module):
    """Two weights: logits = w₁·(what the node model says) + w₂·(what the evidence says), and nothing else."""

    def __init__(self, generator: torch.Generator) -> None:
        """Begin with Bayes' rule on a flattened node model."""
        super().__init__()
        self.weights = Linear(2, 1, generator)
        with torch.no_grad():
            self.weights.weight.copy_(torch.tensor([[1 / FLATTENED], [1.0]]))

    def forward(self, own: Tensor, evidence: Tensor) -> Tensor:
        """One number per class."""
        logits: Tensor = self.weights(torch.stack([own, evidence], dim=2)).squeeze(2)
        return logits


def widths_of(inputs: int, hidden: int, layers: int, outputs: int) -> list[int]:
    """The widths of a network with ``layers`` linear maps."""
    return [inputs, *[hidden] * (layers - 1), outputs]


def module_state(name: str, module: nn.Module) -> Arrays:
    """A module's parameters as arrays, each name prefixed."""
    return {f"{name}.{key}": value.detach().cpu().numpy() for key, value in module.state_dict().items()}


def modules_state(modules: Mapping[str, nn.Module]) -> Arrays:
    """The parameters of several modules, each name prefixed by its module's."""
    return {key: value for name, module in modules.items() for key, value in module_state(name, module).items()}


def restore_module(name: str, module: Module, state: Mapping[str, Array]) -> Module:
    """Fill a module with what :func:`module_state` gave, and set it to predict."""
    found = {key: torch.tensor(state[f"{name}.{key}"]) for key in module.state_dict()}
    module.load_state_dict(found)
    return module.eval()


def restore_modules(modules: Mapping[str, nn.Module], state: Mapping[str, Array]) -> None:
    """Fill modules with what :func:`modules_state` gave, and set them to predict."""
    for name, module in modules.items():
        restore_module(name, module, state)
