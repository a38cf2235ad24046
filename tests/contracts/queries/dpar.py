"""Cases of the queries that dpar asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.privacy.levels import parse_level
from discreet.queries.gradients import StepRule, count_parameters
from discreet.queries.pagerank_rows import PageRankRows
from discreet.queries.picked_rows import PickedRowSteps, PublishedRowSteps
from discreet.queries.picks import Selection
from discreet.queries.sampled_nodes import SAMPLE, NodeSample
from discreet.testing import QueryCase
from discreet.training.networks import MLP
from tests.contracts.queries.hostile import hostile_rows

LEVELS = (
    "node:owned,max_degree=3,change=null",
    "node:owned,max_degree=3,change=replace",
    "node:promised,max_degree=12,change=null",
    "node:promised,max_degree=12,change=replace",
    "node:thinned,d_max=12,p=0.5,change=null",
)
SAMPLED = ("node:owned,change=null", "node:promised,max_degree=12,change=replace")
PICKS = 2
LOUD = {"zeros": 0.0, "huge": 1e6, "flipped": -1.0, "cancelling": 1e3}
"""What weights of a released network are multiplied with."""


def _sample(facts: PublicFacts, rate: float, published: bool) -> NodeSample:
    """As ``dpar`` makes it; a sample of fixed size holds at least two nodes where there are two."""
    return NodeSample(rate, max(min(2, facts.num_train), facts.num_train // 2) if published else None)


def _sources(sample: NodeSample, facts: PublicFacts, rng: np.random.Generator) -> np.ndarray:
    size = sample.range_size(facts.num_train)
    return rng.permutation(size)[: _rows(sample, facts)]


def _rows(sample: NodeSample, facts: PublicFacts) -> int:
    """Some nodes are candidates but no sources."""
    return max(1, sample.range_size(facts.num_train) - 1)


def _pagerank(spec: str, selection: Selection, rate: float, published: bool = False) -> QueryCase:
    def make(facts: PublicFacts) -> PageRankRows:
        sample = _sample(facts, rate, published)
        size = sample.range_size(facts.num_train)
        own_entry = published or size == 1  # a range of one node has no other to pick
        return PageRankRows(
            parse_level(spec),
            selection,
            rows=_rows(sample, facts),
            candidates=size if own_entry else size - 1,
            picks=1,
            clip=0.01,
            sample=sample,
            alpha=0.25,
            rho=1e-4,
            gamma=1e-4,
            solver="ista" if selection == "em0" else "push",
            own_entry=own_entry,
        )

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        return {"sources": _sources(_sample(public.facts, rate, published), public.facts, rng)}

    mode = "published" if published else f"rate {rate}"
    return QueryCase(f"PageRank rows, {selection}, {mode}", spec, make, inputs, (SAMPLE,))


def _network(facts: PublicFacts, rng: np.random.Generator, hostility: str) -> MLP:
    network = MLP([facts.num_features, 3, facts.num_classes], "relu", 0.0, torch.Generator().manual_seed(0))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= LOUD.get(hostility, 1.0)
            if hostility == "not finite":
                parameter.view(-1)[rng.integers(parameter.numel())] = float(rng.choice([np.nan, np.inf]))
    return network


def _picks(rows: int, candidates: int, rng: np.random.Generator, hostility: str) -> np.ndarray:
    """Candidates within and without their range, the same for all rows where that is worst, with any weights."""
    found = rng.integers(-1, max(1, candidates) + 2, (rows, PICKS)).astype(float)
    if hostility in ("aligned", "huge"):
        found = np.zeros_like(found)
    if hostility == "not finite":
        found[rng.random(found.shape) < 0.3] = np.nan
    weights = hostile_rows(rows, PICKS, rng, hostility)
    return np.stack([found, np.abs(weights) if hostility == "aligned" else weights], axis=-1)


def _steps(spec: str, users: int, rate: float, batch_size: int | None, published: bool = False) -> QueryCase:
    def make(facts: PublicFacts) -> PickedRowSteps | PublishedRowSteps:
        sample = _sample(facts, rate, published)
        level, size = parse_level(spec), count_parameters(_network(facts, np.random.default_rng(0), "random"))
        rule, rows = StepRule(0.5, batch_size), _rows(sample, facts)
        if published:
            return PublishedRowSteps(level, "steps", size, rows, rule, sample, 1.0)
        return PickedRowSteps(level, "steps", size, rows, rule, sample, users, 0.4)

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        facts = public.facts
        sample = _sample(facts, rate, published)
        candidates = sample.range_size(facts.num_train)
        return {
            "network": _network(facts, rng, hostility),
            "sources": _sources(sample, facts, rng),
            "picks": None if hostility == "zeros" else _picks(_rows(sample, facts), candidates, rng, hostility),
            "class_shares": hostile_rows(1, facts.num_classes, rng, hostility)[0] if rng.integers(2) else None,
        }

    mode = "published" if published else f"{users} users, rate {rate}"
    return QueryCase(f"rows of picked nodes, {mode}, batch {batch_size}", spec, make, inputs, (SAMPLE,))


CASES = [
    *(_pagerank(spec, selection, 1.0) for spec in LEVELS for selection in ("em0", "em1", "gm")),
    *(_pagerank(spec, selection, 0.6) for spec in SAMPLED for selection in ("em0", "gm")),
    *(_pagerank("node:owned,change=replace", selection, 0.5, published=True) for selection in ("em0", "gm")),
    *(_steps(spec, 1, 1.0, None) for spec in LEVELS),
    *(_steps(spec, users, 0.6, None) for spec in SAMPLED for users in (0, 2)),
    *(_steps(spec, 1, 1.0, 1) for spec in SAMPLED),
    _steps("node:owned,change=null", 0, 0.5, None, published=True),
]
