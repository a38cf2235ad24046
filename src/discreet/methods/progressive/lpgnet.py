"""``lpgnet``: stacked networks on noisy counts of each class among the neighbours (Kolluri et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.methods import progressive
from discreet.methods.outlook import OPINION, Outlook, outlook_of, separation
from discreet.methods.progressive.estimator import ProgressiveClassifier, stage_name
from discreet.methods.progressive.published import StackedStages
from discreet.privacy.levels import Level
from discreet.privacy.plan import Plan
from discreet.queries.class_degrees import ClassDegrees, CountNoise
from discreet.training.descent import training_rows
from discreet.training.networks import MLP, widths_of


@dataclass(eq=False, repr=False)
class LPGNet(ProgressiveClassifier):
    """Every node learns how many of its neighbours are in each class, as the stage before sees classes; with noise.

    Parameters
    ----------
    noise
        ``laplace``, which is less at these budgets, or ``gaussian``.
    known_labels
        Whether training nodes stand for their own label, which is public at edge level, instead of for what the
        stage before makes of them.

    With ``architecture="paper"`` a later stage reads the logits of every earlier one beside all counts.

    Guarantee: the first network depends on no edge; each stage's counts read edges and classes that follow from public
    or released values, with the bound of ``queries.class_degrees``, and their noise is drawn once and cached. Weights,
    caches and all predictions are covered.
    """

    declaration = progressive.LPGNET

    _: KW_ONLY
    stages: Annotated[int, Field(ge=1, le=16)] = 1
    noise: CountNoise = "laplace"
    known_labels: bool = True

    def _paper_networks(self, facts: PublicFacts, generator: torch.Generator) -> StackedStages:
        classes = facts.num_classes
        inputs = [facts.num_features, *(2 * classes * stage for stage in range(1, self.stages + 1))]
        stacked = [widths_of(read, self.hidden, self.layers, classes) for read in inputs]
        return StackedStages([MLP(widths, self.activation, self.dropout, generator) for widths in stacked], classes)

    def _query(self, facts: PublicFacts, level: Level, stage: int) -> ClassDegrees:
        return ClassDegrees(level, facts.num_nodes, facts.num_classes, self.noise, stage)

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """Nodes tell the class that the first network takes them for."""
        scale = plan.stage(stage_name(0, 1)).noise_std
        std = math.sqrt(2) * scale if self.noise == "laplace" else scale
        return outlook_of(plan, OPINION * separation(degree, std))

    def _messages(self, part: PublicPart, arrived: Sequence[Tensor]) -> Tensor:
        logits = self._told(part, arrived)
        classes = logits.argmax(dim=1)
        if self.known_labels and part.train_mask is not None:
            rows = torch.tensor(training_rows(part), device=classes.device)
            classes[rows] = torch.tensor(part.labels, device=classes.device)[rows]
        return torch.nn.functional.one_hot(classes, logits.shape[1]).float()

    def _inputs(self, messages: Tensor) -> dict[str, Any]:
        return {"classes": messages.argmax(dim=1).cpu().numpy()}
