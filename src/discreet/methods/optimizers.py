"""Adam and SGD on explicit gradients. (Importing ``torch.optim`` costs two seconds, more than many fits.)"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor


class Adam:
    """Adam (Kingma and Ba 2015) with weight decay added to the gradient, as ``torch.optim.Adam`` has it."""

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
        self._betas = betas
        self._eps = eps
        self._steps = 0
        self._first = [torch.zeros_like(p) for p in self._parameters]
        self._second = [torch.zeros_like(p) for p in self._parameters]

    def state(self) -> dict[str, np.ndarray]:
        """What it remembers of past gradients, for audits."""
        return _arrays(first=self._first, second=self._second)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """One update along the given gradients, one for each parameter."""
        beta1, beta2 = self._betas
        self._steps += 1
        correction1, correction2 = 1 - beta1**self._steps, math.sqrt(1 - beta2**self._steps)
        for parameter, gradient, first, second in zip(
            self._parameters, gradients, self._first, self._second, strict=True
        ):
            total = gradient.add(parameter, alpha=self._decay) if self._decay else gradient
            first.lerp_(total, 1 - beta1)
            second.mul_(beta2).addcmul_(total, total, value=1 - beta2)
            denominator = (second.sqrt() / correction2).add_(self._eps)
            parameter.addcdiv_(first, denominator, value=-learning_rate / correction1)


class SGD:
    """Gradient descent with momentum."""

    def __init__(self, parameters: Iterable[Tensor], *, momentum: float = 0.9) -> None:
        self._parameters = [p for p in parameters if p.requires_grad]
        self._momentum = momentum
        self._velocity = [torch.zeros_like(p) for p in self._parameters]

    def state(self) -> dict[str, np.ndarray]:
        """What it remembers of past gradients, for audits."""
        return _arrays(velocity=self._velocity)

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """One update along the given gradients, one for each parameter."""
        for parameter, gradient, velocity in zip(self._parameters, gradients, self._velocity, strict=True):
            velocity.mul_(self._momentum).add_(gradient)
            parameter.add_(velocity, alpha=-learning_rate)


def _arrays(**named: list[Tensor]) -> dict[str, np.ndarray]:
    return {f"{name} {i}": part.cpu().numpy().copy() for name, parts in named.items() for i, part in enumerate(parts)}


def cosine(step: int, steps: int) -> float:
    """A factor that falls from 1 towards 0 over the steps."""
    return 0.5 * (1 + math.cos(math.pi * step / max(steps, 1)))
