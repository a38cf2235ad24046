"""Learning from labels that went through randomised response: three losses, and a score to choose models by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from discreet.arrays import BoolArray, FloatArray, IntArray
from discreet.ops.sparse import SparseMatrix

LossName = Literal["drop", "forward", "plain"]
_TINY = 1e-12  # keeps logarithms and divisions finite


@dataclass(frozen=True)
class TrainingReports:
    """What training and validation nodes reported of their labels, and how that was randomised."""

    reported: Tensor
    train: Tensor
    val: Tensor
    confusion: Tensor

    @classmethod
    def of(
        cls,
        reported: IntArray,
        train: BoolArray,
        val: BoolArray,
        confusion: FloatArray,
        device: torch.device,
    ) -> TrainingReports:
        """On a device; masks become indices."""
        classes = torch.tensor(reported, device=device)
        first, second = (torch.tensor(np.flatnonzero(mask), device=device) for mask in (train, val))
        return cls(classes, first, second, torch.tensor(confusion, dtype=torch.float32, device=device))

    def class_counts(self, *, as_labels: bool) -> tuple[FloatArray, float]:
        """How many training nodes there are of each class, and the standard deviation of what reports say of that.

        Counts of reports with what randomised response adds to each class taken off, on average the truth; a node
        without a label counts 1/c to every class. ``as_labels`` takes reports for labels.
        """
        counts = np.bincount(self.reported[self.train].cpu().numpy(), minlength=len(self.confusion)).astype(np.float64)
        keep, other = float(self.confusion[0, 0]), float(self.confusion[0, -1])
        if as_labels or other == 0:
            return counts, 0.0
        if not keep > other:  # so little epsilon that single precision cannot tell: reports say nothing
            return np.full_like(counts, counts.mean()), 0.0
        spread = max(keep * (1 - keep), other * (1 - other))
        return (counts - counts.sum() * other) / (keep - other), float(np.sqrt(counts.sum() * spread)) / (keep - other)


class NoisyLabelLoss:
    """Cross-entropy between what the network says and what training nodes reported.

    *plain*: as if reports were labels. *forward*: the network's probabilities first pass through the known confusion
    matrix, so that the clean class is what it learns (Patrini et al. 2017). *drop*: both sides are also averaged over
    the graph, which denoises the reports; a node then learns from what its surroundings reported (LPGNN).
    """

    def __init__(
        self,
        kind: LossName,
        reported: Tensor,
        rows: Tensor,
        confusion: Tensor,
        operators: Sequence[SparseMatrix] = (),
    ) -> None:
        """``rows`` are the training nodes, ``reported`` the class that every node reported."""
        self._kind = kind
        self._confusion = confusion
        self._operators = tuple(operators) if kind == "drop" else ()
        self._rows = rows
        one_hot = torch.zeros(len(reported), len(confusion), device=confusion.device)
        one_hot[rows, reported[rows]] = 1.0
        self._is_training = one_hot.sum(dim=1, keepdim=True)
        self._mass = self._spread(self._is_training)
        self._target = self._averaged(one_hot)[rows]

    def __call__(self, logits: Tensor) -> Tensor:
        """The loss of logits of every node."""
        expected = torch.softmax(logits, dim=1)
        if self._kind != "plain":
            expected = expected @ self._confusion
        expected = self._averaged(expected)[self._rows]
        return -(self._target * torch.log(expected + _TINY)).sum(dim=1).mean()

    def _averaged(self, values: Tensor) -> Tensor:
        """The mean over training nodes that the operators reach; a node that they do not reach keeps its own."""
        if not self._operators:
            return values
        spread = self._spread(values * self._is_training)
        return torch.where(self._mass > _TINY, spread / (self._mass + _TINY), values)

    def _spread(self, values: Tensor) -> Tensor:
        for operator in self._operators:
            values = operator @ values
        return values


def reported_loss(logits: Tensor, reported: Tensor, rows: Tensor, confusion: Tensor) -> float:
    """How badly logits explain the reports of held-out nodes: negative log-likelihood, confusion included.

    It reads reports alone, so a model may be chosen by it without any cost.
    """
    if len(rows) == 0:
        return 0.0
    expected = torch.softmax(logits[rows], dim=1) @ confusion
    return float(-torch.log(expected[torch.arange(len(rows)), reported[rows]] + _TINY).mean())
