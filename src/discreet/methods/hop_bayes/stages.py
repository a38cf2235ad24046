"""What hop-bayes asks of private data, in order: its stages on public and on private records, and notes on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from discreet.graph.graph import PublicFacts
from discreet.methods.hop_bayes.budget import (
    EVIDENCE,
    LINKS,
    NODE_MODEL,
    WEIGHTS,
    RecordBudget,
    evidence_name,
    second_name,
)
from discreet.methods.hop_bayes.combiner import WEIGHT_CLIP, WEIGHT_STEPS, Weigher
from discreet.methods.hop_bayes.evidence import count_receivers
from discreet.privacy.levels import EdgeLevel, NoPrivacy
from discreet.privacy.plan import Plan, Stage
from discreet.queries.evidence import ReceivedLabels, ReceivedMessages
from discreet.queries.gradients import OwnRecordSteps, StepRule, planned_parameters
from discreet.queries.kept_edges import kept_edges_stage
from discreet.queries.links import LabelLinks, LinkTable
from discreet.queries.reach import thinning_failure

# -------------------------------------------------------------------- on public records


def link_stage(facts: PublicFacts, level: EdgeLevel | NoPrivacy, share: float) -> Stage:
    """The table of links between classes."""
    return Stage.of(LINKS, LinkTable(level, facts.num_classes), share=share)


def evidence_stages(
    public: Sequence[PublicFacts], level: EdgeLevel | NoPrivacy, share: float, hubs: bool | None, first: int = 0
) -> list[Stage]:
    """One query per graph, or two of half the budget each where the second may ask for hubs.

    ``first`` is the number of the first graph in the release; a curator that holds later graphs alone counts from 0.
    """
    stages = []
    for number, facts in enumerate(public, start=first):
        questions = {evidence_name(number): "sum of what the neighbours of each node tell it"}
        if hubs is not False:
            again = "" if hubs else "the same again, or "
            questions[second_name(number)] = f"{again}sum of what each node's neighbours have heard themselves"
        part = share / len(public) / len(questions)
        for name, question in questions.items():
            query = ReceivedMessages(level, question, facts.num_nodes, facts.num_classes)
            stages.append(Stage.of(name, query, share=part, graph=number - first))
    return stages


def notes_on_shared_evidence(receivers: str, hubs: bool | None) -> list[str]:
    """What noise leaves, who gets evidence, and how it is decided what the second half asks for, in words."""
    notes = [
        "what a node receives is a count of neighbours per class, under noise of the standard deviation above: "
        "nodes with fewer neighbours than that rest on their features",
        note_on_receivers(receivers),
    ]
    if hubs is None:
        notes.append(
            "the second half of the evidence is averaged with the first, or goes through hubs: decided from the "
            "answers to the table and the first half, at the same sensitivity"
        )
    return notes


def noise_of_average(plan: Plan) -> float:
    """The standard deviation of what receivers hear if both halves ask for the same."""
    halves = sum(plan.has(name) for name in (evidence_name(0), second_name(0)))
    return plan.stage(EVIDENCE).noise_std / float(halves**0.5)


# -------------------------------------------------------------------- on private records


@dataclass(frozen=True)
class NodeModelSteps:
    """How the node model is trained: how many numbers a step moves, how many steps, and to what they are clipped."""

    num_parameters: int
    steps: int
    clip_norm: float


def record_stages(
    public: Sequence[PublicFacts], budget: RecordBudget, steps: NodeModelSteps, *, receivers: str
) -> list[Stage]:
    """Key (thinned), node model, links, evidence of every graph, weights (where there are validation ids).

    The node model alone, with all of the budget, where edges are not worth theirs.
    """
    facts, level, shares = public[0], budget.level, budget.shares
    node_model = _node_model_stage(budget, steps)
    if not budget.reads_edges:
        return [node_model]
    delta = budget.privacy.resolve_delta(max(graph.num_nodes for graph in public))
    failure = thinning_failure(level, delta, len(public))
    stages = [
        *kept_edges_stage(level, delta, len(public)),
        node_model,
        Stage.of(LINKS, LabelLinks(level, facts.num_classes, failure), share=shares[LINKS]),
    ]
    for number, graph in enumerate(public):
        query = _received_labels(graph, budget, receivers, failure)
        stages.append(Stage.of(evidence_name(number), query, share=shares[EVIDENCE] / len(public), graph=number))
    return [*stages, *([_weights_stage(budget)] if WEIGHTS in shares else [])]


def records_evidence_stage(public: PublicFacts, number: int, budget: RecordBudget, receivers: str) -> Stage:
    """The evidence of a graph that is added to a release, with all of its own budget."""
    return Stage.of(evidence_name(number), _received_labels(public, budget, receivers, None))


def _received_labels(graph: PublicFacts, budget: RecordBudget, receivers: str, failure: float | None) -> ReceivedLabels:
    count = count_receivers(graph, receivers)
    model = budget.model
    return ReceivedLabels(budget.level, count, budget.facts.num_classes, failure, model.row_norm, model.length_norm)


def _node_model_stage(budget: RecordBudget, steps: NodeModelSteps) -> Stage:
    query = OwnRecordSteps(
        budget.level,
        "clipped gradients of the node model on features",
        steps.num_parameters,
        budget.facts.num_train,
        StepRule(steps.clip_norm),
        row_norm=budget.model.row_norm,
        length_norm=budget.model.length_norm,
    )
    return Stage.of(NODE_MODEL, query, share=budget.shares[NODE_MODEL], runs=steps.steps)


def _weights_stage(budget: RecordBudget) -> Stage:
    query = OwnRecordSteps(
        budget.level,
        "clipped gradients of two weights on validation ids",
        planned_parameters(Weigher(torch.Generator()), budget.facts.num_val, budget.facts.num_classes),
        budget.facts.num_val,
        StepRule(WEIGHT_CLIP),
        ids="val",
        row_norm=budget.model.row_norm,
        length_norm=budget.model.length_norm,
    )
    return Stage.of(WEIGHTS, query, share=budget.shares[WEIGHTS], runs=WEIGHT_STEPS)


def notes_on_records(budget: RecordBudget, receivers: str) -> list[str]:
    """How the budget is divided, what the node model is, and who gets evidence, in words."""
    return [budget.note(), *([note_on_receivers(receivers)] if budget.reads_edges else [])]


def note_on_receivers(receivers: str) -> str:
    """Who gets evidence."""
    if receivers == "all":
        return "every node is a receiver of evidence"
    return "evidence goes to ids outside the training set; predictions of training ids rest on their features"
