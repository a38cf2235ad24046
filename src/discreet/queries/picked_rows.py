"""Noisy steps in which an example is a source's row: the outputs for its own node and for picked ones, averaged."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from discreet.arrays import Array, BoolArray, FloatArray, IntArray
from discreet.errors import PlanViolationError
from discreet.graph.parts import PrivatePart
from discreet.ops.sparse import SparseMatrix, feature_tensor, select_rows
from discreet.privacy.query import PROVED_HERE
from discreet.queries.gradients import GradientSteps, Touch, change_of, example_losses, on_device
from discreet.queries.pagerank_rows import positions_of
from discreet.queries.sampled_nodes import NodeSample, checked_positions

LARGEST_WEIGHT = 1e6
"""Released weights are cut here, so that no sum of them overflows; true ones are at most 1."""


class Slots(NamedTuple):
    """For each row the positions that it reads and their weights, padded with its own position at weight zero."""

    positions: IntArray
    weight: FloatArray


class _Examples(NamedTuple):
    """What the rows of a fit are made of, on the device. ``given`` keeps the inputs alive that it was made from."""

    features: Tensor | SparseMatrix
    labels: Tensor
    slots: IntArray
    weight: Tensor
    given: tuple[Any, Any]

    def rows(self, positions: IntArray) -> Tensor | SparseMatrix:
        """The features that these rows read, one after another."""
        index = torch.from_numpy(self.slots[positions].reshape(-1))
        return select_rows(
            self.features, index if isinstance(self.features, SparseMatrix) else index.to(self.labels.device)
        )


@dataclass(frozen=True)
class RowSteps(GradientSteps):
    """Clipped gradients of ``network`` on rows: the label of a source against the weighted sum of the network's
    outputs on its slots.

    Inputs beside ``network``: ``sources``, public positions (see ``queries.sampled_nodes``), one per row; and
    ``picks``, what a ``PageRankRows`` of the same sources released, or None to read each row's own node alone.
    A subclass says who may stand in which row (:meth:`slots`), which is what :meth:`touch` counts.
    """

    sample: NodeSample

    @abstractmethod
    def slots(self, sources: IntArray, picks: Array, size: int) -> Slots:
        """What each row reads among ``size`` positions, from released values alone."""

    def losses(
        self,
        private: PrivatePart,
        positions: IntArray,
        *,
        network: nn.Module,
        sources: IntArray,
        picks: Array | None = None,
        **inputs: Any,
    ) -> Tensor:
        """One cross-entropy per row."""
        examples = self._examples(private, sources, picks)
        rows = self.once(private, (id(sources), id(picks)), positions, lambda: examples.rows(positions))
        chosen = torch.from_numpy(positions).to(examples.labels.device)
        logits = network(rows).unflatten(0, (len(positions), -1))
        return example_losses((logits * examples.weight[chosen]).sum(1), examples.labels[chosen])

    def labels(self, private: PrivatePart, *, sources: IntArray, picks: Array | None = None, **inputs: Any) -> IntArray:
        """Of the sources; none where a coin failed."""
        examples = self._examples(private, sources, picks)
        name = (self, "labels", id(sources))
        known: IntArray | None = private.recall(name)
        return private.keep(name, examples.labels.cpu().numpy()) if known is None else known

    def _examples(self, private: PrivatePart, sources: IntArray, picks: Array | None) -> _Examples:
        name = (self, id(sources), id(picks))
        known: _Examples | None = private.recall(name)
        return private.keep(name, self._make_examples(private, sources, picks)) if known is None else known

    def _make_examples(self, private: PrivatePart, sources: IntArray, picks: Array | None) -> _Examples:
        taken = self.sample.take(private)
        own = checked_positions(sources, self.num_examples, len(taken.ids))
        if picks is None:
            slots = Slots(own[:, None], np.ones((len(own), 1)))
        else:
            slots = self.slots(own, _checked_picks(picks, len(own)), len(taken.ids))
        return _Examples(
            feature_tensor(taken.features(private.graph), private.device),
            on_device(private, taken.labels(private.graph)[own]),
            slots.positions,
            on_device(private, slots.weight.astype(np.float32)).unsqueeze(-1),
            (sources, picks),
        )


@dataclass(frozen=True)
class PickedRowSteps(RowSteps):
    """Rows in which the own node has ``own_weight`` and at most ``users`` rows beside its own use any one node.

    Guarantee. *Neighbours*: any change of one node's record and edges, on every basis: no edge is read.
    *Bound*: sources are different positions, so a node has one row of its own; picks are released values, and
    capping each position at ``users`` rows (:func:`cap_users`) reads nothing else, so for *every* value of them one
    unit stands in its own row and at most ``users`` others. An example reads features of its slots and the label of
    its source, hence a step sees at most users + 1 changed terms, the own one being zero where the node is null (no
    label: loss 0). *Edge cases*: ``users=0`` reads own nodes alone, whatever is picked; a pick that is not a number or
    out of range is brought into range, with weight zero if its weight is not a positive number; an id outside the range
    stands in no row; with a secret sample, a node that lost its coin has zero features and no label.
    """

    proof: ClassVar[str] = PROVED_HERE

    users: int
    own_weight: float

    def touch(self) -> Touch:
        """A node's own row, and the rows that may use it."""
        if self.users == 0:
            return Touch(1, change_of(self.level), "a node stands in its own row alone, whose gradient is clipped")
        why = f"a node stands in its own row and, once picks are released and capped, in at most {self.users} others"
        return Touch(self.users + 1, change_of(self.level), why)

    def slots(self, sources: IntArray, picks: Array, size: int) -> Slots:
        """The own node at ``own_weight``, and picked others sharing the rest by weight."""
        if size == 1:  # nobody else can be picked
            return Slots(sources[:, None], np.ones((len(sources), 1)))
        others = positions_of(read_candidates(picks, size - 1), sources)
        weight = np.clip(np.nan_to_num(picks[..., 1]), 0.0, LARGEST_WEIGHT)
        kept = np.where(cap_users(others, weight, self.users), weight, 0.0)
        total = kept.sum(axis=1, keepdims=True)
        shares = np.divide((1 - self.own_weight) * kept, total, out=np.zeros_like(kept), where=total > 0)
        own = sources[:, None]
        index = np.concatenate([own, np.where(shares > 0, others, own)], axis=1)
        mine = np.where(total > 0, self.own_weight, 1.0)
        return Slots(index, np.concatenate([mine, shares], axis=1))


@dataclass(frozen=True)
class PublishedRowSteps(RowSteps):
    """Rows as the DPAR paper has them: as picked, every column scaled down to an ℓ1 norm of at most ``column_norm``.

    Guarantee: what is true, not what the paper claims: one unit may stand in every row, so all terms may change.
    """

    proof: ClassVar[str] = PROVED_HERE

    column_norm: float

    def touch(self) -> Touch:
        """Every row."""
        why = "a hub can stand in every row: the norm of a column bounds no count of rows"
        return Touch(self.num_examples, "replace", why)

    def slots(self, sources: IntArray, picks: Array, size: int) -> Slots:
        """The picked positions; values keep their sign, as in the paper."""
        picked, weight = read_candidates(picks, size), np.nan_to_num(picks[..., 1])
        with np.errstate(over="ignore"):  # a column whose sum overflows is scaled to zero
            totals = np.bincount(picked.ravel(), weights=np.abs(weight).ravel(), minlength=size)
        factor = self.column_norm / np.maximum(totals, self.column_norm)
        return Slots(picked, weight * factor[picked])


def read_candidates(picks: Array, candidates: int) -> IntArray:
    """The candidates of an answer, whatever came back: anything else is brought into range."""
    return np.asarray(np.clip(np.nan_to_num(picks[..., 0]), 0, candidates - 1), dtype=np.int64)


def cap_users(columns: IntArray, weight: FloatArray, users: int) -> BoolArray:
    """For each column, its ``users`` largest positive weights (the first of equals)."""
    flat, size = columns.ravel(), weight.ravel()
    order = np.lexsort((-size, flat))
    _, start = np.unique(flat[order], return_index=True)
    begins = np.zeros(len(flat), dtype=np.int64)
    begins[start] = start
    rank = np.arange(len(flat)) - np.maximum.accumulate(begins)
    keep = np.zeros(len(flat), dtype=np.bool_)
    keep[order] = rank < users
    return (keep & (size > 0)).reshape(columns.shape)


def _checked_picks(picks: Array, rows: int) -> FloatArray:
    """An answer of the right shape, in double precision."""
    given = np.asarray(picks, dtype=np.float64)
    if given.ndim != 3 or given.shape[0] != rows or given.shape[2] != 2:
        raise PlanViolationError(f"picks must be a candidate and a value for each slot of {rows} rows")
    return given
