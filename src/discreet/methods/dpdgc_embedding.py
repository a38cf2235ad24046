"""The three ways in which ``dpdgc`` comes by W, and the noisy rows A·W that follow.

*random*: W is drawn, public, and costs nothing. *trained*: DP-Emb of paper 004, noisy clipped gradients of
σ(AW + b)R. *step*: the first step of that training alone, from W = 0. There the residual of a node does not depend
on its row yet, so the gradient Aᵀ·(residuals) is a plain sum over edges, which needs no clipping of rows and moves
far less than a group of clipped examples: √2 for an undirected edge instead of 4 clip norms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.dpsgd import Touch, change_of
from discreet.methods.decoupled_networks import RowEmbedding
from discreet.methods.optimizers import Adam, cosine
from discreet.methods.private_training import GradientTerms, IntArray, PrivateOptions, example_losses, training_ids
from discreet.methods.training import Progress
from discreet.ops.clipping import trainable, views_of
from discreet.ops.propagation import edge_sensitivity, hop_matrix
from discreet.ops.row_embedding import Weight, embed_rows, hashed_rows, rows_bound, short_rows, touched_rows
from discreet.ops.rows import damp_rows, normalize_rows
from discreet.ops.sparse import SparseMatrix
from discreet.privacy import events
from discreet.privacy.levels import EdgeLevel, Level
from discreet.privacy.plan import Stage

if TYPE_CHECKING:
    from discreet.methods.dpdgc import DPDGC

EMBEDDING, STEP, ROWS = "embedding", "embedding step", "rows"
FULL_AT = 3.0
"""A row of the step counts in full from this many standard deviations of its noise (and as many neighbours) on."""

FloatArray = npt.NDArray[np.float64]
_TINY = 1e-12


@dataclass(frozen=True)
class Released:
    """What is known of the graph afterwards: the noisy rows of A·W, over c, and those of the step, with their noise."""

    rows: FloatArray
    rows_noise: float
    step: FloatArray | None = None
    step_noise: float = 0.0

    def damped(self) -> Tensor:
        """What a head reads: rows over their noise, hubs damped."""
        parts = [] if self.step is None else [damp_rows(torch.from_numpy(self.step / (1 + self.step_noise)))]
        parts.append(damp_rows(torch.from_numpy(self.rows / (1 + self.rows_noise))))
        return torch.cat(parts, dim=1).float()

    def principal(self, components: int) -> Tensor:
        """What a network trained by noisy steps reads: the strongest directions of the rows, each over its own spread.

        Noisy gradients have few inputs to spare, and the directions are free: they are read off what was released.
        A direction counts as far as its squares stand out of those that noise alone would bring.
        """
        centred = self.rows - self.rows.mean(axis=0)
        squares, directions = np.linalg.eigh(centred.T @ centred)
        chosen = np.argsort(squares)[::-1][:components]
        n, width = self.rows.shape
        by_noise = (self.rows_noise * (math.sqrt(n) + math.sqrt(width))) ** 2
        top = np.maximum(squares[chosen], _TINY)
        trust = np.sqrt(1 - by_noise / np.maximum(top, by_noise)) if by_noise else 1.0
        spread = np.sqrt(top / n)
        return torch.from_numpy(centred @ directions[:, chosen] * (trust / spread)).float()


# -------------------------------------------------------------------- plan


def embedding_options(model: DPDGC) -> PrivateOptions:
    """How W is trained by noisy steps."""
    return PrivateOptions(
        model.embedding_steps,
        model.embedding_step_size,
        model.embedding_batch,
        "poisson",
        model.clip_norm,
        "flat",
        "adam",
        "cosine",
        0.0,
    )


def embedding_stages(model: DPDGC, public: PublicFacts, level: Level, failure: float | None = None) -> list[Stage]:
    """Training W (where it costs) and the noisy rows, with noise relative to one another as ``split`` says."""
    for_embedding, for_rows, _ = model._shares()
    kind = model._embedding()
    first: list[Stage] = []
    if kind == "trained":
        first = [relative(_training_stage(model, public, level, failure), for_embedding)]
    elif kind == "step":
        first = [relative(_step_stage(public, level), for_embedding)]
    bound = rows_bound(level, row_norm=model.row_norm, failure=failure)
    rows = Stage(
        name=ROWS,
        query="sum of the embedding rows of each node's neighbours",
        mechanism="gaussian",
        sensitivity=bound.sensitivity,
        metric="l2",
        why=bound.why,
        event=events.GaussianDpEvent(1.0),
        shape=(public.num_nodes, model._width(public)),
    )
    return [*first, relative(rows, for_rows)]


def _training_stage(model: DPDGC, public: PublicFacts, level: Level, failure: float | None) -> Stage:
    examples, why = touched_rows(level, failure=failure)
    touch = Touch(examples, change_of(level), why)
    query = "clipped gradients of the embedding on the adjacency rows of training nodes"
    network = _network(model, public, torch.Generator())
    return embedding_options(model).stage(EMBEDDING, query, network, public.num_train, touch)


def _step_stage(public: PublicFacts, level: Level) -> Stage:
    assert isinstance(level, EdgeLevel)
    sensitivity, why = edge_sensitivity("sum", level)
    return Stage(
        name=STEP,
        query="sum of the label residuals of each node's neighbours: the embedding's first gradient",
        mechanism="gaussian",
        sensitivity=sensitivity,
        metric="l2",
        why=why,
        event=events.GaussianDpEvent(1.0),
        shape=(public.num_nodes, public.num_classes),
    )


def relative(stage: Stage, share: float) -> Stage:
    """The stage with the noise at which all its runs together cost about ``share`` of one Gaussian of multiplier 1.

    Exact where the event is Gaussian; for sampled steps a rule of thumb, which calibration makes good: what is
    stated is always what the whole plan costs.
    """
    wanted = math.sqrt(stage.runs / share)
    if isinstance(stage.event, events.GaussianDpEvent):
        return stage.scaled(wanted / stage.event.noise_multiplier)
    rate = stage.parameters["batch_size"] / stage.parameters["examples"]
    return stage.scaled(2 * stage.parameters["touched"] * rate * wanted)


# -------------------------------------------------------------------- fit


def release_rows(
    model: DPDGC,
    graph: Graph,
    curator: Curator,
    residuals: FloatArray | None,
    progress: Progress | None,
    failure: float | None = None,
) -> Released:
    """W, then A·W, through the curator. ``graph`` is bounded as the level asks; ``residuals`` are for *step*."""
    level = model._checked_privacy().level
    kind, c = model._embedding(), model.row_norm
    step, step_noise = None, 0.0
    if kind == "random":
        model.weight_ = random_weight(model, graph.num_nodes)
    elif kind == "trained":
        model.weight_ = _trained_weight(model, graph, curator, progress)
    else:
        assert residuals is not None
        step_noise = curator.plan.stage(STEP).noise_std
        step = curator.measure(STEP, embed_rows(graph.adjacency.T.tocsr(), residuals))
        model.weight_ = step_weight(step, c, step_noise)
    bound = rows_bound(level, row_norm=c, failure=failure)
    noisy = curator.measure(ROWS, embed_rows(graph.adjacency, model.weight_, bound.clip))
    return Released(noisy / c, curator.plan.stage(ROWS).noise_std / c, step, step_noise)


def random_weight(model: DPDGC, num_nodes: int) -> Weight:
    """W from ``random_state`` and node ids."""
    generator = model._generator
    drawn = torch.randint(0, 256, (16,), generator=generator, device=generator.device)
    key = bytes(drawn.cpu().numpy().astype(np.uint8))
    return hashed_rows(num_nodes, model._width(model.public_), key, row_norm=model.row_norm)


def step_weight(step: FloatArray, row_norm: float, noise: float) -> FloatArray:
    """W after one step: rows that stand out of their noise in full, others shorter."""
    return short_rows(torch.from_numpy(step), row_norm, FULL_AT * (1 + noise)).numpy()


def label_residuals(graph: Graph, beliefs: npt.NDArray[np.float32]) -> FloatArray:
    """How a node's label (or, where it has none to train on, what is believed of it) departs from the average node's.

    Rows of norm at most 1. At edge level labels and beliefs are public.
    """
    known = graph.mask("train") & (graph.labels >= 0)
    rows = beliefs.astype(np.float64)
    rows[known] = np.eye(rows.shape[1])[graph.labels[known]]
    return normalize_rows(torch.from_numpy(rows - rows.mean(axis=0))).numpy()


def _network(model: DPDGC, public: PublicFacts, generator: torch.Generator) -> RowEmbedding:
    return RowEmbedding(public.num_nodes, model._width(public), public.num_classes, model.activation, 0.0, generator)


def _trained_weight(model: DPDGC, graph: Graph, curator: Curator, progress: Progress | None) -> FloatArray:
    """DP-Emb: noisy steps, after each of which the rows of W itself are scaled to c."""
    network = model._watched["embedding"] = _network(model, graph.public, model._generator)
    network.constrain(model.row_norm)
    options, stage = embedding_options(model), curator.plan.stage(EMBEDDING)
    examples, divisor = int(stage.parameters["examples"]), float(stage.parameters["batch_size"]) * options.clip_norm
    losses = RowLosses(network, graph, model._device)
    micro_batch = max(1, examples)  # rows are sparse: all of them at once hold no more than the graph does
    query = GradientTerms(network, losses, options.rule(network), examples, micro_batch)
    parameters = trainable(network)
    optimizer = Adam(parameters)
    for run in range(stage.runs):
        noisy = torch.from_numpy(curator.step(EMBEDDING, query)).to(parameters[0])
        rate = options.learning_rate * cosine(run, stage.runs)
        optimizer.step(views_of(noisy / divisor, parameters), rate)
        network.constrain(model.row_norm)
        if progress is not None:
            progress(EMBEDDING, run + 1, stage.runs)
    network.eval()
    weight: FloatArray = network.rows.weight.detach().cpu().double().numpy()
    return weight


class RowLosses:
    """One loss a training node, from its adjacency row and its label."""

    def __init__(self, network: RowEmbedding, graph: Graph, device: torch.device) -> None:
        ids = training_ids(graph)
        self._network = network
        self._rows: SparseMatrix = hop_matrix(graph, "sum", device=str(device)).rows(ids)
        self._labels = torch.tensor(graph.labels, device=device)[torch.from_numpy(ids).to(device)]

    def __call__(self, positions: IntArray) -> Tensor:
        """The losses of the training nodes at these positions."""
        if len(positions) == len(self._labels):
            return example_losses(self._network(self._rows), self._labels)
        chosen = torch.from_numpy(positions).to(self._labels.device)
        return example_losses(self._network(self._rows.rows(positions)), self._labels[chosen])


def shares_note(names: Sequence[str], shares: Sequence[float]) -> str:
    """How the budget is divided, in words."""
    total = sum(shares)
    parts = ", ".join(f"{share / total:.0%} {name}" for name, share in zip(names, shares, strict=True) if share)
    return f"the squared privacy loss is divided by constants: {parts}"
