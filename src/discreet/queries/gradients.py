"""Sums of clipped gradients, one term per example: what every noisy step asks.

A step adds the clipped terms of a random batch of examples. How batches are drawn decides what a step costs, so one
object says both: :class:`GradientSteps` states the event, and ``mechanisms.dpsgd.draw_batch`` draws as that event says.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from dp_accounting.dp_event import DpEvent
from torch import Tensor, nn

from discreet.arrays import Array, FloatArray, IntArray
from discreet.errors import GraphError, ParameterError
from discreet.graph.parts import PrivatePart
from discreet.limits import NORM
from discreet.ops.clipping import ClippedSum, ClipRule, Room, clipped_sum, count_layers, trainable, widest_layer
from discreet.ops.rows import rows_of_norm
from discreet.ops.sparse import SparseMatrix, feature_tensor, select_rows
from discreet.privacy import events
from discreet.privacy.levels import Change, Level, NodeLevel, NoPrivacy
from discreet.privacy.query import NO_BOUND, PROVED_HERE, Bound, Query

T = TypeVar("T")
Sampling = Literal["poisson", "fixed"]
Clipping = Literal["flat", "per-layer"]
METRIC = "examples"

MOST_AT_ONCE, LEAST_AT_ONCE = 4096, 64
"""Examples in a micro-batch: what the error of sums is proved for, whatever was asked for."""
ROWS_AT_ONCE = 1 << 17
"""Rows of a micro-batch where examples have few: an accelerator stands idle on fewer."""
MANY_EXAMPLES, MANY_ALONE = 1 << 20, 1 << 24
"""Examples beyond which micro-batches stay small, of several rows each or of one: the error of a sum grows with both,
and 64 times as fast where rows of an example may cancel (``ops.layer_rows.CANCELLATION``)."""


@dataclass(frozen=True)
class Touch:
    """How many examples one protected unit can change, under which kind of change, and why.

    Under *null* one of them, the unit's own example, has the zero term on one of the two sides.
    """

    examples: int
    change: Change
    why: str

    def capped_at(self, num_examples: int) -> Touch:
        """No more terms can change than there are; but then all of them may belong to others, and go anywhere.

        (A unit outside the training set has no example of its own: it touches k − 1 of others'. Cutting k down to the
        number of examples and still counting one of them as the unit's own would be wrong.)
        """
        if self.examples <= num_examples:
            return self
        return Touch(num_examples, "replace", f"{self.why}; there are only {num_examples} examples")

    @property
    def full_shift(self) -> int:
        """By how many clip norms the sum over all examples can move."""
        return 2 * self.examples - 1 if self.change == "null" else 2 * self.examples


def change_of(level: Level) -> Change:
    """The change that the level's relation makes to a record."""
    return level.change if isinstance(level, NodeLevel) else "replace"


@dataclass(frozen=True)
class StepRule:
    """How batches are drawn and gradients clipped.

    ``batch_size`` is the expected (``poisson``) or exact (``fixed``) size of a batch; None takes every example in every
    step. ``clipping`` is ``flat``, or ``per-layer``: every layer at clip_norm/√L.
    """

    clip_norm: float
    batch_size: int | None = None
    sampling: Sampling = "poisson"
    clipping: Clipping = "flat"

    def checked_size(self, num_examples: int) -> int:
        """The size of a batch; an error where it cannot be."""
        NORM.check("clip_norm", self.clip_norm)
        return checked_batch_size(self.batch_size, num_examples)

    def clip_rule(self, network: nn.Module, room: Room) -> ClipRule:
        """The clip norms; by layer they add up to the same total."""
        if self.clipping == "flat":
            return ClipRule.flat(self.clip_norm, room)
        return ClipRule.layers(self.clip_norm, count_layers(network), room)


def checked_batch_size(batch_size: int | None, num_examples: int) -> int:
    """The size of a batch; an error where it cannot be."""
    if num_examples < 1:
        raise GraphError("the graph has no training node: give it a train mask, for example with discreet.split")
    if batch_size is not None and batch_size > num_examples:
        raise ParameterError(f"batch_size {batch_size} is larger than the training set of {num_examples} nodes")
    return num_examples if batch_size is None else batch_size


def count_parameters(network: nn.Module) -> int:
    """How many numbers a step moves."""
    return sum(p.numel() for p in trainable(network))


def planned_parameters(network: nn.Module, num_examples: int, slots: int = 1) -> int:
    """How many numbers a step moves; an error where sums of so many terms cannot be proved to keep to a clip norm.

    ``slots`` is the most rows that an example has in any layer. All of it is public, so a plan can refuse.
    """
    room = _room(num_examples, examples_at_once(num_examples, slots))
    ClipRule.flat(1.0, room).norms_with_room(widest_layer(network), slots, count_layers(network))
    return count_parameters(network)


def examples_at_once(num_examples: int, slots: int) -> int:
    """Of so many examples with so many rows each, those in a micro-batch, at most."""
    many = num_examples > (MANY_EXAMPLES if slots > 1 else MANY_ALONE)
    return MOST_AT_ONCE if many else max(MOST_AT_ONCE, ROWS_AT_ONCE // max(slots, 1))


def _room(num_examples: int, most_at_once: int) -> Room:
    """Sums of as many terms as there are examples, which is public, in whatever micro-batches."""
    return Room(num_examples, most_at_once, -(-num_examples // LEAST_AT_ONCE))


@dataclass(frozen=True)
class GradientSteps(Query):
    """The sum of the clipped gradients of a batch of examples, one term per example.

    Inputs: ``network``, whose parameters are released values, and ``batch``, which the curator draws. ``class_shares``,
    public or released, one number per class, is how much of its clipped gradient an example of each class adds; numbers
    are brought into [0, 1] here (what is no number becomes 0).

    Guarantee: if one unit changes at most ``touch.examples`` examples, a run has the privacy of :meth:`event`: each
    term has norm at most the clip norm on both sides, the rounding of a step included (``ops.clipping``), and under
    null the unit's own term is zero on one. Where every step takes every example this is a plain Gaussian: the sum
    moves by at most (2k − 1)C under null and 2kC under replace. Shares of classes are at most 1, so no term grows: they
    leave every bound as it is, whatever label an example has on either side. A subclass says what an example is, and
    how many of them one unit reaches (:meth:`touch`).
    """

    mechanism: ClassVar[str] = "dpsgd"

    level: Level
    question: str
    num_parameters: int
    num_examples: int
    rule: StepRule
    clip_norm: float = field(init=False, compare=False)
    """The norm that bounds every term."""
    batch_size: int = field(init=False, compare=False)
    """The expected or exact size of a batch."""
    takes_all: bool = field(init=False, compare=False)
    """Whether every step takes every example."""

    def __post_init__(self) -> None:
        """Settle what follows from the rule; an error where there can be no such step."""
        size = self.rule.checked_size(self.num_examples)
        settled = {"clip_norm": self.rule.clip_norm, "batch_size": size, "takes_all": size == self.num_examples}
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    # ---------------------------------------------------------------- what a subclass writes

    @abstractmethod
    def touch(self) -> Touch:
        """How many examples one unit can change."""

    @abstractmethod
    def labels(self, private: PrivatePart, *args: Any, **inputs: Any) -> IntArray:
        """The labels of all examples, on the host; an example without one (−1) is null, and its term is zero."""

    @abstractmethod
    def losses(self, private: PrivatePart, positions: IntArray, *args: Any, **inputs: Any) -> Tensor:
        """One loss for each of the examples at these positions."""

    # ---------------------------------------------------------------- plan

    @property
    def words(self) -> str:
        """What is asked."""
        return self.question

    @property
    def shape(self) -> tuple[int, ...]:
        """A flat vector of parameters."""
        return (self.num_parameters,)

    @property
    def most_at_once(self) -> int:
        """Examples in a micro-batch, at most."""
        return MOST_AT_ONCE

    @property
    def touched(self) -> Touch:
        """:meth:`touch`, among the examples that there are."""
        return self.touch().capped_at(self.num_examples)

    def bound(self) -> Bound:
        """The clip norm of one term; of the sum over all examples, where every step takes all of them."""
        if isinstance(self.level, NoPrivacy):
            return Bound(math.inf, METRIC, NO_BOUND)
        touched = self.touched
        norm = self.clip_norm * (touched.full_shift if self.takes_all else 1)
        return Bound(norm, METRIC, touched.why)

    def event(self, share: float, runs: int) -> DpEvent:
        """Exact shares where every step takes all examples; for sampled steps a rule of thumb, which calibration makes
        good: what is stated is always what the whole plan costs.
        """
        wanted = math.sqrt(runs / share)
        if self.takes_all:
            return events.GaussianDpEvent(wanted)
        touched, rate = self.touched, self.batch_size / self.num_examples
        return self.sampled_event(2 * touched.examples * rate * wanted)

    def sampled_event(self, multiplier: float) -> DpEvent:
        """One step at this noise, in units of the clip norm, as batches are drawn."""
        touched = self.touched
        if self.takes_all:
            return events.GaussianDpEvent(multiplier / touched.full_shift)
        if self.rule.sampling == "fixed":
            return events.GroupFixedSampledGaussianDpEvent(
                multiplier, self.num_examples, self.batch_size, touched.examples, touched.change
            )
        rate = self.batch_size / self.num_examples
        return events.GroupSampledGaussianDpEvent(multiplier, rate, touched.examples, touched.change)

    def parameters(self) -> dict[str, Any]:
        """Plain values for the certificate."""
        touched = self.touched
        return {
            "clip_norm": self.clip_norm,
            "touched": touched.examples,
            "change": touched.change,
            "examples": self.num_examples,
            "batch_size": self.batch_size,
            "sampling": "all" if self.takes_all else self.rule.sampling,
        }

    # ---------------------------------------------------------------- answer

    def answer(self, private: PrivatePart, *, batch: IntArray, network: nn.Module, **inputs: Any) -> Array:
        """The clipped sum in double precision, a micro-batch at a time, so that memory does not grow with the batch.

        Guarantee: examples that are null are left out before anything is computed, so the sum is the same bits as that
        of a batch which does not hold them.
        """
        batch = batch[self.labels(private, **inputs)[batch] >= 0]
        total = self._sum(private, batch, network, inputs)
        return np.zeros(self.num_parameters) if total is None else _on_host(total)

    def _sum(
        self, private: PrivatePart, batch: IntArray, network: nn.Module, inputs: Mapping[str, Any]
    ) -> Tensor | None:
        """The clipped sum over a batch, None if that is empty."""
        size, rule = self._at_once(private), self._clip_rule(network)
        total: Tensor | None = None
        for start in range(0, len(batch), size):
            part = self._clipped(private, batch[start : start + size], network, rule, inputs).flat
            total = part if total is None else total.add_(part)
        return total

    def _at_once(self, private: PrivatePart) -> int:
        """Examples in a micro-batch."""
        return max(LEAST_AT_ONCE, min(private.micro_batch, self.most_at_once))

    def once(self, private: PrivatePart, name: Hashable, positions: IntArray, make: Callable[[], T]) -> T:
        """What ``make`` gives for these positions: made once for the fit where every step takes every example."""
        if not self.takes_all:
            return make()
        place = (self, name, positions.tobytes())
        known: T | None = private.recall(place)
        return private.keep(place, make()) if known is None else known

    def terms(self, private: PrivatePart, *, network: nn.Module, **inputs: Any) -> FloatArray:
        """The clipped gradients of all examples one by one: for audits of small graphs."""
        everyone = np.arange(self.num_examples)
        found = self._clipped(private, everyone, network, self._clip_rule(network), inputs, terms=True).terms
        assert found is not None
        return found.cpu().numpy()

    def _clipped(
        self,
        private: PrivatePart,
        positions: IntArray,
        network: nn.Module,
        rule: ClipRule,
        inputs: Mapping[str, Any],
        *,
        terms: bool = False,
    ) -> ClippedSum:
        def losses() -> Tensor:
            return self.losses(private, positions, network=network, **inputs)

        return clipped_sum(network, losses, rule, shares=self._shares(private, positions, inputs), terms=terms)

    def _shares(self, private: PrivatePart, positions: IntArray, inputs: Mapping[str, Any]) -> Tensor | None:
        """How much of its clipped gradient each of these examples adds; None for all of it. An example without a label
        adds nothing, whatever its share.
        """
        shares = class_shares_of(inputs)
        return None if shares is None else on_device(private, shares[self.labels(private, **inputs)[positions]])

    def _clip_rule(self, network: nn.Module) -> ClipRule:
        return self.rule.clip_rule(network, _room(self.num_examples, self.most_at_once))


def _on_host(total: Tensor) -> FloatArray:
    """A copy of what a GPU computed, in memory that it can write to by itself."""
    if total.device.type != "cuda":
        return total.numpy()
    host = torch.empty(total.shape, dtype=total.dtype, pin_memory=True)
    return host.copy_(total).numpy()


def class_shares_of(inputs: Mapping[str, Any]) -> FloatArray | None:
    """How much of its clipped gradient an example of each class adds, within [0, 1]; None for all of it."""
    given = inputs.get("class_shares")
    if given is None:
        return None
    return np.clip(np.nan_to_num(np.asarray(given, dtype=np.float64), nan=0.0, neginf=0.0), 0.0, 1.0)


def example_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy, one per example; a node without a label has loss 0, so its term is zero."""
    losses: Tensor = nn.functional.cross_entropy(logits, labels, reduction="none", ignore_index=-1)
    return losses


def training_ids(private: PrivatePart) -> IntArray:
    """The public training ids, labelled or not.

    Guarantee: no label is read, not even to refuse a graph without any: whether an id has one is private. (A plan
    refuses an empty mask, which is public.)
    """
    return np.flatnonzero(private.graph.mask("train"))


def training_labels(private: PrivatePart) -> IntArray:
    """The labels of the training ids, negative where there is none."""
    name = "training labels"
    known: IntArray | None = private.recall(name)
    return private.keep(name, private.graph.labels[training_ids(private)]) if known is None else known


def on_device(private: PrivatePart, values: Array | IntArray) -> Tensor:
    """An array where the private part computes."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(private.device)


# -------------------------------------------------------------------- an example is a node's own record


class _Examples(NamedTuple):
    """What the examples of a fit are made of, on the device: inputs (one row per example), rows beside them, labels.

    ``made_of`` holds the released values behind them: while it does, nothing else gets their identity.
    """

    inputs: Tensor | SparseMatrix
    beside: Tensor | None
    labels: Tensor
    made_of: tuple[object, ...] = ()

    def at(self, positions: IntArray) -> _Examples:
        """The examples at these positions."""
        if len(positions) == len(self.labels):
            return self
        chosen = torch.from_numpy(positions).to(self.labels.device)
        beside = None if self.beside is None else self.beside[chosen]
        return _Examples(select_rows(self.inputs, chosen), beside, self.labels[chosen])


@dataclass(frozen=True)
class OwnRecordSteps(GradientSteps):
    """Clipped gradients of ``network`` on the features and labels of training (or validation) ids.

    Inputs beside ``network``: ``frozen``, a released module that turns a node's features into what the network reads
    (once for all steps), and ``beside``, released rows of all nodes that the network reads as a second argument.
    ``row_norm`` scales every feature row to this public norm first, each by itself, and ``length_norm`` adds columns of
    this norm that say how long it was (``ops.rows.rows_of_norm``). ``slots`` is the most rows that the network makes of
    one example in any layer.

    Guarantee. *Neighbours*: any change of one node's record and edges. *Bound*: an example reads its own node's
    features and label, released values, and nothing of any other node, so the unit touches its own example alone; its
    clipped gradient is zero where the node is null (no label: loss 0). No edge is read. *Edge case*: an id outside the
    split touches none.
    """

    proof: ClassVar[str] = PROVED_HERE

    ids: Literal["train", "val"] = "train"
    row_norm: float | None = None
    length_norm: float = 0.0
    slots: int = 1

    @property
    def most_at_once(self) -> int:
        """More than where an example is an ego-net: few rows each."""
        return examples_at_once(self.num_examples, self.slots)

    def touch(self) -> Touch:
        """A node's own example."""
        return Touch(1, change_of(self.level), "a node stands in its own example alone, whose gradient is clipped")

    def losses(
        self,
        private: PrivatePart,
        positions: IntArray,
        *,
        network: nn.Module,
        frozen: nn.Module | None = None,
        beside: Tensor | None = None,
        **inputs: Any,
    ) -> Tensor:
        """Cross-entropy of what the network makes of each node's own record."""
        inputs_are = (id(frozen), id(beside))
        examples = self._examples(private, frozen, beside)
        given, others, labels, _ = self.once(private, inputs_are, positions, lambda: examples.at(positions))
        return example_losses(network(given) if others is None else network(given, others), labels)

    def labels(self, private: PrivatePart, **inputs: Any) -> IntArray:
        """Of the ids of the split."""
        name = (self, "labels")
        known: IntArray | None = private.recall(name)
        return private.keep(name, private.graph.labels[self._ids(private)]) if known is None else known

    def _examples(self, private: PrivatePart, frozen: nn.Module | None, beside: Tensor | None) -> _Examples:
        name = (self, id(frozen), id(beside))
        known: _Examples | None = private.recall(name)
        if known is not None:
            return known
        graph = private.graph
        ids = torch.from_numpy(self._ids(private)).to(private.device)
        features = graph.features
        if self.row_norm is not None:
            features = rows_of_norm(features, self.row_norm, self.length_norm)
        rows = select_rows(feature_tensor(features, private.device), ids)
        if frozen is not None:
            with torch.no_grad():
                rows = frozen(rows)
        labels = torch.tensor(graph.labels, device=private.device)[ids]
        rows_beside = None if beside is None else beside[ids]
        return private.keep(name, _Examples(rows, rows_beside, labels, made_of=(frozen, beside)))

    def _ids(self, private: PrivatePart) -> IntArray:
        """The public ids of the examples; validation ids that are training ids too count as those."""
        graph = private.graph
        train = graph.mask("train")
        return np.flatnonzero(train if self.ids == "train" else graph.mask("val") & ~train)
