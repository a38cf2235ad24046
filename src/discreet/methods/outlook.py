"""What a plan lets a method learn, estimated from public facts: how clearly from labels, how clearly from edges.

Rough by design: two signal-to-noise ratios that can be computed before any data is read. They rank methods on one
graph (``methods.recommend``); they predict no accuracy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.mechanisms.dpsgd import steps_of
from discreet.privacy.plan import Plan, Stage
from discreet.queries.gradients import METRIC

CONTRAST = 0.5
"""Assumed difference between the neighbours of two classes: half of a node's neighbours tell its class."""

OPINION = 0.7
"""What a node model's opinion of a neighbour is worth beside that neighbour's label."""

REACH = 1.2
"""What propagation beyond the neighbours adds."""

SPREAD = 0.25
"""Variance that one neighbour's class adds to a count of neighbours per class."""

ENOUGH = 5.0
"""Ratio of gradient to noise, over all steps, at which noisy training has learnt half of what it could."""


@dataclass(frozen=True)
class Outlook:
    """What can be learnt under a plan.

    ``learning`` is the pull of all clipped gradients over the noise on them (infinite where labels are public);
    ``graph`` is how many standard deviations the edges put two classes apart (0 where no edge is read).
    """

    learning: float
    graph: float

    @property
    def score(self) -> float:
        """Between 0 and 2: the part of the features' and of the graph's information that gets through."""
        return _part(self.learning, ENOUGH) + _part(self.graph, 1.0)

    @property
    def words(self) -> str:
        """Both parts in per cent."""
        return f"{_part(self.learning, ENOUGH):.0%} / {_part(self.graph, 1.0):.0%}"


def outlook_of(plan: Plan, graph: float = 0.0) -> Outlook:
    """The outlook of a plan whose edges put two classes ``graph`` standard deviations apart."""
    training = [stage for stage in plan.stages if stage.metric == METRIC]
    return Outlook(min(map(_pull, training), default=math.inf), graph)


def separation(degree: float, noise_std: float) -> float:
    """How far apart ``degree`` neighbours, each telling a unit vector, put two classes under this noise."""
    return CONTRAST * math.sqrt(2) * degree / math.sqrt(noise_std**2 + SPREAD * degree)


def _pull(stage: Stage) -> float:
    """Σ of the clipped gradients of all steps if they all agree, over the norm of the noise on that sum."""
    query = steps_of(stage)
    signal = query.batch_size * query.clip_norm * stage.runs
    noise = stage.noise_std * math.sqrt(stage.shape[0] * stage.runs)
    return signal / noise if noise > 0 else math.inf


def _part(ratio: float, half: float) -> float:
    return 1.0 if math.isinf(ratio) else ratio**2 / (ratio**2 + half**2)
