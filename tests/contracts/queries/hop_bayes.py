"""Cases of the queries that hop-bayes asks: links between classes, what nodes receive, two weights by noisy steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.methods.feature_model import LENGTH_NORM, ROW_NORM
from discreet.methods.hop_bayes.stages import count_receivers, receiver_mask
from discreet.ops.rows import LENGTH_COLUMNS
from discreet.privacy.levels import parse_level
from discreet.queries.evidence import ReceivedLabels, ReceivedMessages
from discreet.queries.gradients import OwnRecordSteps, StepRule
from discreet.queries.links import LabelLinks, LinkTable
from discreet.testing import QueryCase
from discreet.training.networks import BoundedView, Weigher
from tests.contracts.queries.hostile import hostile_network, hostile_parameters, hostile_rows
from tests.contracts.queries.levels import NODE_LEVELS, failure_of

EDGE_LEVELS = ("edge", "edge:directed")
LEVELS = (
    *NODE_LEVELS,
    "neighbor:2",
    "neighbor:2,max_degree=2",
    "neighbor:2,max_degree=3,edges=promised",
)
CLASSES = 3


def _table(spec: str, weighted: bool = False) -> QueryCase:
    def make(facts: PublicFacts) -> LinkTable:
        return LinkTable(parse_level(spec), CLASSES)  # type: ignore[arg-type]

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        return {"rows": hostile_rows(public.num_nodes, CLASSES, rng, hostility)}

    return QueryCase("links between classes", spec, make, inputs, weighted=weighted)


def _messages(spec: str, weighted: bool = False) -> QueryCase:
    """Any mask of receivers will do."""

    def make(facts: PublicFacts) -> ReceivedMessages:
        return ReceivedMessages(parse_level(spec), "messages", facts.num_nodes, CLASSES)  # type: ignore[arg-type]

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        messages = hostile_rows(public.num_nodes, CLASSES, rng, hostility)
        return {"messages": messages, "receivers": rng.random(public.num_nodes) < rng.choice([0.0, 0.5, 1.0])}

    return QueryCase("received messages", spec, make, inputs, weighted=weighted)


def _label_links(spec: str, weighted: bool = False) -> QueryCase:
    def make(facts: PublicFacts) -> LabelLinks:
        return LabelLinks(parse_level(spec), CLASSES, failure_of(spec))  # type: ignore[arg-type]

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        return {}

    return QueryCase("links between labels", spec, make, inputs, weighted=weighted)


def _labels(
    spec: str, receivers: str, row_norm: float | None, length: float = 0.0, weighted: bool = False
) -> QueryCase:
    def make(facts: PublicFacts) -> ReceivedLabels:
        count = count_receivers(facts, receivers)
        return ReceivedLabels(parse_level(spec), count, CLASSES, failure_of(spec), row_norm, length)  # type: ignore[arg-type]

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        columns = public.num_features + (LENGTH_COLUMNS if length else 0)
        model = hostile_network(columns, CLASSES, rng, hostility)
        return {"node_model": model, "receivers": receiver_mask(public, receivers)}

    name = f"received labels, receivers {receivers}, rows of norm {row_norm}"
    return QueryCase(name, spec, make, inputs, weighted=weighted)


def _weights(spec: str) -> QueryCase:
    """A released view of a node's own record beside released rows of all nodes."""

    def make(facts: PublicFacts) -> OwnRecordSteps:
        rule = StepRule(1.0)
        return OwnRecordSteps(parse_level(spec), "weights", 3, facts.num_val, rule, ids="val", row_norm=ROW_NORM)

    def inputs(public: PublicPart, rng: np.random.Generator, hostility: str) -> dict[str, Any]:
        view = BoundedView(hostile_network(public.num_features, CLASSES, rng, hostility))
        beside = torch.from_numpy(hostile_rows(public.num_nodes, CLASSES, rng, hostility)).float()
        weigher = hostile_parameters(Weigher(torch.Generator().manual_seed(0)), rng, hostility)
        return {"network": weigher, "frozen": view, "beside": beside}

    return QueryCase("weights on validation ids", spec, make, inputs)


CASES = [
    *(_table(spec) for spec in EDGE_LEVELS),
    *(_messages(spec) for spec in EDGE_LEVELS),
    *(_label_links(spec) for spec in LEVELS),
    *(_labels(spec, *how) for spec in LEVELS for how in (("unlabelled", ROW_NORM, LENGTH_NORM), ("all", None))),
    *(case(spec, weighted=True) for spec in EDGE_LEVELS for case in (_table, _messages)),
    *(_label_links(spec, weighted=True) for spec in LEVELS),
    *(_labels(spec, "all", None, weighted=True) for spec in LEVELS),
    *(_weights(spec) for spec in ("node:owned,change=null", "node:owned,change=replace", "neighbor:2")),
]
