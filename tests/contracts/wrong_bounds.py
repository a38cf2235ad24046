"""Wrong bounds, each planted in one query by a small patch, with the case of the contract that must find it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from discreet.arrays import FloatArray
from discreet.ops import rows
from discreet.privacy.levels import NodeLevel
from discreet.privacy.query import Bound, Query
from discreet.queries import (
    adjacency_row_steps,
    adjacency_rows,
    class_counts,
    class_degrees,
    confusion,
    edge_cells,
    ego_net_outputs,
    ego_nets,
    evidence,
    gradients,
    links,
    picked_rows,
    picks,
    propagated,
    reports,
    residual_sums,
    sums,
)
from discreet.queries.gradients import Touch

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclasses.dataclass(frozen=True)
class WrongBound:
    """``case`` is the case of ``tests.contracts.queries`` that must find it, as text."""

    name: str
    case: str
    plant: Plant

    def __str__(self) -> str:
        return self.name


WRONG_BOUNDS: list[WrongBound] = []


def wrong(name: str, case: str) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        WRONG_BOUNDS.append(WrongBound(name, case, plant))
        return plant

    return register


def _scale_bound(patch: pytest.MonkeyPatch, query: type[Query], factor: float) -> None:
    real: Any = query.bound

    def scaled(self: Any) -> Bound:
        found = real(self)
        return dataclasses.replace(found, sensitivity=factor * found.sensitivity)

    patch.setattr(query, "bound", scaled)


def _as_given(rows: Any, *_: Any) -> Any:
    """In the place of a projection."""
    return rows


OWNED_NULL, OWNED_REPLACE = "node:owned,max_degree=2,change=null", "node:owned,max_degree=2,change=replace"
PROMISED_NULL, PROMISED_REPLACE = (f"node:promised,max_degree=3,change={change}" for change in ("null", "replace"))

# -------------------------------------------------------------------- sums over neighbours


@wrong("an undirected edge counted once", "sum, hop 1 at edge")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "edge_sensitivity", lambda *_: Bound(1.0, "l2", "one edge"))


@wrong("nine tenths of the root of the degree", f"sum, hop 1 at {OWNED_NULL}")
def _(patch: pytest.MonkeyPatch) -> None:
    _scale_bound(patch, sums.NeighbourSums, 0.9)


@wrong("a replaced record counted as one that left", f"sum, hop 1 at {OWNED_REPLACE}")
def _(patch: pytest.MonkeyPatch) -> None:
    real = sums.hop_sensitivity

    def as_null(level: NodeLevel, **options: Any) -> tuple[float, str]:
        return real(dataclasses.replace(level, change="null"), **options)

    patch.setattr(sums, "hop_sensitivity", as_null)


@wrong("a mean that is said to move half as far as a sum", "mean, hop 1 at edge")
def _(patch: pytest.MonkeyPatch) -> None:
    _scale_bound(patch, sums.NeighbourSums, 0.5)


@wrong("rows that are not scaled", "sum, hop 1 at edge:directed")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "normalize_rows", _as_given)


@wrong("rows that are no numbers", "mean, hop 1 at edge:directed")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "finite_rows", _as_given)


@wrong("a mean over weights", "sum, hop 1, weighted at edge:directed")
def _(patch: pytest.MonkeyPatch) -> None:
    def mean(graph: Any, rows: FloatArray, *_: Any) -> FloatArray:
        total = np.maximum(graph.weighted_adjacency.sum(axis=1), 1e-12)
        return np.asarray((graph.weighted_adjacency @ rows) / total[:, None], dtype=np.float64)

    patch.setattr(sums, "neighbour_sums", mean)


@wrong("sums that are not clipped on a promise", f"sum, hop 1 at {PROMISED_NULL}")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sums, "clip_rows", _as_given)


@wrong("the own row left out on a promise", f"sum, hop 2 at {PROMISED_NULL}")
def _(patch: pytest.MonkeyPatch) -> None:
    real = sums.NeighbourSums._bound_at_node_level

    def others_alone(self: Any, level: Any) -> Bound:
        base, why = sums.hop_sensitivity(level, hop=self.hop, aggregation=self.aggregation)
        return dataclasses.replace(real(self, level), sensitivity=base, why=why)

    patch.setattr(sums.NeighbourSums, "_bound_at_node_level", others_alone)


# -------------------------------------------------------------------- adjacency rows


@wrong("adjacency rows without the root of two", "adjacency rows, norm 1, dense at edge")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(adjacency_rows, "edge_sensitivity", lambda *_: Bound(1.0, "l2", "as published"))


@wrong("weights that are not cut", f"adjacency rows, norm 1, dense at {OWNED_NULL}")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(adjacency_rows, "cut_rows", _as_given)


@wrong("residuals that are not cut", "residual sums at edge")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(residual_sums, "cut_rows", _as_given)


@wrong("replaced rows counted as published", f"adjacency row steps, batch None at {PROMISED_REPLACE}")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(adjacency_row_steps, "touched_rows", lambda level, **_: (level.max_degree + 1, "as published"))


@wrong("a class that counts for more than its clipped gradient", "own records, batch None at neighbor:2")
def _(patch: pytest.MonkeyPatch) -> None:
    real = gradients.GradientSteps._shares

    def beyond(self: Any, *given: Any) -> Any:
        shares = real(self, *given)
        return None if shares is None else shares * 3

    patch.setattr(gradients.GradientSteps, "_shares", beyond)


@wrong("a new label counted once", f"class counts at {OWNED_REPLACE}")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(class_counts, "is_null", lambda level: True)


# -------------------------------------------------------------------- cells


@wrong("half of a cell", "cells, lap-graph at edge:directed")
def _(patch: pytest.MonkeyPatch) -> None:
    _scale_bound(patch, edge_cells.EdgeCells, 0.5)


@wrong("counts of one end alone", "class degrees, laplace at edge")
def _(patch: pytest.MonkeyPatch) -> None:
    _scale_bound(patch, class_degrees.ClassDegrees, 0.5)


# -------------------------------------------------------------------- steps


@wrong("one example too few", f"ego-net steps, sage, 1 hops, batch None at {OWNED_NULL}")
def _(patch: pytest.MonkeyPatch) -> None:
    real = ego_nets.touched_examples

    def fewer(*given: Any, **more: Any) -> tuple[int, str]:
        count, why = real(*given, **more)
        return count - 1, why

    patch.setattr(ego_nets, "touched_examples", fewer)


@wrong("an output that goes to zero and not to its negative", f"ego-net outputs, gcn, 1 hops at {OWNED_REPLACE}")
def _(patch: pytest.MonkeyPatch) -> None:
    _scale_bound(patch, ego_net_outputs.EgoNetOutputs, 0.5)


@wrong("a null node that still has a gradient", "own records, batch None at node:owned,change=null")
def _(patch: pytest.MonkeyPatch) -> None:
    def leaking(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, labels.clamp_min(0), reduction="none")

    patch.setattr(gradients, "example_losses", leaking)


@wrong("picked nodes in any number of rows",
       "rows of picked nodes, 1 users, rate 1.0, batch None at node:owned,max_degree=3,change=null")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(picked_rows, "cap_users", lambda columns, weight, users: weight > 0)


@wrong("the norm of a column taken for a count of rows",
       "rows of picked nodes, published, batch None at node:owned,change=null")  # fmt: skip
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(picked_rows.PublishedRowSteps, "touch", lambda self: Touch(1, "replace", "as published"))


@wrong("scores that are not clipped", "PageRank rows, em1, rate 1.0 at node:owned,max_degree=3,change=null")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(picks, "clip_entries", _as_given)


# -------------------------------------------------------------------- propagation


def _halve_psi(patch: pytest.MonkeyPatch) -> None:
    real = propagated.restart_sensitivity
    patch.setattr(propagated, "restart_sensitivity", lambda *given: real(*given) / 2)


wrong("half of what propagated rows move", "propagated rows, steps (1,), all nodes at edge")(_halve_psi)
wrong("half of what moments of labels move", "moments of smoothed labels, steps (1,), all nodes at edge")(_halve_psi)


@wrong("propagated rows that are not cut", "propagated rows, steps (inf,), training nodes at edge")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(propagated, "cut_rows", _as_given)


# -------------------------------------------------------------------- links and evidence


@wrong("half of a table of links", "links between classes at edge")
def _(patch: pytest.MonkeyPatch) -> None:
    _scale_bound(patch, links.LinkTable, 0.5)


@wrong("rows of a table that are not cut", "links between classes at edge:directed")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rows, "cut_rows", _as_given)  # on their way to the lattice


@wrong("received labels that are not clipped", f"links between labels at {OWNED_NULL}")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(links, "cut_rows", _as_given)


@wrong("messages of both ends counted for one", "received messages at edge")
def _(patch: pytest.MonkeyPatch) -> None:
    _scale_bound(patch, evidence.ReceivedMessages, 2**-0.5)


@wrong("messages that are not cut", "received messages at edge:directed")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rows, "cut_rows", _as_given)


@wrong("a new label counted as a lost one", f"received labels, receivers all, rows of norm None at {OWNED_REPLACE}")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(evidence, "is_null", lambda level: True)


# -------------------------------------------------------------------- reports


@wrong("a report that looks at another label", "reports of labels, -1 where not asked at local")
def _(patch: pytest.MonkeyPatch) -> None:
    real = reports.LabelReports.answer

    def with_the_next(self: Any, private: Any, **inputs: Any) -> np.ndarray:
        own = real(self, private, **inputs)
        return np.where(own < 0, np.roll(own, 1), own) + 0.5 * np.roll(own, 1)

    patch.setattr(reports.LabelReports, "answer", with_the_next)


@wrong("a report in units of all records", "reports of features, multi-bit at local")
def _(patch: pytest.MonkeyPatch) -> None:
    real = reports.FeatureReports.answer

    def ranged(self: Any, private: Any, **inputs: Any) -> np.ndarray:
        own = np.asarray(real(self, private, **inputs))
        return own / np.abs(own).max()

    patch.setattr(reports.FeatureReports, "answer", ranged)


# -------------------------------------------------------------------- counts of labels against predictions


@wrong("a replaced record that is said to leave one cell alone", f"confusion table at {OWNED_REPLACE}")
def _(patch: pytest.MonkeyPatch) -> None:
    _scale_bound(patch, confusion.ConfusionTable, 1 / np.sqrt(2))


@wrong("scores of several classes counted as one", f"scores by class at {OWNED_NULL}")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(confusion.ScoreTable, "_tables", lambda self: 1)
