"""Noisy steps in which an example is a training node's ego-net in the level's bounded graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from discreet.arrays import IntArray
from discreet.graph.parts import PrivatePart
from discreet.privacy.assurance import PROVED_HERE
from discreet.queries.ego_nets import BoundedEgoNets, ReadsEgoNets
from discreet.queries.gradients import GradientSteps, Touch, change_of, example_losses, training_ids


@dataclass(frozen=True)
class EgoNetSteps(GradientSteps):
    """Clipped gradients of ``network`` on the ego-nets of training nodes.

    Guarantee: one unit touches the examples of ``reach.touched_examples``, its own among them, which has no label
    (loss 0, so a zero term) where the unit is null. Which slots hold what is the same in every example that it does
    not touch, see ``ops.egonets.SenderTable``; a network that reads examples one by one then gives each of those the
    same term.
    """

    proof: ClassVar[str] = PROVED_HERE

    ego_nets: BoundedEgoNets

    def touch(self) -> Touch:
        """The unit's own ego-net and those that it reaches."""
        examples, why = self.ego_nets.touched()
        return Touch(examples, change_of(self.level), why)

    def losses(self, private: PrivatePart, positions: IntArray, *, network: ReadsEgoNets, **inputs: Any) -> Tensor:
        """Cross-entropy of what the network makes of each training node's ego-net."""
        ids = private.remember((self, "ids"), lambda: training_ids(private))
        logits = self.ego_nets.logits(private, ids[positions], network)
        labels = torch.from_numpy(self.labels(private)[positions]).to(private.device)
        return example_losses(logits, labels)

    def labels(self, private: PrivatePart, **inputs: Any) -> IntArray:
        """Of the training ids."""
        return private.remember((self, "labels"), lambda: private.graph.labels[training_ids(private)])
