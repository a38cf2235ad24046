"""A model as an attacker meets it: through what the guarantee lets anyone read, and no further."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import FloatArray
from discreet.errors import UncoveredReleaseError
from discreet.graph.graph import Graph
from discreet.methods.base import NodeClassifier
from discreet.privacy.levels import NoPrivacy

RELEASE, NO_PRIVACY, FEATURES_ALONE = "release", "no privacy", "features alone"


@dataclass(frozen=True)
class Victim:
    """A fitted model and the graph that it was fitted on.

    ``name`` says what it stands for: the release, a network without privacy, or a network on features alone, which
    reads no edge and so spends nothing. ``uncovered`` serves predictions outside the guarantee too, as a careless
    owner of the model would.
    """

    estimator: NodeClassifier
    graph: Graph
    name: str = RELEASE
    uncovered: bool = False

    @property
    def is_open(self) -> bool:
        """Whether nothing is protected, or nothing is kept back."""
        return self.uncovered or isinstance(self.estimator.checked_privacy().level, NoPrivacy)

    def rows(self) -> FloatArray | None:
        """The class probabilities of every node, where anyone may read them all; None where not."""
        if not self.is_open and self.estimator.covers != "weights+predictions":
            return None
        return self.answer(self.graph)

    def answer(self, graph: Graph) -> FloatArray | None:
        """What the model says of a graph that the attacker puts to it; None where that is refused."""
        try:
            found = self.estimator.predict_proba(graph, uncovered=self.is_open)
        except UncoveredReleaseError:
            return None
        return np.asarray(found, dtype=np.float64)

    def rows_from_weights(self) -> FloatArray:
        """What anyone can compute from the released weights: predictions on the same records without any edge."""
        alone = self.graph.with_edges(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        return np.asarray(self.estimator.predict_proba(alone, public=True), dtype=np.float64)
