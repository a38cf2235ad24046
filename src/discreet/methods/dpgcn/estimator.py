"""``dpgcn``: a graph network on a noisy copy of the graph (Wu, Long, Zhang and Li 2022, "LinkTeller").

The curator releases a noisy graph once. Whatever is trained on it and predicted with it, at any depth, is computed from
what was released, and costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from discreet.arrays import Array, Arrays, IntArray
from discreet.errors import UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import GraphKeys, PublicPart
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.noisy_graph import MOST_EPSILON, flip_scale
from discreet.methods import dpgcn
from discreet.methods.baselines.convolution import ConvolutionClassifier
from discreet.methods.outlook import ENOUGH, OPINION, SPREAD, Outlook, separation
from discreet.methods.stored_arrays import stored_ids
from discreet.ops.cells import Cells
from discreet.ops.memory import GIB, free_bytes
from discreet.ops.sparse import Aggregation, SparseMatrix, hop_matrix, normalized
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Plan, Stage
from discreet.queries.edge_cells import FLIPPED, EdgeCells, FlippedCells, LargestCells
from discreet.training.descent import Progress

BYTES_OF_A_CELL = 80
"""Of an edge of the noisy graph, at the peak: 61 were measured with SAGE on PubMed at ε = 1 (52 million edges, 3.2 GB),
and GCN holds a copy with self-loops."""
RARELY_MORE = 14
"""Scales of Laplace noise: more of them come once in two million draws."""
WORTH_ASKING = GIB
"""Below this nothing is refused."""
MOST_FALSE_EDGES = 1_000_000
"""Up to here EdgeRand is the default: a fit then takes minutes at most."""


@dataclass(eq=False, repr=False)
class DPGCN(ConvolutionClassifier):
    """A graph network on a noisy copy of the graph, at level ``none`` or ``edge``.

    Parameters
    ----------
    mechanism
        ``lap-graph``: a noisy number of the largest noisy cells of the adjacency matrix, so the copy has about as many
        edges as the graph. ``edge-rand``: every cell is flipped with probability 1/(1 + e^ε), so the copy keeps nearly
        all edges among a great many false ones: about n²/2/(1 + e^ε). None: ``edge-rand`` where that is at most a
        million, ``lap-graph`` elsewhere.
    network
        ``gcn`` (normalised adjacency with self-loops), or ``sage`` (a node's own row beside the mean of the others).
    count_share
        The part of ε that ``lap-graph`` spends on the number of edges.

    Guarantee: edges are read by one query for each graph, ``queries.edge_cells``; the network is trained and evaluated
    on what that released. Weights, noisy graphs and all predictions are covered.
    """

    declaration = dpgcn.DPGCN

    _: KW_ONLY
    mechanism: Literal["lap-graph", "edge-rand"] | None = None
    network: Literal["gcn", "sage"] = "sage"
    count_share: Annotated[float, Field(ge=1e-6, le=0.999)] = 0.01

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        epsilon, graphs = self.checked_privacy().epsilon, len(public)
        each = epsilon if graphs == 1 else epsilon / graphs * (1 - 2.0**-48)  # so that rounding cannot overspend
        flipped = self._flips(public[0], level)
        if flipped and not isinstance(level, NoPrivacy):
            flip_scale(each)  # refuses an ε that EdgeRand has no sampler for
        return [
            Stage.of(stage_name(number), self._query(facts, level, each if flipped else None), graph=number)
            for number, facts in enumerate(public)
        ]

    def _query(self, facts: PublicFacts, level: Level, epsilon: float | None) -> EdgeCells:
        """EdgeRand with this ε, or LapGraph."""
        if epsilon is None:
            return LargestCells(level, facts.num_nodes, facts.directed, self.count_share)
        return FlippedCells(level, facts.num_nodes, facts.directed, epsilon)

    def _flips(self, facts: PublicFacts, level: Level) -> bool:
        """Whether noisy graphs are EdgeRand's: as asked for, or where the graph gets few enough false edges."""
        if self.mechanism is not None or isinstance(level, NoPrivacy):
            return self.mechanism == FLIPPED
        epsilon = self.checked_privacy().epsilon
        return epsilon <= MOST_EPSILON and _false_edges(facts, epsilon) <= MOST_FALSE_EDGES

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if isinstance(level, NoPrivacy) or not self._flips(public, level):
            return ()
        false = _false_edges(public, self.checked_privacy().epsilon)
        needed = false * BYTES_OF_A_CELL
        memory = f", and takes about {needed / GIB:,.1f} GiB of memory" if needed > WORTH_ASKING else ""
        return (f"the noisy graph has about {false:,.0f} edges that the graph has not{memory}",)

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """True neighbours tell what features say of them; false ones drown both that and a node's own row."""
        true, false = self._expected_neighbours(plan, public, degree)
        apart = OPINION * separation(true, math.sqrt(SPREAD * false))
        return Outlook(ENOUGH * (1 + true) / false if false else math.inf, apart)

    def _expected_neighbours(self, plan: Plan, public: PublicFacts, degree: float) -> tuple[float, float]:
        """How many of a node's neighbours in the noisy graph are true, and how many are false."""
        query = plan.stages[0].query
        if isinstance(query, FlippedCells):
            return degree * (1 - query.flip_rate), (public.num_nodes - 1) * query.flip_rate
        scale = plan.stages[0].noise_std
        reached = scale * math.log(max(2.0, (public.num_nodes - 1) / (2 * degree)))
        kept = math.exp(-(reached - 1) / scale) / 2 if reached > 1 else 1 - math.exp((reached - 1) / scale) / 2
        return degree * kept, degree * (1 - kept)

    def _pinned(self) -> Mapping[str, Any]:
        """On a few nodes one hundredth of ε leaves nothing of the number of edges, and audits would see no edge."""
        return {} if hasattr(self, "plan_") else {"count_share": 0.5}

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self.keys_ = GraphKeys.of(parts)
        for part, stage in zip(parts, curator.plan.stages, strict=True):
            _check_memory(part.facts, stage)
        self.cells_ = [_noisy_cells(curator.ask(stage_name(number))) for number in range(len(parts))]
        super()._learn(parts, curator, progress)

    @property
    def keeps_own_row(self) -> bool:  # type: ignore[override]
        """Whether a node's own row has weights of its own."""
        return self.network == "sage"

    def _matrix(self, part: PublicPart) -> SparseMatrix:
        """The matrix of a hop: of the noisy copy where the graph has one, in the direction in which that was released.

        The direction of the graph at hand says nothing here: it may have been read off private edges.
        """
        own, device = self.network == "gcn", str(self._device)
        number = self.keys_.find(part)
        directed = part.directed if number is None else self._cells(number).directed
        aggregation: Aggregation = "symmetric" if own and not directed else "mean"
        if number is None:
            return hop_matrix(part, aggregation, self_loops=own, device=device)
        return normalized(
            self._cells(number).adjacency(self.cells_[number]), aggregation, self_loops=own, device=device
        )

    def _cells(self, number: int) -> Cells:
        """What can be an edge of a graph that was asked, by its public facts."""
        facts = (self.public_, *self.extra_public_)[number]
        return Cells(facts.num_nodes, facts.directed)

    def _uncovered(self, part: PublicPart) -> str | None:
        if isinstance(self.checked_privacy().level, NoPrivacy) or self.keys_.find(part) is not None:
            return None
        return (
            "predicting on another graph would read its edges, which no stage paid for: pass it to fit as one of "
            "extra_graphs, so that the plan charges its noisy copy"
        )

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        cells = {f"cells.{number}": found for number, found in enumerate(self.cells_)}
        return {**super()._state(), **cells, **self.keys_.state()}

    def _seen(self) -> Arrays:
        """As many edges as a fit released are ids of cells, so here every cell has a place of its own."""
        edges = {f"cells.{number}": np.zeros(self._cells(number).count) for number in range(len(self.cells_))}
        for number, found in enumerate(self.cells_):
            edges[f"cells.{number}"][found] = 1.0
        return {**super()._seen(), **edges}

    def _restore(self, state: Mapping[str, Array]) -> None:
        super()._restore(state)
        graphs = range(1 + len(self.extra_public_))
        self.keys_ = GraphKeys.restore(state, len(graphs))
        self.cells_ = [stored_ids(state, f"cells.{number}", self._cells(number).count) for number in graphs]


def _false_edges(facts: PublicFacts, epsilon: float) -> float:
    """How many edges that the graph has not EdgeRand is expected to make, were the graph empty."""
    return Cells(facts.num_nodes, facts.directed).count / (1 + math.exp(epsilon))


def stage_name(number: int) -> str:
    """``noisy graph``, or ``extra graph 1 noisy graph`` for a further one."""
    return "noisy graph" if number == 0 else f"extra graph {number} noisy graph"


def _noisy_cells(released: Any) -> IntArray:
    """The cells that are edges now."""
    row = sp.csr_array(released)
    return np.sort(row.indices[row.data > 0])


def _check_memory(facts: PublicFacts, stage: Stage) -> None:
    """Refuse a noisy graph that would not fit, by public facts and what the machine has free."""
    query = stage.query
    if not stage.is_private or not isinstance(query, FlippedCells | LargestCells):
        return
    if isinstance(query, FlippedCells):
        edges, way_out = query.cells.count * query.flip_rate, "mechanism=lap-graph, or a larger epsilon"
        makes = f"EdgeRand on {facts.num_nodes:,} nodes at epsilon {query.epsilon:g} makes about {edges:,.0f} edges"
    else:
        edges, way_out = min(query.cells.count, RARELY_MORE * _count_noise(stage)), "a larger count_share or epsilon"
        makes = f"LapGraph on {facts.num_nodes:,} nodes may make {edges:,.0f} edges by the noise on their number alone"
    needed, free = edges * BYTES_OF_A_CELL, free_bytes()
    if needed > max(free, WORTH_ASKING):
        sizes = f"which take about {needed / GIB:.1f} GiB of memory, and {free / GIB:.1f} GiB are free"
        raise UnsupportedError(f"{makes}, {sizes}: use {way_out}")


def _count_noise(stage: Stage) -> float:
    """The scale of the noise on the number of edges, beside that on cells, which the stage shows."""
    assert isinstance(stage.query, LargestCells)
    share = stage.query.count_share
    return stage.noise_std * (1 - share) / share
