"""Noisy steps in which an example is a training node's ego-net in the level's bounded graph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from discreet.arrays import IntArray
from discreet.graph.parts import PrivatePart
from discreet.ops.clipping import clipped_sum
from discreet.ops.egonets import EgoNets, EgoTensors
from discreet.ops.recorded_sums import RecordedSum
from discreet.ops.slot_rows import RowTable, SlotRows, SlotsOnDevice, slot_grams
from discreet.privacy.query import PROVED_HERE
from discreet.queries.ego_nets import BoundedEgoNets, ReadsEgoNets
from discreet.queries.gradients import (
    LEAST_AT_ONCE,
    GradientSteps,
    Touch,
    change_of,
    class_shares_of,
    example_losses,
    examples_at_once,
    on_device,
    training_ids,
    training_labels,
)

MOST_GRAM_BYTES = 1 << 30
"""Inner products of the rows of all examples are kept for the fit up to this size; beyond it, made in every step."""
_SPARE_DEVIATIONS = 5
"""By how many standard deviations a drawn batch may be larger than expected before it takes a portion more."""
_OWN_PACKAGES = {"discreet", "torch"}


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


class _ExamplesOnDevice(NamedTuple):
    """The same on a device, and behind them an example that adds nothing: it is empty and has no label."""

    nets: EgoTensors
    records: RowTable
    grams: Tensor
    labels: Tensor

    @classmethod
    def of(cls, examples: _Examples, labels: IntArray) -> _ExamplesOnDevice:
        nets, records, grams = examples
        assert grams is not None
        device = records.rows.device
        return cls(
            EgoTensors.of(nets, len(records) - 1, device),
            records,
            torch.cat([grams, torch.zeros_like(grams[:1])]),
            torch.from_numpy(np.append(labels, -1)).to(device),
        )

    @property
    def nobody(self) -> int:
        """Where the example stands that adds nothing."""
        return len(self.labels) - 1

    def losses(self, network: ReadsEgoNets, positions: Tensor) -> Tensor:
        nets = self.nets.at(positions)
        rows = SlotsOnDevice(self.records, nets.index, self.grams[positions])
        return example_losses(network.on_egos(rows, nets), self.labels[positions])


class _Recording(NamedTuple):
    """A recorded sum, and what it reads by its place in memory."""

    network: nn.Module
    class_shares: object
    places: list[int]
    total: RecordedSum

    def is_of(self, network: nn.Module, inputs: Mapping[str, Any]) -> bool:
        same = self.network is network and self.class_shares is inputs.get("class_shares")
        return same and self.places == _places(network)


def _places(network: nn.Module) -> list[int]:
    return [part.data_ptr() for part in (*network.parameters(), *network.buffers())]


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

    # ---------------------------------------------------------------- on a GPU

    def _sum(
        self, private: PrivatePart, batch: IntArray, network: nn.Module, inputs: Mapping[str, Any]
    ) -> Tensor | None:
        """On a GPU a sum is recorded once and played back, with the same arithmetic in portions of one public size."""
        if not self._is_recorded(private, network):
            return super()._sum(private, batch, network, inputs)
        name = (self, "recording")
        known: _Recording | None = private.recall(name)
        if known is None or not known.is_of(network, inputs):
            made = self.recorded_sum(private, network, inputs)
            known = private.keep(name, _Recording(network, inputs.get("class_shares"), _places(network), made))
        return known.total.sum_over(batch)

    def _is_recorded(self, private: PrivatePart, network: nn.Module) -> bool:
        """Not where sparse features are too many to be written out; nor with others' modules, which may do anything."""
        if torch.device(private.device).type != "cuda":
            return False
        own = all(type(module).__module__.split(".")[0] in _OWN_PACKAGES for module in network.modules())
        examples = self._examples(private)
        return own and examples.grams is not None and isinstance(examples.records.rows, Tensor)

    def recorded_sum(self, private: PrivatePart, network: Any, inputs: Mapping[str, Any]) -> RecordedSum:
        """Sums of clipped gradients over positions that lie on the device."""
        examples = _ExamplesOnDevice.of(self._examples(private), self.labels(private))
        rule, shares = self._clip_rule(network), class_shares_of(inputs)
        by_class = None if shares is None else on_device(private, shares)

        def add_up(positions: Tensor) -> Tensor:
            own = None if by_class is None else by_class[examples.labels[positions].clamp_min(0)]
            return clipped_sum(network, lambda: examples.losses(network, positions), rule, shares=own).flat

        return RecordedSum(add_up, self._portion(private), examples.nobody, private.device)

    def _portion(self, private: PrivatePart) -> int:
        """Of as many examples as a batch has, or nearly always has at most, equal portions."""
        most, expected = self._at_once(private), self.batch_size
        if not self.takes_all and self.rule.sampling == "poisson":
            expected += math.ceil(_SPARE_DEVIATIONS * math.sqrt(expected))
        expected = min(expected, self.num_examples)
        portions = -(-expected // most)
        return min(most, LEAST_AT_ONCE * -(-expected // (portions * LEAST_AT_ONCE)))
