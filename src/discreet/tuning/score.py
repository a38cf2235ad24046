"""The score that a search selects by: how many validation nodes are predicted right, with the noise that it needs.

The question and its bound are ``queries.validation_hits``. Which node *ids* are for validation is public; how many of
them have a label is not, so the divisor is the number of ids. A Gaussian on the count answers, through a curator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dp_accounting.dp_event import DpEvent

from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.graph import Graph
from discreet.limits import SCORE_NOISE
from discreet.mechanisms.bits import NoiseSource
from discreet.mechanisms.curator import Curator
from discreet.methods.base import NodeClassifier
from discreet.methods.metrics import check_metric
from discreet.privacy import events
from discreet.privacy.accountants import epsilon_of
from discreet.privacy.budget import Privacy
from discreet.privacy.levels import Level
from discreet.privacy.plan import Plan, Stage
from discreet.queries.validation_hits import ValidationHits, even_odds_noise

STAGE = "validation score"
ACCURACY = "accuracy"
OF_TWO_CLASSES = ("roc-auc", "pr-auc")


@dataclass(frozen=True)
class Score:
    """A noisy count of validation nodes predicted right, as a share of all of them; where asking costs nothing, any
    metric on them.
    """

    query: ValidationHits
    noise: float
    nodes: int
    metric: str = ACCURACY

    @property
    def sensitivity(self) -> float:
        """How far the count can move; 0 where asking costs nothing."""
        return self.query.bound().sensitivity

    @property
    def event(self) -> DpEvent:
        """What asking for it once costs."""
        return events.GaussianDpEvent(self.noise / self.sensitivity) if self.sensitivity else events.NoOpDpEvent()

    @property
    def stage(self) -> Stage:
        """The query as a plan has it."""
        return Stage(STAGE, self.query, self.query.bound(), self.event)

    def ask(self, estimator: NodeClassifier, graph: Graph, delta: float, noise: NoiseSource) -> float:
        """How the fitted estimator does on the validation nodes, with noise where it is charged."""
        if self.metric != ACCURACY:
            return self._measure(estimator, graph)
        level = estimator.checked_privacy().level
        _, private = level.split(graph)
        if not self.sensitivity:
            return float(self.query.answer(private, model=estimator)[0]) / self.nodes
        privacy = Privacy(level, epsilon_of(self.event, delta), delta)
        curator = Curator(Plan(estimator.method, privacy, delta, (self.stage,), estimator.covers), noise, [private])
        count = float(curator.ask(STAGE, model=estimator)[0])
        curator.finish()
        return count / self.nodes

    def _measure(self, estimator: NodeClassifier, graph: Graph) -> float:
        """Any metric: :func:`score_for` sees to it that it costs nothing."""
        found = estimator.score(graph, "val", metric=self.metric, uncovered=True)
        if math.isnan(found):
            raise ParameterError(f"{self.metric} is not defined on validation nodes of one class")
        return found


def score_for(level: Level, covers: str, graph: Graph, noise: float | None = None, metric: str = ACCURACY) -> Score:
    """The score of a method with this coverage; ``noise`` is on the count, by default as large as chance itself.

    Another metric than accuracy has no bound here that could be charged: it is for where asking costs nothing.
    """
    check_metric(metric)
    if graph.val_mask is None or not graph.mask("val").any():
        raise ParameterError("a search needs validation nodes: use a split with some, 75/10/15 for example")
    nodes = int(graph.mask("val").sum())
    query = ValidationHits(level, covers)
    charged = query.bound().sensitivity > 0  # refuses what cannot be charged
    if charged and metric != ACCURACY:
        raise UnsupportedError(
            f"a search by {metric} cannot be charged at level {level.kind} (covered: {covers}): search by accuracy"
        )
    if not charged:
        _check_measurable(graph, metric)
    if noise is not None:
        SCORE_NOISE.check("the noise on the score", noise)
    return Score(query, even_odds_noise(nodes) if noise is None else noise, nodes, metric)


def _check_measurable(graph: Graph, metric: str) -> None:
    """Refuse a free score that could not be computed after the first fit; where a score is charged, labels are private
    and nothing here may depend on them.
    """
    known = graph.labels[graph.mask("val") & (graph.labels >= 0)]
    if len(known) == 0:
        raise ParameterError("no validation node has a label, so a search has nothing to compare by")
    if metric in OF_TWO_CLASSES and (known == known[0]).all():
        raise ParameterError(f"{metric} is not defined on validation nodes of one class")
