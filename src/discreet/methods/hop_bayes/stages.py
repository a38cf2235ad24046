"""What hop-bayes asks of private data, in order: its stages on public and on private records, notes on them, and how
the budget is divided among them where records are private: decided by public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import BoolArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.methods.feature_model import FeatureModel
from discreet.ops.degrees import BoundedLevel
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import EdgeLevel, NodeLevel, NoPrivacy
from discreet.privacy.plan import Plan, Stage
from discreet.queries.evidence import ReceivedLabels, ReceivedMessages
from discreet.queries.gradients import OwnRecordSteps, StepRule
from discreet.queries.kept_edges import kept_edges_stage
from discreet.queries.links import LabelLinks, LinkTable
from discreet.queries.reach import thinning_failure

NODE_MODEL = "node model"
LINKS = "links between classes"
EVIDENCE = "evidence"
SECOND = "second evidence"
WEIGHTS = "weights"

LINKS_PART, WEIGHTS_PART = 0.02, 0.02
"""Parts of the budget for a table of a few numbers, and for a few weights: sums over everybody, which need little."""
FULL_CLARITY = 2.5
"""From this μ√D on, noise leaves enough of what neighbours tell for evidence to take all that it may."""
FULL_PULL = 20.0
"""From this n·μ/√parameters of a linear map on, the node model has budget to spare."""
LEAST_SHARE = 0.12
"""Evidence that would get less than this is not asked for at all."""
NETWORK_STEP = 0.02
"""The learning rate of a node model with hidden layers."""
STEPS, STEPS_ALONE = 200, 400
"""Noisy steps of the node model, and where no edge is read: noise then outweighs every step, and more of them, at the
same budget, are a longer average (see docs/defaults.md).
"""
MANY_IDS, STEPS_OF_MANY = 100_000, 100
"""From so many training ids on noise hardly counts in a step, and time does: fewer steps do the same."""


def evidence_name(number: int) -> str:
    """``evidence`` on the graph itself, ``extra graph 1 evidence`` on a further one."""
    return EVIDENCE if number == 0 else f"extra graph {number} {EVIDENCE}"


def second_name(number: int) -> str:
    """The same for the second half."""
    return evidence_name(number).replace(EVIDENCE, SECOND)


def count_receivers(facts: PublicFacts, receivers: str) -> int:
    """How many ids get evidence: those outside the training set, or all where that leaves none."""
    outside = facts.num_nodes - facts.num_train
    return facts.num_nodes if receivers == "all" or outside == 0 else outside


def receiver_mask(part: PublicPart, receivers: str) -> BoolArray:
    """Which ids get evidence: public, see :func:`count_receivers`."""
    if part.train_mask is None or count_receivers(part.facts, receivers) == part.num_nodes:
        return np.ones(part.num_nodes, dtype=np.bool_)
    return ~part.train_mask


@dataclass(frozen=True)
class RecordBudget:
    """What public facts decide where features and labels are private: the kind of node model, and every stage's share.

    ``steps``, ``step_size`` and ``split`` are what the user asked for, None to decide here; ``model`` decides what the
    node model is, and ``combines`` says whether weights are to be trained on validation ids, if there are any.
    """

    privacy: Privacy
    level: BoundedLevel
    facts: PublicFacts
    model: FeatureModel
    combines: bool
    steps: int | None = None
    step_size: float | None = None
    split: tuple[float, float] | None = None

    @property
    def learning_rate(self) -> float:
        """The learning rate of the node model: the one asked for, or that of its kind."""
        return self.model.learning_rate(self.step_size, NETWORK_STEP)

    @property
    def num_steps(self) -> int:
        """How many noisy steps the node model makes."""
        if self.steps is not None:
            return self.steps
        if not self.reads_edges:
            return STEPS_ALONE
        return STEPS if self.facts.num_train < MANY_IDS else STEPS_OF_MANY

    # ---------------------------------------------------------------- shares

    @property
    def reads_edges(self) -> bool:
        """Whether evidence can be expected to be worth its price; or what was asked for."""
        return self.split[1] > 0 if self.split is not None else self._evidence_share >= LEAST_SHARE

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """How the squared privacy loss is divided among the stages, from public facts alone."""
        if not self.reads_edges:
            return {NODE_MODEL: 1.0}
        trains_weights = self.combines and self.facts.num_val > 0
        small = {LINKS: LINKS_PART, **({WEIGHTS: WEIGHTS_PART} if trains_weights else {})}
        evidence = self._evidence_share if self.split is None else self.split[1]
        node = 1 - evidence if self.split is None else self.split[0]
        rest = (1 - sum(small.values())) / (node + evidence)
        return {NODE_MODEL: rest * node, EVIDENCE: rest * evidence, **small}

    @cached_property
    def _evidence_share(self) -> float:
        """What evidence should take from the node model.

        It is worth its price where nodes hear from many others and noise is low. The one public word on degrees is the
        level's own bound D, and noise is known from ε and δ as 1/μ; so its share grows with D and falls where μ√D is
        small. It falls too where the node model has little to spare, because many parameters share few labels.
        Constants were chosen on validation accuracy.
        """
        degree = self._stated_degree()
        most = min(0.9, max(0.3, 1 - 0.6 * math.sqrt(NodeLevel.default_max_degree / degree)))
        clear = min(1.0, self.model.mu * math.sqrt(degree) / FULL_CLARITY)
        return most * clear * min(1.0, self.model.pull(layers=1) / FULL_PULL)

    def _stated_degree(self) -> float:
        """What the level says of degrees in use."""
        level = self.level
        if isinstance(level, NodeLevel) and level.edges == "thinned":
            assert level.d_max is not None
            assert level.p is not None
            return max(1.0, level.d_max * level.p)
        return float(level.max_degree or NodeLevel.default_max_degree)

    # ---------------------------------------------------------------- in words, and as settings

    def note(self) -> str:
        """How the budget is divided and what the node model is, or why no edge is read."""
        kind = self.model.describe()
        if self.reads_edges:
            parts = ", ".join(f"{share:.0%} {name}" for name, share in self.shares.items())
            return f"the squared privacy loss is divided by public facts: {parts}; the node model is {kind}"
        if self.split is not None:
            return f"no edge is read, because split says so; the node model is {kind}"
        return (
            "no edge is read: by public facts (budget, degree bound, training ids) what neighbours tell would not be "
            f"worth what it takes from the node model ({kind}); split=… reads edges nevertheless"
        )

    def pinned(self) -> dict[str, object]:
        """What was decided, as settings, so that a graph of other public facts gets the same."""
        found: dict[str, object] = {} if self.model.own_encoder else {"linear": self.model.is_linear}
        if self.steps is None:
            found["steps"] = self.num_steps
        if self.split is None:
            found["split"] = self.shares[NODE_MODEL], self.shares.get(EVIDENCE, 0.0)
        return found


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

WEIGHT_STEPS, WEIGHT_RATE, WEIGHT_CLIP = 20, 0.05, 1.0
"""Two numbers on logits of order 1: a few steps find them."""


@dataclass(frozen=True)
class NodeModelSteps:
    """How the node model is trained: how many numbers a step moves, how many steps, and to what they are clipped."""

    num_parameters: int
    steps: int
    clip_norm: float


def record_stages(
    public: Sequence[PublicFacts], budget: RecordBudget, steps: NodeModelSteps, num_weights: int, *, receivers: str
) -> list[Stage]:
    """Key (thinned), node model, links, evidence of every graph, weights (where there are validation ids).

    The node model alone, with all of the budget, where edges are not worth theirs.

    *Charged to everybody, though no node pays for both*: the node model reads records of training ids, the weights
    those of validation ids, each its own record alone. The ids are disjoint and public, so whichever node changes, one
    of the two stages is the same on both graphs given the answers before it, and the larger of two compositions would
    do. That would be sound, and is not done: a plan, its certificate, ``verify``, ledgers and extensions compose stages
    one after the other, all of them would need to know who pays for which, and the weights take 2 % of the squared
    privacy loss, which is 1 % of the noise.
    """
    facts, level, shares = public[0], budget.level, budget.shares
    node_model = _node_model_stage(budget, steps)
    if not budget.reads_edges:
        return [node_model]
    delta = budget.privacy.resolve_delta(max(graph.num_nodes for graph in public))
    failure = thinning_failure(level, delta, len(public))
    stages = [
        *kept_edges_stage(failure, len(public)),
        node_model,
        Stage.of(LINKS, LabelLinks(level, facts.num_classes, failure), share=shares[LINKS]),
    ]
    for number, graph in enumerate(public):
        query = _received_labels(graph, budget, receivers, failure)
        stages.append(Stage.of(evidence_name(number), query, share=shares[EVIDENCE] / len(public), graph=number))
    return [*stages, *([_weights_stage(budget, num_weights)] if WEIGHTS in shares else [])]


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


def _weights_stage(budget: RecordBudget, num_weights: int) -> Stage:
    query = OwnRecordSteps(
        budget.level,
        "clipped gradients of two weights on validation ids",
        num_weights,
        budget.facts.num_val,
        StepRule(WEIGHT_CLIP),
        ids="val",
        row_norm=budget.model.row_norm,
        length_norm=budget.model.length_norm,
        slots=budget.facts.num_classes,
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
