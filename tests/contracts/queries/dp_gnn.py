"""Cases of the queries that dp-gnn asks: noisy steps over ego-nets, and outputs of all nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.methods.dp_gnn.networks import EgoNetwork, EgoShape
from discreet.privacy.levels import parse_level
from discreet.queries.ego_net_outputs import EgoNetOutputs
from discreet.queries.ego_net_steps import EgoNetSteps
from discreet.queries.ego_nets import BoundedEgoNets
from discreet.queries.gradients import StepRule, count_parameters
from discreet.testing import QueryCase
from tests.contracts.queries.hostile import hostile_parameters
from tests.contracts.queries.levels import NODE_LEVELS, failure_of

HIDDEN, FAN_IN = 3, 3
LEVELS = (
    "neighbor:2,max_degree=3",
    "neighbor:2,max_degree=3,edges=promised",
    *NODE_LEVELS,
)
EDGE_LEVELS = ("edge", "edge:directed")
TWO_HOPS = (LEVELS[0], LEVELS[2], LEVELS[5], LEVELS[6])


def _ego_nets(spec: str, hops: int, facts: PublicFacts) -> BoundedEgoNets:
    return BoundedEgoNets(parse_level(spec), facts.num_nodes, hops, FAN_IN, failure_of(spec))


def _network(facts: PublicFacts, convolution: Any, hops: int) -> EgoNetwork:
    generator = torch.Generator().manual_seed(0)
    return EgoNetwork(facts.num_features, EgoShape(convolution, HIDDEN, hops, "tanh"), facts.num_classes, generator)


def _steps(spec: str, convolution: str, hops: int, batch_size: int | None = None) -> QueryCase:
    def make(facts: PublicFacts) -> EgoNetSteps:
        size = count_parameters(_network(facts, convolution, hops))
        rule, nets = StepRule(0.5, batch_size), _ego_nets(spec, hops, facts)
        return EgoNetSteps(nets.level, "steps", size, facts.num_train, rule, nets)

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        return {"network": hostile_parameters(_network(public.facts, convolution, hops), rng, hostility)}

    return QueryCase(f"ego-net steps, {convolution}, {hops} hops, batch {batch_size}", spec, make, inputs)


def _outputs(spec: str, convolution: str, hops: int) -> QueryCase:
    def make(facts: PublicFacts) -> EgoNetOutputs:
        return EgoNetOutputs(_ego_nets(spec, hops, facts), facts.num_classes, 0.7)

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        return {"network": hostile_parameters(_network(public.facts, convolution, hops), rng, hostility)}

    return QueryCase(f"ego-net outputs, {convolution}, {hops} hops", spec, make, inputs)


CASES = [
    *(_steps(spec, kind, 1) for spec in EDGE_LEVELS for kind in ("gcn", "sage", "gat")),
    *(_outputs(spec, "sage", 1) for spec in EDGE_LEVELS),
    *(_steps(spec, "sage", 1) for spec in LEVELS),
    *(_steps(spec, "sage", 2) for spec in TWO_HOPS),
    *(_steps("node:owned,max_degree=2,change=null", kind, 1, 1) for kind in ("gcn", "gin", "gat")),
    *(_outputs(spec, "gcn", 1) for spec in LEVELS),
    *(_outputs(spec, "gcn", 2) for spec in TWO_HOPS),
    *(_outputs("node:promised,max_degree=3,change=replace", kind, 1) for kind in ("sage", "gin", "gat")),
]
