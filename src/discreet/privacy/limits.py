"""Ranges of the numbers that proofs divide by: one table, checked wherever such a number comes in.

A bound is a statement about what the machine computes. Near the ends of double precision squares vanish, quotients
overflow and a margin that is relative on paper is nothing any more; so every clip norm, restart probability or rate has
a floor and a ceiling, far inside what double precision holds and far outside what anybody needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import ParameterError


@dataclass(frozen=True)
class Limit:
    """The least and the largest value, both allowed."""

    low: float
    high: float

    def check(self, name: str, value: float) -> float:
        """The value, or an error with one sentence."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not self.low <= value <= self.high:
            raise ParameterError(f"{name} must lie between {self.low:g} and {self.high:g}, not {value!r}")
        return float(value)


NORM = Limit(1e-6, 1e6)
"""Clip norms of gradients and outputs."""
ROW_NORM = Limit(1e-9, 1e6)
"""Norms of embedding rows, by which everything is scaled (published code has 1e-8)."""
SCORE_CLIP = Limit(1e-9, 1.0)
"""Bounds on scores, which are probabilities or less."""
RESTART = Limit(1e-3, 0.999)
"""The restart probability: sensitivities divide by it, and iterations by its logarithm."""
RATE = Limit(1e-9, 100.0)
"""Learning rates and step sizes, of gradients measured in clip norms."""
SHARE = Limit(1e-6, 1e6)
"""Relative shares of a budget."""
MULTIPLIER = Limit(1e-3, 1e6)
"""Noise over clip norm."""
WEIGHT = Limit(1e-3, 1e3)
"""Weights and widths inside a loss or a statistic."""
RIDGE = Limit(1e-9, 1e9)
"""Strong convexity: minimisers divide by it."""
DECAY = Limit(0.0, 1e3)
"""Weight decay; zero is none."""
PROBABILITY = Limit(1e-9, 1.0)
"""A chance that something is not quite left out."""
FRACTION = Limit(1e-3, 0.999)
"""A part of a budget that leaves something for the rest."""
