"""What hop-bayes does with its budget where features and labels are private: decided from public facts alone."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from discreet.graph.graph import PublicFacts
from discreet.methods.evidence_stages import EVIDENCE, LINKS, NODE_MODEL, WEIGHTS
from discreet.methods.networks import widths_of
from discreet.ops.node_evidence import BoundedLevel
from discreet.privacy.gaussian import gaussian_mu
from discreet.privacy.levels import NodeLevel

if TYPE_CHECKING:
    from discreet.methods.hop_bayes import HopBayes

LINKS_PART, WEIGHTS_PART = 0.02, 0.02
FULL_CLARITY = 2.5
"""From this μ√D on, noise leaves enough of what neighbours tell for evidence to take all that it may."""
FULL_PULL = 20.0
"""From this n·μ/√parameters of a linear map on, the node model has budget to spare."""
LEAST_SHARE = 0.12
"""Evidence that would get less than this is not asked for at all."""
WORTH_HIDING = 30.0
"""The n·μ/√parameters of a network from which its hidden layer is worth its parameters."""
LINEAR_STEP, NETWORK_STEP = 0.05, 0.02


# -------------------------------------------------------------------- node model


def is_linear(model: HopBayes, facts: PublicFacts) -> bool:
    """Whether the node model is one linear map: asked for, or because noise on a hidden layer would outweigh it."""
    if model.linear is not None or model.layers == 1:
        return model.linear is not False
    return _pull(model, facts, model.layers) < WORTH_HIDING


def _pull(model: HopBayes, facts: PublicFacts, layers: int) -> float:
    """How clearly labels can teach a network of that many layers, before any data is read.

    n training ids pull on the gradient by n clip norms at most, and noise on P parameters pushes by √P·σ. Over all
    steps together the ratio is n·μ/√P.
    """
    widths = widths_of(facts.num_features, model.hidden, layers, facts.num_classes)
    parameters = sum((before + 1) * after for before, after in itertools.pairwise(widths))
    return facts.num_train * _mu(model, facts) / math.sqrt(parameters)


def step_size(model: HopBayes, facts: PublicFacts) -> float:
    """The learning rate of the node model: the one asked for, or that of its kind."""
    if model.step_size is not None:
        return model.step_size
    return LINEAR_STEP if is_linear(model, facts) else NETWORK_STEP


# -------------------------------------------------------------------- shares


def reads_edges(model: HopBayes, facts: PublicFacts, level: BoundedLevel) -> bool:
    """Whether evidence can be expected to be worth its price; or what was asked for."""
    if model.split is not None:
        return model.split[1] > 0
    return _evidence_share(model, facts, level) >= LEAST_SHARE


def shares(model: HopBayes, facts: PublicFacts, level: BoundedLevel) -> dict[str, float]:
    """How the squared privacy loss is divided among the stages, from public facts alone."""
    if not reads_edges(model, facts, level):
        return {NODE_MODEL: 1.0}
    combined = model.combiner == "trained" and facts.num_val > 0
    small = {LINKS: LINKS_PART, **({WEIGHTS: WEIGHTS_PART} if combined else {})}
    if model.split is not None:
        node, evidence = model.split
    else:
        evidence = _evidence_share(model, facts, level)
        node = 1 - evidence
    rest = (1 - sum(small.values())) / (node + evidence)
    return {NODE_MODEL: rest * node, EVIDENCE: rest * evidence, **small}


def _evidence_share(model: HopBayes, facts: PublicFacts, level: BoundedLevel) -> float:
    """What evidence should take from the node model.

    It is worth its price where nodes hear from many others and noise is low. The one public word on degrees is the
    level's own bound D, and noise is known from ε and δ as 1/μ; so its share grows with D and falls where μ√D is small.
    It falls too where the node model has little to spare, because many parameters share few labels. Constants were
    chosen on validation accuracy.
    """
    degree = _stated_degree(level)
    most = min(0.9, max(0.3, 1 - 0.6 * math.sqrt(NodeLevel.default_max_degree / degree)))
    clear = min(1.0, _mu(model, facts) * math.sqrt(degree) / FULL_CLARITY)
    return most * clear * min(1.0, _pull(model, facts, layers=1) / FULL_PULL)


def _mu(model: HopBayes, facts: PublicFacts) -> float:
    privacy = model._checked_privacy()
    return gaussian_mu(privacy.epsilon, privacy.resolve_delta(facts.num_nodes))


def _stated_degree(level: BoundedLevel) -> float:
    """What the level says of degrees in use."""
    if isinstance(level, NodeLevel) and level.edges == "thinned":
        assert level.d_max is not None
        assert level.p is not None
        return max(1.0, level.d_max * level.p)
    return float(level.max_degree or NodeLevel.default_max_degree)


# -------------------------------------------------------------------- in words


def notes(model: HopBayes, facts: PublicFacts, level: BoundedLevel) -> tuple[str, ...]:
    """How the budget is divided, what the node model is, and who gets evidence."""
    kind = "one linear map" if is_linear(model, facts) else f"a network of {model.layers} layers"
    if model.split is not None and not reads_edges(model, facts, level):
        return (f"no edge is read, because split says so; the node model is {kind}",)
    if not reads_edges(model, facts, level):
        return (
            "no edge is read: by public facts (budget, degree bound, training ids) what neighbours tell would not be "
            f"worth what it takes from the node model ({kind}); split=… reads edges nevertheless",
        )
    parts = ", ".join(f"{share:.0%} {name}" for name, share in shares(model, facts, level).items())
    divided = f"the squared privacy loss is divided by public facts: {parts}; the node model is {kind}"
    return divided, receivers_note(model)


def receivers_note(model: HopBayes) -> str:
    """Who gets evidence, in words."""
    if model.receivers == "all":
        return "every node is a receiver of evidence"
    return "evidence goes to ids outside the training set; predictions of training ids rest on their features"


def pinned(model: HopBayes, level: BoundedLevel) -> dict[str, object]:
    """The choices of a fitted model as settings, so that a graph of other public facts gets the same; see ``base``.

    Of a model that is not fitted: the one that asks most of private data.
    """
    if not hasattr(model, "plan_"):
        return {} if model.split else {"split": (1.0, 1.0)}
    found: dict[str, object] = {"linear": is_linear(model, model.public_)}
    if model.split is None:
        share = shares(model, model.public_, level)
        found["split"] = share[NODE_MODEL], share.get(EVIDENCE, 0.0)
    return found
