"""Plain training: Adam and SGD on explicit gradients, and the loop over public data that methods share.

(Importing ``torch.optim`` costs two seconds, more than many fits.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from discreet.arrays import Arrays, IntArray
from discreet.errors import GraphError
from discreet.graph.parts import PublicPart
from discreet.ops.sparse import AT_ONCE, SparseMatrix, feature_tensor, one_thread_if, select_rows
from discreet.training.direct import direct_gradients
from discreet.training.networks import MLP, Begun, generators_of
from discreet.training.recorded import WORTH_RECORDING, RecordedPasses, adam_rates

Progress = Callable[[str, int, int], None]
Gradients = Callable[[Tensor], Sequence[Tensor]]
SMALL_BATCH = 4096
"""Rows up to which a step is quicker on one thread."""
ENOUGH_STEPS = 2000
"""Steps after which more of them teach a network little: what 30 passes over 17,000 rows in batches of 256 take."""
STEPS_OF_A_PASS = 8
"""What the passes of a head are made for: 2,000 training nodes in batches of 256. Fewer nodes take more passes."""
LARGEST_PARAMETER = 1e6
"""Features are at most 1e12: products of the two over a million columns stay far below what single precision holds."""
LARGEST_BATCH = 2048
"""Rows beyond which a larger batch teaches no more per step (and single steps no longer fit a processor's caches)."""


# -------------------------------------------------------------------- optimisers


class Adam:
    """Adam (Kingma and Ba 2015, whose β and ε are the defaults) with weight decay added to the gradient, as
    ``torch.optim.Adam`` has it.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        *,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self._parameters = [p for p in parameters if p.requires_grad]
        self._decay = weight_decay
        self.betas = betas
        self._eps = eps
        self._steps = 0
        self._in_one_pass = all(p.device.type == "cpu" and p.is_contiguous() for p in self._parameters)
        self._count = torch.zeros(())
        self._first = [torch.zeros_like(p) for p in self._parameters]
        self._second = [torch.zeros_like(p) for p in self._parameters]

    def state(self) -> Arrays:
        """What it remembers of past gradients, for audits."""
        return _arrays(first=self._first, second=self._second)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """One update along the given gradients, one for each parameter."""
        beta1, beta2 = self.betas
        self._steps += 1
        if self._in_one_pass:
            self._step_in_one_pass(gradients, learning_rate)
            return
        correction1, correction2 = 1 - beta1**self._steps, math.sqrt(1 - beta2**self._steps)
        total = list(gradients)
        if self._decay:
            total = list(torch._foreach_add(total, self._parameters, alpha=self._decay))
        torch._foreach_lerp_(self._first, total, 1 - beta1)
        torch._foreach_mul_(self._second, beta2)
        torch._foreach_addcmul_(self._second, total, total, 1 - beta2)
        roots = torch._foreach_sqrt(self._second)
        torch._foreach_div_(roots, correction2)
        torch._foreach_add_(roots, self._eps)
        torch._foreach_addcdiv_(self._parameters, self._first, roots, -learning_rate / correction1)

    def _step_in_one_pass(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """The same in one pass over all numbers, where plain operations take ten."""
        beta1, beta2 = self.betas
        torch._fused_adam_(
            self._parameters,
            [gradient.contiguous() for gradient in gradients],
            self._first,
            self._second,
            [],
            [self._count.fill_(self._steps)] * len(self._parameters),
            lr=learning_rate,
            beta1=beta1,
            beta2=beta2,
            weight_decay=self._decay,
            eps=self._eps,
            amsgrad=False,
            maximize=False,
        )

    @torch.no_grad()
    def step_at(self, gradients: Sequence[Tensor], rates: Tensor) -> None:
        """The same with the two numbers of ``recorded.adam_rates`` on the device, for steps that are recorded."""
        beta1, beta2 = self.betas
        total = tuple(gradients)
        if self._decay:
            total = torch._foreach_add(total, self._parameters, alpha=self._decay)
        torch._foreach_lerp_(self._first, total, 1 - beta1)
        torch._foreach_mul_(self._second, beta2)
        torch._foreach_addcmul_(self._second, total, total, 1 - beta2)
        roots = torch._foreach_sqrt(self._second)
        torch._foreach_mul_(roots, rates[1])
        torch._foreach_add_(roots, self._eps)
        moves = torch._foreach_div(self._first, roots)
        torch._foreach_mul_(moves, rates[0])
        torch._foreach_sub_(self._parameters, moves)


class SGD:
    """Gradient descent with momentum, 0.9 as is usual: a step remembers about ten."""

    def __init__(self, parameters: Iterable[Tensor], *, momentum: float = 0.9) -> None:
        self._parameters = [p for p in parameters if p.requires_grad]
        self._momentum = momentum
        self._velocity = [torch.zeros_like(p) for p in self._parameters]

    def state(self) -> Arrays:
        """What it remembers of past gradients, for audits."""
        return _arrays(velocity=self._velocity)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """One update along the given gradients, one for each parameter."""
        for parameter, gradient, velocity in zip(self._parameters, gradients, self._velocity, strict=True):
            velocity.mul_(self._momentum).add_(gradient)
            parameter.add_(velocity, alpha=-learning_rate)


def _arrays(**named: list[Tensor]) -> Arrays:
    return {f"{name} {i}": part.cpu().numpy().copy() for name, parts in named.items() for i, part in enumerate(parts)}


@torch.no_grad()
def keep_finite(parameters: Sequence[Tensor]) -> None:
    """Bring every parameter within :data:`LARGEST_PARAMETER`; what is no number becomes zero.

    Parameters are functions of released values, so this is free. With it no encoding of features that a graph may hold
    overflows, whatever noise and learning rates did.
    """
    for parameter in parameters:
        parameter.nan_to_num_(nan=0.0, posinf=LARGEST_PARAMETER, neginf=-LARGEST_PARAMETER)
    together: list[Tensor] = list(parameters)
    torch._foreach_clamp_max_(together, LARGEST_PARAMETER)
    torch._foreach_clamp_min_(together, -LARGEST_PARAMETER)


def cosine(step: int, steps: int) -> float:
    """A factor that falls from 1 towards 0 over the steps."""
    return 0.5 * (1 + math.cos(math.pi * step / max(steps, 1)))


# -------------------------------------------------------------------- the loop


@dataclass(frozen=True)
class TrainOptions:
    """How to descend. ``batch_size=None`` takes all rows at once.

    On many rows batches grow, up to :data:`LARGEST_BATCH`, and then passes become fewer, so that there are about
    :data:`ENOUGH_STEPS` (and one pass at least): see :meth:`course`. ``class_weights`` says how much a node of each
    class counts; None for all the same.
    """

    epochs: int
    learning_rate: float
    weight_decay: float
    batch_size: int | None
    class_weights: tuple[float, ...] | None = None

    def course(self, rows: int) -> tuple[int, int]:
        """The rows of a batch and the number of passes, for so many rows to learn from."""
        if self.batch_size is None or self.batch_size >= rows:
            return rows, self.epochs
        if self.epochs * -(-rows // self.batch_size) <= ENOUGH_STEPS:
            return self.batch_size, self.epochs
        wanted = -(-rows * self.epochs // ENOUGH_STEPS)
        size = max(self.batch_size, min(wanted, LARGEST_BATCH))
        return size, max(1, min(self.epochs, ENOUGH_STEPS * size // rows))

    def for_head(self, rows: int) -> TrainOptions:
        """As many steps where rows are few: else a head that starts at random would hardly leave its start."""
        return replace(self, epochs=self.epochs * self._repeats(rows)) if self.has_few(rows) else self

    def has_few(self, rows: int) -> bool:
        """Whether a pass over so many rows has at most half of the steps that the passes of a head are made for."""
        return self.batch_size is not None and self._repeats(rows) > 1

    def _repeats(self, rows: int) -> int:
        """How many passes have the steps of one that a head is made for."""
        return STEPS_OF_A_PASS // -(-rows // self.course(rows)[0]) if rows else 1


def training_rows(part: PublicPart) -> IntArray:
    """Indices of the labelled training nodes; an error where there is none."""
    rows = part.labelled(part.mask("train"))
    if len(rows) == 0:
        raise GraphError("no training node has a label")
    return rows


def train(
    network: nn.Module,
    forward: Callable[[Tensor], Tensor],
    labels: Tensor,
    rows: Tensor,
    options: TrainOptions,
    generator: torch.Generator,
    *,
    title: str = "training",
    progress: Progress | None = None,
    on_epoch: Callable[[], None] | None = None,
    steady: bool = False,
) -> None:
    """Minimise cross-entropy on ``rows`` with Adam and a learning rate that falls to zero along a cosine.

    ``forward(batch)`` gives the logits of those rows; ``on_epoch`` runs before each pass. The learning rate falls in
    ``options.epochs`` levels, one per pass where there are as many passes. There is no early stopping and no best
    epoch: what is returned does not depend on validation data. ``steady`` says that ``forward`` does the same work for
    every batch and asks nothing of the device, so that a step can be recorded on a GPU.
    """
    parameters = [p for p in network.parameters() if p.requires_grad]
    weights = _weights(options, labels)

    def gradients(batch: Tensor) -> Sequence[Tensor]:
        return torch.autograd.grad(nn.functional.cross_entropy(forward(batch), labels[batch], weights), parameters)

    network.train()
    _descend(network, gradients, rows, options, generator, title, progress, on_epoch, steady=steady)
    network.eval()


def train_on_rows(
    network: nn.Module,
    read: Callable[[Tensor], Tensor | SparseMatrix],
    labels: Tensor,
    rows: Tensor,
    options: TrainOptions,
    generator: torch.Generator,
    *,
    title: str = "training",
    progress: Progress | None = None,
    on_epoch: Callable[[], None] | None = None,
    steady: bool = False,
) -> None:
    """:func:`train` of a network that reads each row by itself: ``read(batch)`` gives what it is shown of those rows.

    The result is the same; gradients of networks that ``training.direct`` knows are found without autograd.
    """
    network.train()
    direct = direct_gradients(network, _weights(options, labels))
    if direct is None:
        train(
            network,
            lambda batch: network(read(batch)),
            labels,
            rows,
            options,
            generator,
            title=title,
            progress=progress,
            on_epoch=on_epoch,
            steady=steady,
        )
        return

    def gradients(batch: Tensor) -> Sequence[Tensor]:
        return direct(read(batch), labels.index_select(0, batch))

    _descend(network, gradients, rows, options, generator, title, progress, on_epoch, steady=False)
    network.eval()


def _weights(options: TrainOptions, labels: Tensor) -> Tensor | None:
    return None if options.class_weights is None else torch.tensor(options.class_weights, device=labels.device)


def _descend(
    network: nn.Module,
    gradients: Gradients,
    rows: Tensor,
    options: TrainOptions,
    generator: torch.Generator,
    title: str,
    progress: Progress | None,
    on_epoch: Callable[[], None] | None,
    *,
    steady: bool,
) -> None:
    optimizer = Adam(network.parameters(), weight_decay=options.weight_decay)
    size, passes = options.course(len(rows))
    steps = passes * -(-len(rows) // size)
    rates = [options.learning_rate * cosine(step * options.epochs // steps, options.epochs) for step in range(steps)]
    if steady and rows.device.type == "cuda" and passes * (len(rows) // size) >= WORTH_RECORDING:
        one_pass = _recorded_passes(network, gradients, optimizer, rows, size, rates, generator)
    else:
        one_pass = _passes(gradients, optimizer, rows, size, rates, generator)
    with threads_for(size):
        for number in range(passes):
            if on_epoch is not None:
                on_epoch()
            one_pass()
            if progress is not None:
                progress(title, number + 1, passes)
    keep_finite(list(network.parameters()))  # of released rows that noise made huge a network may learn no number


def _passes(
    gradients: Gradients, optimizer: Adam, rows: Tensor, size: int, rates: Sequence[float], generator: torch.Generator
) -> Callable[[], None]:
    """A function that takes one pass each time, batch by batch."""
    given = iter(rates)

    def one_pass() -> None:
        for batch in batches(rows, size, generator):
            optimizer.step(gradients(batch), next(given))

    return one_pass


def _recorded_passes(
    network: nn.Module,
    gradients: Gradients,
    optimizer: Adam,
    rows: Tensor,
    size: int,
    rates: Sequence[float],
    generator: torch.Generator,
) -> Callable[[], None]:
    """The same by steps that a GPU plays back."""

    def take(batch: Tensor, rate: Tensor) -> None:
        optimizer.step_at(gradients(batch), rate)

    on_device = adam_rates(rates, optimizer.betas, rows.device)
    recorded = RecordedPasses(take, rows, size, on_device, {generator, *generators_of(network)})
    return lambda: recorded.run(_order(rows, size, generator))


def threads_for(batch: int) -> AbstractContextManager[None]:
    """All threads for large steps, one for small ones."""
    return one_thread_if(batch <= SMALL_BATCH)


def train_on_features(
    network: nn.Module,
    part: PublicPart,
    options: TrainOptions,
    generator: torch.Generator,
    *,
    title: str = "training",
    progress: Progress | None = None,
) -> None:
    """Train a row-wise network on the features of the labelled training nodes."""
    features = feature_tensor(part.features, generator.device)
    rows = torch.tensor(training_rows(part), device=generator.device)
    everything = select_rows(features, rows) if options.course(len(rows))[0] == len(rows) else None

    def read(batch: Tensor) -> Tensor | SparseMatrix:
        return select_rows(features, batch) if everything is None else everything

    labels = torch.tensor(part.labels, device=generator.device)
    steady = isinstance(features, Tensor)
    train_on_rows(network, read, labels, rows, options, generator, title=title, progress=progress, steady=steady)


def batches(rows: Tensor, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """All rows at once (the same tensor object each time), or shuffled parts, in an order of the public seed.

    For public or released rows: batches of private examples are drawn by the curator (``mechanisms.dpsgd``).
    """
    order = _order(rows, size, generator)
    yield from [rows] if order is None else torch.split(rows[order], size)


def _order(rows: Tensor, size: int, generator: torch.Generator) -> Tensor | None:
    if size >= len(rows):
        return None
    return torch.randperm(len(rows), generator=generator, device=generator.device)


# -------------------------------------------------------------------- a head beside a network that has seen the labels


def train_beside(
    head: nn.Module,
    network: nn.Module,
    view: Callable[[Any], Tensor],
    beside: Tensor,
    part: PublicPart,
    options: TrainOptions,
    generator: torch.Generator,
    *,
    own_dropout: float,
    title: str,
    progress: Progress | None,
    own_columns: int | None = None,
) -> None:
    """Fit ``head`` to the training labels from ``view`` of a node's features, and the rows ``beside`` it.

    ``view`` hands what it is given to ``network`` and goes on from there, to ``own_columns`` numbers, one for each
    class if nothing is said.

    The network behind ``view`` has seen the labels of training nodes, so what it says of them looks better
    than what it says of any other node, and a head that always saw it would learn to ignore the rest. So it
    is left out at rate ``own_dropout``, and drawn afresh, with the network's dropout, in every epoch. With few training
    nodes there are more epochs (:meth:`TrainOptions.for_head`).
    """
    device = generator.device
    rows = torch.tensor(training_rows(part), device=device)
    labels = torch.tensor(part.labels, device=device)[rows]
    features = feature_tensor(part.features, device)
    places = torch.arange(len(rows), device=device)
    columns = part.num_classes if own_columns is None else own_columns
    seen = torch.cat([beside.new_zeros(len(rows), columns), beside[rows]], dim=1)
    own = seen[:, :columns]
    begun = _begun(network, features, rows)

    def seen_by_network(chosen: Tensor) -> Tensor | SparseMatrix | Begun:
        return select_rows(features, rows[chosen]) if begun is None else Begun(begun.rows.index_select(0, chosen))

    @torch.no_grad()
    def redraw() -> None:
        own.zero_()
        for some in torch.split(places, AT_ONCE):
            # dropout of the public seed, over public records beside released rows; what is left out costs nothing
            shown = some[torch.rand(len(some), generator=generator, device=device) >= own_dropout]
            own.index_copy_(0, shown, view(seen_by_network(shown)))

    def read(batch: Tensor) -> Tensor:
        return seen.index_select(0, batch)

    network.train()
    train_on_rows(
        head,
        read,
        labels,
        places,
        options.for_head(len(rows)),
        generator,
        title=title,
        progress=progress,
        on_epoch=redraw,
        steady=True,
    )
    network.eval()


@torch.no_grad()
def _begun(network: nn.Module, features: Tensor | SparseMatrix, rows: Tensor) -> Begun | None:
    """Of few rows what does not change from draw to draw, to the same bits; None where it is worked out every time."""
    if not isinstance(network, MLP) or len(rows) > AT_ONCE:
        return None
    return network.begin(select_rows(features, rows))
