"""The score that a search selects by: how many validation nodes are met, with the noise that the level asks for.

Guarantee. Let a trial's release be given. Between neighbours the number of validation nodes whose label is predicted
moves by at most

- 0 at edge level where all predictions are covered: predictions are a function of the release, labels are public;
- 2 at edge level where each node's own prediction is covered: a prediction reads its own node's edges, and an edge has
  two ends;
- 1 at node and k-neighbour level where all predictions but the unit's own are covered: the unit's own term (its
  prediction, its label, whether it has one) is the only one that may change, and it is 0 or 1.

Everything else is refused: where only the weights are covered, one unit may move the predictions of all its
neighbours, and at level local labels never leave their owner. Which node *ids* are for validation is public; how many
of them have a label is not, so the divisor is the number of ids. A Gaussian on the count answers, through a curator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from dp_accounting.dp_event import DpEvent

from discreet.errors import ParameterError, UnsupportedError
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.noise import NoiseSource
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import Level
from discreet.privacy.plan import Plan, Stage

if TYPE_CHECKING:
    from discreet.graph.graph import Graph
    from discreet.methods.base import NodeClassifier

STAGE = "validation score"


@dataclass(frozen=True)
class Score:
    """A noisy count of validation nodes met, as a share of all of them."""

    sensitivity: float
    noise: float
    nodes: int
    why: str

    @property
    def event(self) -> DpEvent:
        """What asking for it once costs."""
        return events.GaussianDpEvent(self.noise / self.sensitivity) if self.sensitivity else events.NoOpDpEvent()

    @property
    def stage(self) -> Stage:
        """The query as a plan has it."""
        return Stage(
            name=STAGE,
            query="how many validation nodes are met",
            mechanism="gaussian",
            sensitivity=self.sensitivity,
            metric="l2",
            why=self.why,
            event=self.event,
            shape=(1,),
        )

    def ask(self, estimator: NodeClassifier, graph: Graph, delta: float, noise: NoiseSource) -> float:
        """The share of validation nodes that the fitted estimator meets, with its noise."""
        count = float(met(estimator, graph))
        if self.sensitivity:
            level = estimator._checked_privacy().level
            plan = Plan(
                estimator.method,
                Privacy(level, epsilon_of(self.event, delta), delta),
                delta,
                (self.stage,),
                estimator.covers,
            )
            curator = Curator(plan, noise)
            count = float(curator.measure(STAGE, np.array([count]))[0])
            curator.finish()
        return count / self.nodes


def met(estimator: NodeClassifier, graph: Graph) -> int:
    """How many validation nodes with a label are predicted as that label: private, not to be shown as it is."""
    predicted = estimator.predict(graph, audience="owner", uncovered=True)
    return int(np.sum((predicted == graph.labels) & (graph.labels >= 0) & graph.mask("val")))


def score_for(level: Level, covers: str, graph: Graph, noise: float | None = None) -> Score:
    """The score of a method with this coverage; ``noise`` is on the count, by default as large as chance itself.

    The default, √nodes/2, is the standard deviation of a count at even odds: it about doubles the variance that a
    validation set of this size has anyway, and it depends on a public number alone.
    """
    if graph.val_mask is None or not graph.mask("val").any():
        raise ParameterError("a search needs validation nodes: use a split with some, 75/10/15 for example")
    nodes = int(graph.mask("val").sum())
    sensitivity, why = _sensitivity(level, covers)
    if noise is not None and not (noise > 0 and math.isfinite(noise)):
        raise ParameterError(f"the noise on the score must be a number above 0, not {noise}")
    return Score(sensitivity, math.sqrt(nodes) / 2 if noise is None else noise, nodes, why)


def _sensitivity(level: Level, covers: str) -> tuple[float, str]:
    if level.kind == "none":
        return 0.0, "level none promises nothing"
    if level.kind == "edge" and covers == "weights+predictions":
        return 0.0, "a function of the release and of public labels"
    if level.kind == "edge" and covers == "own-prediction":
        return 2.0, "an edge is read by the predictions of its two ends"
    if level.kind in ("node", "neighbor") and covers in ("weights+predictions", "weights+others-predictions"):
        return 1.0, "only the unit's own prediction and label can change"
    raise UnsupportedError(
        f"a score at level {level.kind} where {covers} is covered has no bound that could be charged: "
        "search with --not-accounted, or choose a method that covers its predictions"
    )
