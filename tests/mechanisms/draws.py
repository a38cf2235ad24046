"""A query that hands over what a test gives, and what worker processes of a test draw with it.

In a file that imports little, for a spawned worker imports it anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.graph.graph import Graph
from discreet.graph.parts import PrivatePart
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator
from discreet.privacy import events
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel
from discreet.privacy.plan import Plan, Stage, make_plan
from discreet.privacy.query import Bound, Query


@dataclass(frozen=True)
class Given(Query):
    """What the test gives as ``value``, with the bound that the test claims for it."""

    size: tuple[int, ...]
    sensitivity: float = 1.0

    @property
    def words(self) -> str:
        return "what the test gives"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size

    def bound(self) -> Bound:
        return Bound(self.sensitivity, "l2", "the test says so")

    def answer(self, private: PrivatePart, *, value: Any, **inputs: Any) -> Any:
        return value


def given_stage(
    name: str, size: tuple[int, ...], *, sensitivity: float = 1.0, multiplier: float = 1.0, runs: int = 1
) -> Stage:
    """A Gaussian stage of :class:`Given` with this noise multiplier."""
    query = Given(size, sensitivity)
    return Stage(name, query, query.bound(), events.GaussianDpEvent(multiplier), runs)


def private_part() -> PrivatePart:
    """Of a graph that nothing asks for."""
    return PrivatePart(Graph.from_edges([0], [1], np.zeros((2, 1))))


def gaussian_plan(stages: int = 1) -> Plan:
    """Stages of six numbers each."""
    drafts = [given_stage(f"s{i}", (3, 2)) for i in range(stages)]
    return make_plan("m", Privacy(EdgeLevel(), 1.0, 1e-3), 100, drafts, "weights")


def first_numbers(_: int = 0) -> bytes:
    """What a curator of this process draws first."""
    curator = Curator(gaussian_plan(), NoiseSource(), [private_part()])
    answer: bytes = curator.ask("s0", value=np.zeros((3, 2))).tobytes()
    return answer
