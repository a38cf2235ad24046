"""Training by noisy clipped gradients (the DP-GNN paper, algorithms 1 and 3): every step goes through the curator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from discreet.arrays import FloatArray
from discreet.mechanisms.curator import Curator
from discreet.ops.clipping import trainable, views_of
from discreet.ops.sparse import one_thread_if
from discreet.training.descent import SGD, SMALL_BATCH, Adam, Progress, cosine, keep_finite

Optimizer = Literal["adam", "sgd"]
Schedule = Literal["cosine", "constant"]


@dataclass(frozen=True)
class Descent:
    """How to move by noisy gradients: the number of steps is the plan's.

    ``learning_rate`` is of gradients measured in clip norms; ``averaged`` the share of the last steps whose weights are
    averaged, which costs no privacy.
    """

    learning_rate: float
    optimizer: Optimizer = "adam"
    schedule: Schedule = "cosine"
    averaged: float = 0.5


def train_privately(
    network: nn.Module,
    curator: Curator,
    stage_name: str,
    descent: Descent,
    *,
    progress: Progress | None = None,
    after_step: Callable[[], None] | None = None,
    **inputs: Any,
) -> None:
    """Run a stage of noisy steps and leave the averaged weights in the network.

    Guarantee: the weights depend on private data through the curator's answers alone; learning rates, the number
    of steps and the divisor (the *expected* batch size) are public. There is no early stopping.
    ``inputs`` are what else the stage's query takes; ``after_step`` runs after each update (to project weights).
    """
    stage, query = curator.steps(stage_name)
    parameters = trainable(network)
    divisor = query.batch_size * query.clip_norm
    optimizer = Adam(parameters) if descent.optimizer == "adam" else SGD(parameters)
    curator.watch_also(f"optimiser of {stage_name}", optimizer.state)
    average = _Average(parameters)
    network.train()
    with one_thread_if(query.batch_size <= SMALL_BATCH):
        for step in range(stage.runs):
            noisy = _to_tensor_like(curator.ask(stage_name, network=network, **inputs), parameters[0])
            factor = cosine(step, stage.runs) if descent.schedule == "cosine" else 1.0
            optimizer.step(views_of(noisy / divisor, parameters), descent.learning_rate * factor)
            keep_finite(parameters)
            if after_step is not None:
                after_step()
            if step >= stage.runs * (1 - descent.averaged):
                average.add()
            if progress is not None:
                progress(stage_name, step + 1, stage.runs)
    average.write()
    network.eval()


def _to_tensor_like(answer: FloatArray, like: Tensor) -> Tensor:
    """An answer in the precision and on the device of the parameters; a GPU fetches it while Python goes on."""
    if like.device.type != "cuda":
        return torch.from_numpy(answer).to(like)
    fetched = torch.empty(answer.shape, dtype=like.dtype, pin_memory=True)
    return fetched.copy_(torch.from_numpy(answer)).to(like.device, non_blocking=True)


class _Average:
    """The mean of the weights at the moments when :meth:`add` was called."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = list(parameters)
        self._sums = [torch.zeros_like(p) for p in parameters]
        self._count = 0

    @torch.no_grad()
    def add(self) -> None:
        self._count += 1
        torch._foreach_add_(self._sums, self._parameters)

    @torch.no_grad()
    def write(self) -> None:
        if self._count:
            for total, parameter in zip(self._sums, self._parameters, strict=True):
                parameter.copy_(total / self._count)
