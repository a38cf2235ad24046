"""What ``dpar`` trains on: which nodes are sampled, rows of PageRank, who may use whom, and a loss a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from discreet.graph.graph import Graph
from discreet.methods.private_training import IntArray, example_losses, training_ids
from discreet.ops.keyed_hash import hash_pairs
from discreet.ops.sparse import SparseMatrix, feature_tensor, select_rows

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


# -------------------------------------------------------------------- sampling


@dataclass(frozen=True)
class SampledNodes:
    """The id range of a fit, which of its ids the (secret) sample holds, and where the source rows stand in it."""

    ids: IntArray
    alive: BoolArray
    sources: IntArray

    @property
    def source_ids(self) -> IntArray:
        """The node of each row."""
        return self.ids[self.sources]

    def graph(self, graph: Graph) -> sp.csr_array:
        """The edges among sampled nodes of the range, each standing both ways."""
        part = sp.csr_array(graph.adjacency[self.ids][:, self.ids])
        mask = sp.diags_array(self.alive.astype(np.float32))
        kept = sp.csr_array(mask @ part @ mask)
        return kept.maximum(kept.T).tocsr()


def keep_range(graph: Graph, key: bytes, rate: float, rows: int, rng: np.random.Generator) -> SampledNodes:
    """All training ids, each alive with probability ``rate``; rows are a public choice among all of them.

    Guarantee: coins depend on the key and the id alone. Ids, rows and shapes are the same whatever the coins say, so
    a node whose coin fails differs in nothing from a null node: see :mod:`discreet.privacy.node_sampling`.
    """
    ids = training_ids(graph)
    alive = np.ones(len(ids), dtype=np.bool_)
    if rate < 1:
        alive = hash_pairs(key, ids, np.zeros_like(ids)) < np.uint64(int(rate * 2**64))
    return SampledNodes(ids, alive, np.sort(rng.permutation(len(ids))[:rows]))


def draw_subset(graph: Graph, key: bytes, size: int, rows: int, rng: np.random.Generator) -> SampledNodes:
    """``size`` training ids, and ``rows`` of those as sources: what paper 000 does. The range itself is secret."""
    ids = training_ids(graph)
    chosen = np.sort(ids[np.argsort(hash_pairs(key, ids, np.zeros_like(ids)))[:size]])
    return SampledNodes(chosen, np.ones(size, dtype=np.bool_), np.sort(rng.permutation(size)[:rows]))


# -------------------------------------------------------------------- rows


@dataclass(frozen=True)
class Slots:
    """For each row the nodes that it reads and their weights, padded with its own node at weight zero."""

    index: IntArray
    weight: FloatArray


def without_own(rows: sp.csr_array, own: IntArray) -> sp.csr_array:
    """Rows over all candidates but each row's own node: later columns move up by one."""
    entries = rows.tocoo()
    keep = entries.col != own[entries.row]
    row, col = entries.row[keep], entries.col[keep].astype(np.int64)
    col = col - (col > own[row])
    return sp.csr_array((entries.data[keep], (row, col)), shape=(rows.shape[0], rows.shape[1] - 1))


def read_answer(answer: FloatArray, candidates: int) -> tuple[IntArray, FloatArray]:
    """Candidates and non-negative weights, whatever came back: anything else is brought into range."""
    found = np.clip(np.nan_to_num(answer[..., 0]), 0, candidates - 1).astype(np.int64)
    return found, np.clip(np.nan_to_num(answer[..., 1]), 0.0, 1e6)


def own_slots(nodes: SampledNodes) -> Slots:
    """Every row reads its own node only."""
    index = nodes.source_ids[:, None]
    return Slots(index, np.ones(index.shape))


def mixed_slots(nodes: SampledNodes, picked: IntArray, weight: FloatArray, users: int, own_weight: float) -> Slots:
    """The own node at ``own_weight`` and picked others (columns of :func:`without_own`) sharing the rest by weight.

    Guarantee: no node stands in more than ``users`` rows beside its own. Reads the released picks alone.
    """
    own = nodes.sources[:, None]
    others = picked + (picked >= own)
    kept = np.where(cap_users(others, weight, users), weight, 0.0)
    total = kept.sum(axis=1, keepdims=True)
    shares = np.divide((1 - own_weight) * kept, total, out=np.zeros_like(kept), where=total > 0)
    index = np.concatenate([own, np.where(shares > 0, others, own)], axis=1)
    mine = np.where(total > 0, own_weight, 1.0)
    return Slots(nodes.ids[index], np.concatenate([mine, shares], axis=1))


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


def clip_columns(nodes: SampledNodes, picked: IntArray, weight: FloatArray, norm: float) -> Slots:
    """Paper 000: rows as picked, every column scaled down to an ℓ1 norm of at most ``norm``."""
    totals = np.bincount(picked.ravel(), weights=np.abs(weight).ravel(), minlength=len(nodes.ids))
    factor = norm / np.maximum(totals, norm)
    return Slots(nodes.ids[picked], weight * factor[picked])


# -------------------------------------------------------------------- losses


class RowLosses:
    """One loss a row: the label of its source against the weighted sum of the network's outputs on its slots."""

    def __init__(
        self, network: nn.Module, graph: Graph, nodes: SampledNodes, slots: Slots, device: torch.device
    ) -> None:
        self._network, self._slots = network, slots
        self._features = feature_tensor(_masked(graph, nodes), device)
        labels = np.where(nodes.alive, graph.labels[nodes.ids], -1)[nodes.sources]
        self._labels = torch.tensor(labels, device=device)
        self._weight = torch.tensor(slots.weight, dtype=torch.float32, device=device).unsqueeze(-1)

    def __call__(self, positions: IntArray) -> Tensor:
        """The losses of the rows at these positions."""
        index = torch.from_numpy(np.ascontiguousarray(self._slots.index[positions]).reshape(-1))
        sparse = isinstance(self._features, SparseMatrix)
        rows = select_rows(self._features, index if sparse else index.to(self._labels.device))
        chosen = torch.from_numpy(positions).to(self._labels.device)
        logits = self._network(rows).unflatten(0, self._slots.index[positions].shape)
        return example_losses((logits * self._weight[chosen]).sum(1), self._labels[chosen])


def _masked(graph: Graph, nodes: SampledNodes) -> npt.NDArray[np.float32] | sp.csr_array:
    """Features with zero rows where a coin failed."""
    if nodes.alive.all():
        return graph.features
    mask = np.ones(graph.num_nodes, dtype=np.float32)
    mask[nodes.ids[~nodes.alive]] = 0
    if isinstance(graph.features, np.ndarray):
        return np.where(mask[:, None] > 0, graph.features, np.float32(0))
    return sp.csr_array(sp.diags_array(mask) @ graph.features)
