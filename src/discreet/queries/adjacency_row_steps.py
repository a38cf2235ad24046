"""Noisy steps in which an example is a node's adjacency row and its label: how DP-Emb (the DPDGC paper) trains W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from discreet.arrays import IntArray
from discreet.graph.parts import PrivatePart
from discreet.ops.sparse import SparseMatrix, hop_matrix
from discreet.privacy.levels import Level, NeighborLevel
from discreet.privacy.query import PROVED_HERE
from discreet.queries.gradients import GradientSteps, Touch, change_of, example_losses, training_ids, training_labels
from discreet.queries.kept_edges import bounded_graph
from discreet.queries.reach import touched_examples


class _Examples(NamedTuple):
    """What the examples of a fit are made of, on the device: one adjacency row and one label per training node."""

    rows: SparseMatrix
    labels: Tensor

    def at(self, positions: IntArray) -> _Examples:
        """The examples at these positions."""
        if len(positions) == len(self.labels):
            return self
        return _Examples(self.rows.rows(positions), self.labels[torch.from_numpy(positions).to(self.labels.device)])


@dataclass(frozen=True)
class AdjacencyRowSteps(GradientSteps):
    """Clipped gradients of ``network``, which reads adjacency rows of the bounded graph one by one.

    Guarantee: one unit touches the examples of :func:`touched_rows`; see :class:`GradientSteps` for what follows. An
    example reads one adjacency row, with the weights of its edges, one label and released parameters, and no feature.
    """

    proof: ClassVar[str] = PROVED_HERE

    failure: float | None = None

    def touch(self) -> Touch:
        """Rows with an entry that changes, and the unit's own label."""
        examples, why = touched_rows(self.level, failure=self.failure)
        return Touch(examples, change_of(self.level), why)

    def losses(self, private: PrivatePart, positions: IntArray, *, network: nn.Module, **inputs: Any) -> Tensor:
        """Cross-entropy of what the network makes of each training node's adjacency row."""
        examples = self._examples(private)
        rows, labels = self.once(private, "rows", positions, lambda: examples.at(positions))
        return example_losses(network(rows), labels)

    def labels(self, private: PrivatePart, **inputs: Any) -> IntArray:
        """Of the training ids."""
        return training_labels(private)

    def _examples(self, private: PrivatePart) -> _Examples:
        name = ("adjacency rows", self.level)
        known: _Examples | None = private.recall(name)
        if known is not None:
            return known
        ids = training_ids(private)
        rows = hop_matrix(bounded_graph(private, self.level), "sum", device=private.device).rows(ids)
        return private.keep(name, _Examples(rows, torch.tensor(private.graph.labels[ids], device=private.device)))


def touched_rows(level: Level, *, failure: float | None = None) -> tuple[int, str]:
    """How many examples one unit can change when an example is a node's adjacency row and its label, and why.

    Guarantee. An example changes only if an entry of its row does, or its own label. *edge*: one entry stands in one
    row, an undirected edge in two. *node*: as one-hop ego-nets, the unit's own example and D others (null) or 2D
    (replace), whatever the features hold. *neighbor*: no features enter, so a node that keeps its entries touches
    nobody: its own example (the label) and k others; 2·min(k, D) others under the owned cap, where a toggled entry
    may let another in or push one out. DPDGC counts D + 1 for replacement, which two disjoint neighbourhoods break.
    """
    if not isinstance(level, NeighborLevel):
        return touched_examples(level, 1, failure=failure)
    if level.max_degree is None or level.edges == "promised":
        return level.k + 1, f"a node's own example and {level.k} rows with a toggled entry"
    others = 2 * min(level.k, level.max_degree)
    return others + 1, f"a node's own example and at most {others} rows in which a kept entry changes"
