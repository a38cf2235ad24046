"""How much a class counts in training, where labels are public: declared weights by class name, or balanced ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.parts import LABELS, PublicPart
from discreet.methods.trained import TrainedClassifier
from discreet.training.descent import TrainOptions, training_rows

ClassWeight = Literal["balanced"] | dict[str, Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]]


@dataclass(eq=False, repr=False)
class WeighsClasses(TrainedClassifier):
    """A classifier trained on public labels in which rare classes can count for more.

    Parameters
    ----------
    class_weight
        ``balanced``: every class counts as much as any other, whatever its number of training nodes. Or a weight by
        class name, ``{"fraud": 10}``; the others count 1. None: every node counts the same. Where labels are private
        it is refused.
    """

    _: KW_ONLY
    class_weight: ClassWeight | None = None

    def _weighted_options(self, part: PublicPart) -> TrainOptions:
        """How to descend, with the weights of classes; labels that are read are public."""
        if self.class_weight is None:
            return self._options()
        if LABELS in part.private:
            raise UnsupportedError(f"{self.method} takes class_weight only at levels where labels are public")
        names = [str(name) for name in self.classes_]
        return replace(self._options(), class_weights=weights_of(self.class_weight, part, names))


def weights_of(
    class_weight: Literal["balanced"] | Mapping[str, float], part: PublicPart, names: Sequence[str]
) -> tuple[float, ...]:
    """One weight per class, in the order of ``names``."""
    if class_weight == "balanced":
        counts = np.bincount(part.labels[training_rows(part)], minlength=len(names))
        there = counts > 0
        balanced = counts.sum() / (there.sum() * np.maximum(counts, 1))
        return tuple(np.where(there, balanced, 1.0).tolist())
    unknown = [name for name in class_weight if name not in names]
    if unknown:
        raise ParameterError(f"class_weight names the class {unknown[0]!r:.80}; the classes are {', '.join(names)}")
    return tuple(float(class_weight.get(name, 1.0)) for name in names)
