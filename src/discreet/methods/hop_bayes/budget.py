"""How hop-bayes divides its budget among its stages where records are private: decided by public facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from discreet.graph.graph import PublicFacts
from discreet.methods.feature_model import LINEAR_STEP, FeatureModel
from discreet.ops.degrees import BoundedLevel
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import NodeLevel

NODE_MODEL = "node model"
LINKS = "links between classes"
EVIDENCE = "evidence"
SECOND = "second evidence"
WEIGHTS = "weights"

LINKS_PART, WEIGHTS_PART = 0.02, 0.02
FULL_CLARITY = 2.5
"""From this μ√D on, noise leaves enough of what neighbours tell for evidence to take all that it may."""
FULL_PULL = 20.0
"""From this n·μ/√parameters of a linear map on, the node model has budget to spare."""
LEAST_SHARE = 0.12
"""Evidence that would get less than this is not asked for at all."""
NETWORK_STEP = 0.02
"""The learning rate of a node model with hidden layers."""


def evidence_name(number: int) -> str:
    """``evidence`` on the graph itself, ``extra graph 1 evidence`` on a further one."""
    return EVIDENCE if number == 0 else f"extra graph {number} {EVIDENCE}"


def second_name(number: int) -> str:
    """The same for the second half."""
    return evidence_name(number).replace(EVIDENCE, SECOND)


@dataclass(frozen=True)
class RecordBudget:
    """What public facts decide where features and labels are private: the kind of node model, and every stage's share.

    ``step_size`` and ``split`` are what the user asked for, None to decide here; ``model`` decides what the node model
    is, and ``combines`` says whether weights are to be trained on validation ids, if there are any.
    """

    privacy: Privacy
    level: BoundedLevel
    facts: PublicFacts
    model: FeatureModel
    combines: bool
    step_size: float | None = None
    split: tuple[float, float] | None = None

    @property
    def learning_rate(self) -> float:
        """The learning rate of the node model: the one asked for, or that of its kind."""
        if self.step_size is not None:
            return self.step_size
        return LINEAR_STEP if self.model.is_linear else NETWORK_STEP

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
        if self.split is None:
            found["split"] = self.shares[NODE_MODEL], self.shares.get(EVIDENCE, 0.0)
        return found
