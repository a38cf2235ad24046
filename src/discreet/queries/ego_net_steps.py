"""Noisy steps in which an example is a training node's ego-net in the level's bounded graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from discreet.arrays import IntArray
from discreet.graph.parts import PrivatePart
from discreet.ops.egonets import EgoNets
from discreet.ops.slot_rows import RowTable, SlotRows, slot_grams
from discreet.privacy.query import PROVED_HERE
from discreet.queries.ego_nets import BoundedEgoNets, ReadsEgoNets
from discreet.queries.gradients import (
    GradientSteps,
    Touch,
    change_of,
    example_losses,
    examples_at_once,
    training_ids,
    training_labels,
)

MOST_GRAM_BYTES = 1 << 30
"""Inner products of the rows of all examples are kept for the fit up to this size; beyond it, made in every step."""


class _Examples(NamedTuple):
    """The ego-nets of all training ids, the records that stand in them, and inner products of these."""

    nets: EgoNets
    records: RowTable
    grams: Tensor | None

    def at(self, positions: IntArray) -> tuple[SlotRows, EgoNets]:
        """What the examples at these positions are made of."""
        nets = self.nets.at(positions)
        grams = None if self.grams is None else self.grams[torch.from_numpy(positions).to(self.grams.device)]
        return SlotRows(self.records, nets.index, grams), nets


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

    @property
    def most_at_once(self) -> int:
        """Fewer, the more slots an ego-net has."""
        return examples_at_once(self.num_examples, self.ego_nets.slots)

    def touch(self) -> Touch:
        """The unit's own ego-net and those that it reaches."""
        examples, why = self.ego_nets.touched()
        return Touch(examples, change_of(self.level), why)

    def losses(self, private: PrivatePart, positions: IntArray, *, network: ReadsEgoNets, **inputs: Any) -> Tensor:
        """Cross-entropy of what the network makes of each training node's ego-net."""
        examples = self._examples(private)
        rows, nets = self.once(private, "slots", positions, lambda: examples.at(positions))
        labels = torch.from_numpy(self.labels(private)[positions]).to(private.device)
        return example_losses(network.on_egos(rows, nets), labels)

    def _examples(self, private: PrivatePart) -> _Examples:
        name = (self, "examples")
        known: _Examples | None = private.recall(name)
        if known is not None:
            return known
        nets, records = self.ego_nets.around(private, training_ids(private)), self.ego_nets.records(private)
        small = 8 * nets.index.size * nets.slots <= MOST_GRAM_BYTES
        return private.keep(name, _Examples(nets, records, slot_grams(records, nets.index) if small else None))

    def labels(self, private: PrivatePart, **inputs: Any) -> IntArray:
        """Of the training ids."""
        return training_labels(private)
