"""Noisy steps without data: all terms are zero, and the test says how many of them one unit touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from discreet.arrays import Array, IntArray
from discreet.graph.parts import PrivatePart
from discreet.privacy.levels import Change, NodeLevel
from discreet.privacy.plan import Stage
from discreet.queries.gradients import GradientSteps, Sampling, StepRule, Touch


@dataclass(frozen=True)
class GivenSteps(GradientSteps):
    """Terms of zero; one unit touches as many of them as the test says."""

    touched_examples: int = 1
    change: Change = "null"

    def touch(self) -> Touch:
        return Touch(self.touched_examples, self.change, "the test says so")

    def labels(self, private: PrivatePart, **inputs: Any) -> IntArray:
        raise NotImplementedError

    def losses(self, private: PrivatePart, positions: IntArray, **inputs: Any) -> torch.Tensor:
        raise NotImplementedError

    def answer(self, private: PrivatePart, *, batch: IntArray, **inputs: Any) -> Array:
        return np.zeros(self.num_parameters)

    def terms(self, private: PrivatePart, **inputs: Any) -> Any:
        return np.zeros((self.num_examples, self.num_parameters))


def steps_stage(
    *,
    parameters: int,
    examples: int,
    steps: int,
    batch_size: int | None = None,
    sampling: Sampling = "poisson",
    clip_norm: float = 1.0,
    touched: int = 1,
    change: Change = "null",
) -> Stage:
    """A stage named ``steps``."""
    rule = StepRule(clip_norm, batch_size, sampling)
    level = NodeLevel(1, change=change)
    query = GivenSteps(level, "a sum", parameters, examples, rule, touched_examples=touched, change=change)
    return Stage.of("steps", query, runs=steps)
