"""How much a class counts: declared weights by class name, or balanced ones, from labels that are public or counted
with noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from discreet.arrays import Array, FloatArray
from discreet.errors import ParameterError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import LABELS, PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods.base import NodeClassifier
from discreet.privacy.levels import Level
from discreet.privacy.plan import Stage
from discreet.queries.class_counts import ClassCounts
from discreet.training.descent import TrainOptions, training_rows

ClassWeight = Literal["balanced"] | dict[str, Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]]

COUNTS = "class counts"
COUNTS_SHARE = 0.02
"""What noisy counts of the classes take of the squared privacy loss, beside 1 for all else: hundreds of labels move
them far out of their noise with little.
"""


@dataclass(eq=False, repr=False)
class WeighsClasses(NodeClassifier):
    """A classifier in which rare classes can count for more.

    Parameters
    ----------
    class_weight
        ``balanced``: every class counts as much as any other, whatever its number of training nodes. Or a weight by
        class name, ``{"fraud": 10}``; the others count 1. None: every node counts the same. Declared weights cost
        nothing; balanced ones cost nothing where labels are public, and a stage of noisy counts where they are private.
    """

    _: KW_ONLY
    class_weight: ClassWeight | None = None

    def _check_settings(self, part: PublicPart) -> None:
        super()._check_settings(part)
        if self.class_weight is not None and self.class_weight != "balanced":
            names = part.class_names or [str(label) for label in range(part.num_classes)]
            declared_weights(self.class_weight, names)

    def _count_stages(self, facts: PublicFacts, level: Level) -> list[Stage]:
        """The stage that pays for balanced weights where labels are private; it comes first."""
        if self.class_weight != "balanced" or LABELS not in level.private:
            return []
        return [Stage.of(COUNTS, ClassCounts(level, facts.num_classes), share=COUNTS_SHARE)]

    def _class_weights(self, part: PublicPart, curator: Curator) -> FloatArray | None:
        """One weight per class, in the order of classes, from what is declared, public or released; None for none."""
        if self.class_weight is None:
            return None
        names = [str(name) for name in self.classes_]
        if self.class_weight != "balanced":
            return declared_weights(self.class_weight, names)
        if LABELS not in part.private:
            return balanced_weights(np.bincount(part.labels[training_rows(part)], minlength=len(names)))
        return balanced_weights(curator.ask(COUNTS), curator.plan.stage(COUNTS).noise_std)


def with_weights(options: TrainOptions, weights: FloatArray | None) -> TrainOptions:
    """How to descend on public labels, classes weighed."""
    return options if weights is None else replace(options, class_weights=tuple(weights.tolist()))


def class_shares(weights: FloatArray | None) -> dict[str, Any]:
    """What noisy steps take of the clipped gradient of each class: weights in parts of the largest."""
    return {} if weights is None else {"class_shares": weights / weights.max()}


def declared_weights(given: Mapping[str, float], names: Sequence[str]) -> FloatArray:
    """Weights by name; 1 where nothing is said."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ParameterError(f"class_weight names the class {unknown[0]!r:.80}; the classes are {', '.join(names)}")
    return np.array([float(given.get(name, 1.0)) for name in names])


def balanced_weights(counts: Array, noise_std: float = 0.0) -> FloatArray:
    """Inverse to counts, 1 on average over nodes; 1 for a class that is not there.

    Counts under noise are not believed below twice its standard deviation, so that no class is weighed by chance alone.
    """
    counted = np.maximum(np.asarray(counts, dtype=np.float64), 2 * noise_std)
    there = counted > 0
    if not there.any():
        return np.ones(len(counted))
    balanced = counted.sum() / (there.sum() * np.where(there, counted, 1.0))
    return np.where(there, balanced, 1.0)
