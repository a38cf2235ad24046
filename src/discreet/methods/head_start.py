"""Where a head starts that reads a node's own opinion beside noisy rows of its neighbours.

A head that starts at random has to learn from labelled nodes that both are evidence of the same classes. Where labels
are few it does not, and ends below the network that reads features alone.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from torch import Tensor

from discreet.graph.graph import PublicFacts
from discreet.methods.trained import TrainedClassifier
from discreet.ops.rows import damp_rows
from discreet.privacy.levels import NoPrivacy


@dataclass(eq=False, repr=False)
class StartsHead(TrainedClassifier):
    """A classifier with such a head.

    Parameters
    ----------
    start
        What the head starts from: ``random`` weights, or ``evidence``, what the first network says of a node plus what
        its neighbours tell, weighed by their noise. ``auto`` is evidence under noise where training nodes are few: at
        most half of the steps that a pass is made for (1,024 nodes with the defaults). At levels ``neighbor`` and
        ``node`` it is always evidence.
    """

    _: KW_ONLY
    start: Literal["auto", "random", "evidence"] = "auto"

    def _starts_from_evidence(self, facts: PublicFacts) -> bool:
        """Whether the head starts from log-probabilities beside rows that are weighed by their noise."""
        if self._records_are_private():
            return True
        if self.start != "auto":
            return self.start == "evidence"
        under_noise = not isinstance(self._checked_privacy().level, NoPrivacy)
        return under_noise and self._options().has_few(facts.num_train)

    def _scaled(self, noisy: Tensor, noise_std: float) -> Tensor:
        """What the head reads of noisy rows: weighed as evidence under Gaussian noise is, or damped."""
        if self._starts_from_evidence(self.public_):
            return noisy / (1 + noise_std**2)
        return damp_rows(noisy / (1 + noise_std))
