"""Ego-nets as padded index arrays: who sends to a node in one or two hops, bounded in memory at hubs.

The graph comes out of :mod:`discreet.ops.degrees`, which bounds how many examples one node can touch
(``queries.reach``); the cap on senders here only bounds memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from discreet.arrays import BoolArray, IntArray
from discreet.errors import ParameterError
from discreet.graph.clean import Features
from discreet.graph.graph import Graph
from discreet.ops.degrees import rank_by_hash


@dataclass(frozen=True)
class EgoNets:
    """One row per example; slot 0 is the centre, then its senders, then the senders of each of those in turn.

    ``index`` holds node ids and ``mask`` says where something is; where nothing is the index is the number of nodes,
    which is nobody's id, so that no record stands in a slot that is not its own (see :func:`with_nobody`). With K
    senders per node, the slots of hop 1 are 1 … K and the senders of slot j are 1 + jK … (j + 1)K.
    """

    index: IntArray
    mask: BoolArray
    fan_in: int
    hops: int

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.index)

    @property
    def slots(self) -> int:
        """Slots per example."""
        return int(self.index.shape[1])

    def at(self, positions: IntArray) -> EgoNets:
        """The ego-nets of these examples."""
        return EgoNets(self.index[positions], self.mask[positions], self.fan_in, self.hops)

    def mask_on(self, device: torch.device) -> Tensor:
        """Where something is, on a device."""
        return torch.from_numpy(self.mask).to(device)


@dataclass(frozen=True)
class EgoTensors:
    """:class:`EgoNets` on a device, found there by positions that lie on it too."""

    index: Tensor
    mask: Tensor
    fan_in: int

    @classmethod
    def of(cls, nets: EgoNets, nobody: int, device: str | torch.device) -> EgoTensors:
        """Those ego-nets, and behind them one that is empty; ``nobody`` is what stands in its slots."""
        index = np.concatenate([nets.index, np.full((1, nets.slots), nobody)])
        mask = np.concatenate([nets.mask, np.zeros((1, nets.slots), dtype=np.bool_)])
        return cls(torch.from_numpy(index).to(device), torch.from_numpy(mask).to(device), nets.fan_in)

    def at(self, positions: Tensor) -> EgoTensors:
        """The ego-nets of these examples."""
        return EgoTensors(self.index[positions], self.mask[positions], self.fan_in)

    def mask_on(self, device: torch.device) -> Tensor:
        """Where something is."""
        return self.mask.to(device)


@dataclass(frozen=True)
class SenderTable:
    """For every node its senders in at most ``fan_in`` slots, padded; the last row is nobody's, and empty.

    Guarantee. Let G and G′ be two *bounded* graphs (see :func:`degrees.bound_degrees`) of neighbours, under one
    key. The ego-net of a node is the same in both, slot by slot, unless the unit's node reaches it along at
    most ``hops`` entries of G or of G′. For a receiver's K kept senders are those of smallest hash among its
    own senders, so a list changes only where a sender came or went, and the unit's node is the only sender
    whose entries differ; a list that changed sits in ego-nets that the unit's node reaches through it. So
    the number of examples touched is that of ``queries.reach.touched_examples``, with or without this cap.
    (For noisy sums the cap is *not* neutral: the sender that moves up doubles what a row moves by.)
    """

    index: IntArray
    mask: BoolArray

    @property
    def fan_in(self) -> int:
        """Slots per node."""
        return int(self.index.shape[1])

    def ego_nets(self, centres: npt.ArrayLike, hops: int) -> EgoNets:
        """The ego-nets of these nodes."""
        if hops not in (0, 1, 2):
            raise ParameterError(f"ego-nets of 0, 1 or 2 hops are supported, not {hops!r}")
        centre = np.asarray(centres, dtype=np.int64).reshape(-1, 1)
        index, mask = [centre], [np.ones(centre.shape, dtype=np.bool_)]
        for _ in range(hops):
            last = index[-1]
            index.append(self.index[last].reshape(len(centre), -1))
            mask.append(self.mask[last].reshape(len(centre), -1))
        return EgoNets(np.concatenate(index, axis=1), np.concatenate(mask, axis=1), self.fan_in, hops)


def sender_table(graph: Graph, fan_in: int, key: bytes) -> SenderTable:
    """Every node's senders, at most ``fan_in`` of smallest keyed hash, in rising order of id.

    ``fan_in`` is a public constant: taking the largest degree of the data would put a private figure into
    every shape that follows.
    """
    if isinstance(fan_in, bool) or not isinstance(fan_in, int | np.integer) or fan_in < 1:
        raise ParameterError(f"fan_in must be a whole number of at least 1, not {fan_in!r}")
    sender, receiver = graph.edges()
    crowded = graph.in_degree() > fan_in
    if crowded.any():
        at = np.flatnonzero(crowded[receiver])
        late = rank_by_hash(receiver[at], sender[at], key, swap=True) >= fan_in
        sender, receiver = np.delete(sender, at[late]), np.delete(receiver, at[late])
    return _padded(sender, receiver, graph.num_nodes, fan_in)


def _padded(sender: IntArray, receiver: IntArray, num_nodes: int, fan_in: int) -> SenderTable:
    """Entries sorted by (receiver, sender) laid out in rows of ``fan_in`` slots; nobody sends to nobody."""
    counts = np.bincount(receiver, minlength=num_nodes)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    slot = np.arange(len(sender)) - np.repeat(starts, counts)
    index = np.full((num_nodes + 1, fan_in), num_nodes, dtype=np.int64)
    mask = np.zeros((num_nodes + 1, fan_in), dtype=np.bool_)
    index[receiver, slot] = sender
    mask[receiver, slot] = True
    return SenderTable(index, mask)


def with_nobody(features: Features) -> Features:
    """The features with one more row, of zeros: what the slots that are empty read.

    Guarantee: no row of an example depends on a record that does not stand in its ego-net, whatever the others hold.
    (Another's record in an empty slot would: zero times what overflows is not zero.)
    """
    if isinstance(features, np.ndarray):
        return np.concatenate([features, np.zeros_like(features, shape=(1, features.shape[1]))])
    indptr = np.append(features.indptr, features.indptr[-1:])
    shape = (features.shape[0] + 1, features.shape[1])
    return sp.csr_array((features.data, features.indices, indptr), shape=shape)
