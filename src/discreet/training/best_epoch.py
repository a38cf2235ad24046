"""The weights of the epoch that did best on validation nodes, for networks whose inputs and labels are all public."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from discreet.arrays import Array, IntArray


class BestEpoch:
    """Looks at a network every few epochs and remembers it where it is best.

    Better is: a higher ``measure`` of labels and class probabilities on validation nodes (None: more of them right), or
    the same with less loss. Without validation nodes nothing is remembered,
    and :meth:`restore` leaves the network as the last epoch made it.
    """

    def __init__(
        self,
        network: nn.Module,
        forward: Callable[[Tensor], Tensor],
        labels: Tensor,
        rows: Tensor,
        *,
        every: int,
        measure: Callable[[IntArray, Array], float] | None = None,
    ) -> None:
        self._network, self._forward, self._every, self._measure = network, forward, every, measure
        self._labels, self._rows = labels, rows
        self._epoch = 0
        self._best: tuple[float, float] | None = None
        self._state: dict[str, Tensor] = {}

    def look(self) -> None:
        """Before each epoch: judge what the epochs so far have made."""
        if len(self._rows) and self._epoch and self._epoch % self._every == 0:
            self._judge()
        self._epoch += 1

    def restore(self) -> None:
        """After the last epoch: judge it too, and put the best weights back."""
        if not len(self._rows):
            return
        self._judge()
        self._network.load_state_dict(self._state)
        self._network.eval()

    @torch.no_grad()
    def _judge(self) -> None:
        self._network.eval()
        logits, wanted = self._forward(self._rows), self._labels[self._rows]
        found = (self._score(logits, wanted), -float(nn.functional.cross_entropy(logits, wanted)))
        if self._best is None or found > self._best:
            self._best = found
            self._state = {name: value.detach().clone() for name, value in self._network.state_dict().items()}
        self._network.train()

    def _score(self, logits: Tensor, wanted: Tensor) -> float:
        if self._measure is None:
            return float((logits.argmax(dim=1) == wanted).sum())
        found = self._measure(wanted.cpu().numpy(), torch.softmax(logits, dim=1).cpu().numpy())
        return -math.inf if math.isnan(found) else found
