"""Cases of the queries that gap and dp-mlp ask."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.privacy.levels import parse_level
from discreet.queries.gradients import OwnRecordSteps, StepRule
from discreet.queries.sums import NeighbourSums
from discreet.testing import QueryCase
from discreet.training.networks import MLP
from tests.contracts.queries.hostile import hostile_network, hostile_rows
from tests.contracts.queries.levels import NODE_LEVELS, failure_of

WIDTH, HIDDEN = 3, 4
LEVELS = (
    *NODE_LEVELS,
    "neighbor:2,max_degree=3",
    "neighbor:1,max_degree=3,edges=promised",
    "neighbor:2,max_degree=3,edges=promised",
    "neighbor:3,max_degree=3,edges=promised",
)


def _sums(spec: str, aggregation: str, hop: int, weighted: bool = False) -> QueryCase:
    level = parse_level(spec)
    failure = failure_of(spec)

    def make(facts: PublicFacts) -> NeighbourSums:
        return NeighbourSums(level, facts.num_nodes, WIDTH, aggregation, hop, failure)  # type: ignore[arg-type]

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        if hop == 1 and "features" in level.private:
            return {"encoder": hostile_network(public.num_features, WIDTH, rng, hostility)}
        rows = hostile_rows(public.num_nodes, WIDTH, rng, hostility)
        return {"rows": torch.from_numpy(rows).float()}

    return QueryCase(f"{aggregation}, hop {hop}", spec, make, inputs, weighted=weighted)


def _steps(spec: str, batch_size: int | None) -> QueryCase:
    level = parse_level(spec)
    size = 4 * HIDDEN + HIDDEN + HIDDEN * 3 + 3

    def make(facts: PublicFacts) -> OwnRecordSteps:
        rule = StepRule(0.5, batch_size)
        return OwnRecordSteps(level, "steps", size, facts.num_train, rule)

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        network = MLP([public.num_features, HIDDEN, 3], "relu", 0.0, torch.Generator().manual_seed(0))
        shares = hostile_rows(1, 3, rng, hostility)[0] if rng.integers(2) else None
        return {"network": network, "class_shares": shares}

    return QueryCase(f"own records, batch {batch_size}", spec, make, inputs)


CASES = [
    *(_sums(spec, kind, 1) for spec in ("edge",) for kind in ("sum", "mean", "symmetric")),
    *(_sums("edge:directed", kind, 1) for kind in ("sum", "mean")),
    *(_sums(spec, kind, hop) for spec in LEVELS for kind in ("sum", "mean") for hop in (1, 2)),
    *(_sums(spec, "sum", 1, weighted=True) for spec in ("edge", "edge:directed")),
    *(_sums(spec, "sum", hop, weighted=True) for spec in LEVELS for hop in (1, 2)),
    *(
        _steps(spec, size)
        for spec in ("node:owned,change=null", "node:owned,change=replace", "neighbor:2")
        for size in (None, 1)
    ),
]
