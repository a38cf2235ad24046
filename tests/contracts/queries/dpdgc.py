"""Cases of the queries that dpdgc asks: adjacency rows, the embedding's first gradient, and its noisy steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.methods.dpdgc.networks import RowEmbedding
from discreet.privacy.levels import parse_level
from discreet.queries.adjacency_row_steps import AdjacencyRowSteps
from discreet.queries.adjacency_rows import AdjacencyRows
from discreet.queries.gradients import StepRule
from discreet.queries.residual_sums import ResidualSums
from discreet.testing import QueryCase
from tests.contracts.queries.hostile import hostile_parameters, hostile_rows
from tests.contracts.queries.levels import NODE_LEVELS, failure_of

WIDTH = 3
LEVELS = (
    "edge",
    "edge:directed",
    "neighbor:2",
    "neighbor:2,max_degree=3",
    "neighbor:1,max_degree=3,edges=promised",
    "neighbor:2,max_degree=3,edges=promised",
    "neighbor:3,max_degree=3,edges=promised",
    *NODE_LEVELS,
)


def _rows(spec: str, row_norm: float, sparse: bool, weighted: bool = False) -> QueryCase:
    def make(facts: PublicFacts) -> AdjacencyRows:
        return AdjacencyRows(parse_level(spec), facts.num_nodes, WIDTH, row_norm, failure_of(spec))

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        weight = hostile_rows(public.num_nodes, WIDTH, rng, hostility)
        return {"weight": sp.csr_array(weight) if sparse else weight}

    name = f"adjacency rows, norm {row_norm:g}, {'sparse' if sparse else 'dense'}"
    return QueryCase(name, spec, make, inputs, weighted=weighted)


def _residuals(spec: str, weighted: bool = False) -> QueryCase:
    def make(facts: PublicFacts) -> ResidualSums:
        return ResidualSums(parse_level(spec), facts.num_nodes, WIDTH)

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        return {"residuals": hostile_rows(public.num_nodes, WIDTH, rng, hostility)}

    return QueryCase("residual sums", spec, make, inputs, weighted=weighted)


def _steps(spec: str, batch_size: int | None, weighted: bool = False) -> QueryCase:
    def make(facts: PublicFacts) -> AdjacencyRowSteps:
        size = (facts.num_nodes + 1) * WIDTH
        rule = StepRule(0.5, batch_size)
        return AdjacencyRowSteps(parse_level(spec), "steps", size, facts.num_train, rule, failure_of(spec))

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(0)
        network = RowEmbedding(public.num_nodes, WIDTH, public.num_classes, "tanh", generator)
        return {"network": hostile_parameters(network, rng, hostility)}

    return QueryCase(f"adjacency row steps, batch {batch_size}", spec, make, inputs, weighted=weighted)


WEIGHTED = (
    "edge",
    "edge:directed",
    "neighbor:2,max_degree=3",
    "neighbor:2,max_degree=3,edges=promised",
    "node:owned,max_degree=2,change=replace",
    "node:promised,max_degree=3,change=null",
    "node:thinned,d_max=4,p=0.5,change=replace",
)

CASES = [
    *(_rows(spec, 1.0, sparse=False) for spec in LEVELS),
    *(_rows(spec, 1e-8, sparse=True) for spec in LEVELS),
    *(_residuals(spec) for spec in ("edge", "edge:directed")),
    *(_steps(spec, None) for spec in LEVELS),
    *(_steps(spec, 1) for spec in ("edge", "node:owned,max_degree=2,change=null")),
    *(_rows(spec, 1.0, sparse=False, weighted=True) for spec in WEIGHTED),
    _residuals("edge", weighted=True),
    *(_steps(spec, None, weighted=True) for spec in ("edge", "node:promised,max_degree=3,change=null")),
]
