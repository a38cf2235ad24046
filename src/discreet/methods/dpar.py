"""``dpar``: private PageRank picks whose features a node averages, then noisy clipped gradients (DPAR; paper 000)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor

from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.dpsgd import Touch, change_of, checked_batch_size
from discreet.mechanisms.topk import Selection, clip_entries, clip_norms, structure_survives, top_k_stage
from discreet.methods.base import Arrays
from discreet.methods.dpar_published import PublishedNoise, PublishedSetting, published_noise, published_stages
from discreet.methods.dpar_rows import (
    RowLosses,
    SampledNodes,
    Slots,
    clip_columns,
    draw_subset,
    keep_range,
    mixed_slots,
    own_slots,
    read_answer,
    without_own,
)
from discreet.methods.networks import MLP, module_state, restore_module, widths_of
from discreet.methods.private_training import PrivatelyTrained, train_privately
from discreet.methods.training import Progress, training_rows
from discreet.ops.propagation import hop_matrix
from discreet.ops.sparse import feature_tensor
from discreet.privacy import events
from discreet.privacy.gaussian import gaussian_mu
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.node_sampling import SampledNodesDpEvent, before_sampling
from discreet.privacy.plan import Claim, Stage

SAMPLE, STRUCTURE, NETWORK = "nodes sampled", "structure", "network"
TRIAL_SHARE = 0.5
"""The share at which ``auto`` asks whether structure would survive, and that it takes if so."""
PAPER_RATE, PAPER_SOURCES, PAPER_BATCH = 0.09, 70, 60
"""What paper 000 uses, and as-published mode where nothing is given. (Its split of the budget is not stated.)"""


@dataclass(eq=False, repr=False)
class DPAR(PrivatelyTrained):
    """A network on features whose outputs are averaged over nodes that noisy PageRank picked, at level ``node``.

    Training: of M source rows of personalised PageRank the K largest entries are released with noise; a row's loss is
    that of the averaged outputs of its nodes against its source's label. Prediction averages the network's outputs over
    edges, ``propagation_steps`` times, without noise. At level ``none`` every step takes all rows, and only gradients
    are clipped.

    Parameters
    ----------
    mechanism
        ``em0``: Gumbel noise picks, all with equal weight. ``em1``: the same, with Laplace values. ``gm``: Gaussian
        noise on whole rows.
    accounting
        ``rigorous``, or ``as-published``: the paper's algorithm and formulas, whose ε is a claim that nobody verified
        (see the docs for six reasons why it does not hold). Then None below stands for the paper's setting. (Its
        network has layers=2, hidden=32, clip_norm=1 and learning_rate=0.005.)
    structure_share
        The part of the squared privacy loss (as-published: of ε) that picking gets. 0 reads no edge while training.
        ``auto`` decides from public facts alone: 0 unless a score at its clip bound would stand above the
        largest noise, see :func:`~discreet.mechanisms.topk.structure_survives`.
    top_k
        K, how many nodes beside itself a row picks (as-published: itself or not).
    sources
        M, the number of rows; None for all training nodes (as-published: 70).
    users
        κ: no node stands in more than this many rows beside its own.
    node_rate
        q′, the probability with which a node takes part in training at all; None for 1 (as-published: 0.09).
    own_weight
        The weight of a row's own node; picked ones share the rest.
    alpha, rho, gamma, solver
        Of PageRank, see :func:`discreet.ops.ppr.appr_rows`; ``alpha`` is also the restart of prediction.
    entry_clip, norm_clip
        C₂, to which entries are clipped (``em0``, ``em1``), and C₁, to which rows are (``gm``).
    column_norm
        As-published only: τ, to which the ℓ1 norm of each column is scaled.
    propagation_steps
        P, rounds of averaging over edges in prediction; 0 predicts from features alone.
    prediction
        What is averaged there. ``probabilities``: of classes, of a node itself and its neighbours. ``logits``: as in
        paper 000, of neighbours alone. None for the first (as-published: the second).
    layers, learning_rate
        One linear map by default, at a larger step than other methods take: see the docs for what was compared.

    Guarantee (rigorous). Which nodes a unit may reach through PageRank is unbounded, so picks are charged for all M
    rows: clipped scores bound what any change of any edges does (:mod:`discreet.mechanisms.topk`). What they release is
    then public, and capping each column at κ users reads nothing else: one unit stands in its own row and κ others, so
    a noisy step sees at most κ + 1 changed terms, its own being zero where it is null. This holds for all edges of a
    node, on every basis of the level; its degree bound plays no part. With q′ < 1 all of it runs on a secret Poisson
    sample (:mod:`discreet.privacy.node_sampling`), in which ids that lost stay as null nodes, so that no shape tells.
    """

    method: ClassVar[str] = "dpar"
    levels: ClassVar[tuple[str, ...]] = ("none", "node")

    _: KW_ONLY
    mechanism: Selection = "em0"
    accounting: Literal["rigorous", "as-published"] = "rigorous"
    structure_share: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = "auto"
    top_k: Annotated[int, Field(ge=1)] = 2
    sources: Annotated[int, Field(ge=1)] | None = None
    users: Annotated[int, Field(ge=1)] = 1
    node_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    own_weight: Annotated[float, Field(gt=0, lt=1)] = 0.5
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.25
    rho: Annotated[float, Field(gt=0, lt=1)] = 1e-4
    gamma: Annotated[float, Field(gt=0, le=1)] = 1e-4
    solver: Literal["ista", "push"] = "ista"
    entry_clip: Annotated[float, Field(gt=0, le=1)] = 1e-3
    norm_clip: Annotated[float, Field(gt=0, le=1)] = 1e-2
    column_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    propagation_steps: Annotated[int, Field(ge=0)] = 2
    prediction: Literal["probabilities", "logits"] | None = None
    layers: Annotated[int, Field(ge=1)] = 1
    learning_rate: Annotated[float, Field(gt=0)] = 0.03

    @property
    def covers(self) -> str:
        """The weights: prediction reads edges without noise."""
        return "weights"

    # ---------------------------------------------------------------- public figures

    @property
    def _published(self) -> bool:
        return self.accounting == "as-published"

    def _rate(self) -> float:
        """q′."""
        return (PAPER_RATE if self._published else 1.0) if self.node_rate is None else self.node_rate

    def _range(self, public: PublicFacts) -> int:
        """N, the size of the id range: all training ids, or as-published a sample of fixed size."""
        return max(1, round(self._rate() * public.num_train)) if self._published else public.num_train

    def _candidates(self, public: PublicFacts) -> int:
        return self._range(public) - (0 if self._published else 1)

    def _rows(self, public: PublicFacts) -> int:
        """M."""
        available = self._range(public)
        if self.sources is None:
            return min(PAPER_SOURCES, available) if self._published else available
        if self.sources > available:
            raise ParameterError(
                f"dpar: sources must be at most the {available} nodes to choose from, not {self.sources}"
            )
        return self.sources

    def _batch(self, rows: int, level: Level) -> int | None:
        if isinstance(level, NoPrivacy):
            return None
        if self.batch_size is None and self._published:
            return min(PAPER_BATCH, rows)
        return self.batch_size

    def _share(self, public: PublicFacts, level: Level) -> float:
        """The part for structure, of the squared privacy loss or (as-published) of ε."""
        if self.structure_share != "auto":
            return self.structure_share
        if self._published or isinstance(level, NoPrivacy):
            return TRIAL_SHARE
        privacy = self._checked_privacy()
        inner = before_sampling(privacy.epsilon, privacy.resolve_delta(public.num_nodes), self._rate())
        mu = gaussian_mu(*inner) * math.sqrt(TRIAL_SHARE)
        survives = structure_survives(mu, self.mechanism, self._rows(public), self.top_k, self._candidates(public))
        return TRIAL_SHARE if survives else 0.0

    # ---------------------------------------------------------------- plan

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if len(public) > 1:
            raise UnsupportedError("dpar takes no extra graphs: it predicts on any graph, outside its guarantee")
        if self.noise_multiplier is not None:
            raise UnsupportedError("dpar takes steps, not noise_multiplier: picks and steps share one calibration")
        facts = public[0]
        checked_batch_size(None, facts.num_train)
        if self.top_k > self._candidates(facts):
            raise ParameterError(
                f"dpar: top_k must be at most the {self._candidates(facts)} nodes to pick from, not {self.top_k}"
            )
        share, rows = self._share(facts, level), self._rows(facts)
        touch = self._touch(share, rows, level)
        training = self._training(facts, rows, touch, level)
        structure = [self._structure_stage(facts, rows, share, level)] if share > 0 else []
        if self._published and not isinstance(level, NoPrivacy):
            noise = self._published_noise(facts)
            return [*self._sampling_stage(level), *published_stages(noise, structure, training, self.top_k)]
        training = training.scaled(_relative(training, touch) / math.sqrt(1 - share))
        return [*self._sampling_stage(level), *structure, training]

    def _touch(self, share: float, rows: int, level: Level) -> Touch:
        if self._published:
            return Touch(rows, "replace", "a hub can stand in every row: the norm of a column bounds no count of rows")
        if share == 0:
            return Touch(1, change_of(level), "a node stands in its own row alone, whose gradient is clipped")
        why = f"a node stands in its own row and, once picks are released and capped, in at most {self.users} others"
        return Touch(self.users + 1, change_of(level), why)

    def _training(self, facts: PublicFacts, rows: int, touch: Touch, level: Level) -> Stage:
        options = replace(self._options(), batch_size=self._batch(rows, level))
        query = "clipped gradients of the network on rows of picked nodes"
        return options.stage(NETWORK, query, self._network(facts, torch.Generator()), rows, touch)

    def _sampling_stage(self, level: Level) -> list[Stage]:
        if isinstance(level, NoPrivacy) or (self._rate() == 1 and not self._published):
            return []
        return [
            Stage(
                name=SAMPLE,
                query="which nodes take part",
                mechanism="node-sampling",
                sensitivity=1.0,
                metric="rows",
                why="a node that is not sampled is null to all that follows",
                event=events.NoOpDpEvent() if self._published else SampledNodesDpEvent(self._rate()),
                shape=(),
                parameters={"noise_std": 0.0, "probability": self._rate()},
            )
        ]

    def _clip(self, level: Level) -> float:
        if isinstance(level, NoPrivacy):
            return 1.0
        return self.norm_clip if self.mechanism == "gm" else self.entry_clip

    def _structure_stage(self, facts: PublicFacts, rows: int, share: float, level: Level) -> Stage:
        return top_k_stage(
            STRUCTURE,
            f"the {self.top_k} largest entries of each of {rows} rows of personalised PageRank",
            self.mechanism,
            rows=rows,
            candidates=self._candidates(facts),
            picks=self.top_k,
            clip=self._clip(level),
            cost=share,
        )

    def _network(self, public: PublicFacts, generator: torch.Generator) -> MLP:
        widths = widths_of(public.num_features, self.hidden, self.layers, public.num_classes)
        return MLP(widths, self.activation, 0.0, generator)

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        notes = [
            "prediction reads edges and neighbours' features without noise: weights are covered, predictions are not"
        ]
        if isinstance(level, NoPrivacy) or self._published:
            return notes
        share = self._share(public, level)
        notes.append("all edges of a node are protected, and the degree bound of the level plays no part")
        if share == 0 and self.structure_share == "auto":
            notes.append(
                "structure_share auto: noise would drown PageRank at this budget, so training reads no edge and all of "
                "the budget goes to gradients"
            )
        elif share > 0:
            notes.append(
                f"the squared privacy loss is divided by constants: {share:.0%} picks, {1 - share:.0%} gradients"
            )
        return notes

    # ---------------------------------------------------------------- as published

    def _published_noise(self, facts: PublicFacts) -> PublishedNoise:
        privacy, rows = self._checked_privacy(), self._rows(facts)
        delta = privacy.resolve_delta(facts.num_nodes)
        if delta >= self._rate():
            raise ParameterError(f"dpar: delta must be below node_rate, {self._rate()}, not {delta}")
        setting = PublishedSetting(
            privacy.epsilon,
            delta,
            self._rate(),
            self._share(facts, privacy.level),
            self._range(facts),
            rows,
            self.top_k,
            self._batch(rows, privacy.level) or rows,
            self.steps,
            self.column_norm,
        )
        return published_noise(setting, self.mechanism)

    def _claim(self, public: Sequence[PublicFacts], level: Level) -> Claim | None:
        if not self._published or isinstance(level, NoPrivacy):
            return None
        return Claim(self._checked_privacy().epsilon, "paper 000, theorems 1 to 3 as printed")

    # ---------------------------------------------------------------- fit

    def _learn(self, graphs: Sequence[Graph], curator: Curator, progress: Progress | None) -> None:
        graph, level = graphs[0], self._checked_privacy().level
        if isinstance(level, NoPrivacy):
            training_rows(graph)  # where labels are public, an error without any
        nodes = self._sampled(graph, curator)
        self.network_ = self._watched["network"] = self._network(self.public_, self._generator)
        self.row_ids_ = nodes.source_ids
        self.picks_: npt.NDArray[np.int64] | None = None
        slots = own_slots(nodes)
        if any(stage.name == STRUCTURE for stage in curator.plan.stages):
            slots = self._picked(nodes, curator.measure(STRUCTURE, self._scores(graph, nodes, level)))
        losses = RowLosses(self.network_, graph, nodes, slots, self._device)
        train_privately(
            self.network_, losses, curator, NETWORK, self._options(), compute=self.compute, progress=progress
        )

    def _sampled(self, graph: Graph, curator: Curator) -> SampledNodes:
        seed = int(torch.randint(2**31 - 1, (1,), generator=self._generator, device=self._generator.device))
        rng, rows = np.random.default_rng(seed), self._rows(self.public_)
        secret = any(stage.name == SAMPLE for stage in curator.plan.stages)
        key = curator.key(SAMPLE) if secret else rng.bytes(16)
        if self._published:
            return draw_subset(graph, key, self._range(self.public_), rows, rng)
        return keep_range(graph, key, self._rate(), rows, rng)

    def _scores(self, graph: Graph, nodes: SampledNodes, level: Level) -> Any:
        """PageRank rows within the clip bounds of the plan."""
        from discreet.ops.ppr import appr_rows  # numba, late: only rows need it

        threads = torch.get_num_threads()
        rows = appr_rows(
            nodes.graph(graph),
            nodes.sources,
            alpha=self.alpha,
            rho=self.rho,
            gamma=self.gamma,
            solver=self.solver,
            threads=threads,
        )
        if not self._published:
            rows = without_own(rows, nodes.sources)
        return (clip_norms if self.mechanism == "gm" else clip_entries)(rows, self._clip(level))

    def _picked(self, nodes: SampledNodes, answer: npt.NDArray[np.float64]) -> Slots:
        if self._published:
            # the paper's values keep their sign
            found, _ = read_answer(answer, len(nodes.ids))
            slots = clip_columns(nodes, found, np.nan_to_num(answer[..., 1]), self.column_norm)
            self.picks_ = slots.index
            return slots
        found, weight = read_answer(answer, len(nodes.ids) - 1)
        self.picks_ = nodes.ids[found + (found >= nodes.sources[:, None])]
        return mixed_slots(nodes, found, weight, self.users, self.own_weight)

    # ---------------------------------------------------------------- predict

    def _uncovered(self, graph: Graph, audience: str) -> str | None:
        return "a prediction reads edges and the features of neighbours; the guarantee covers the weights alone"

    @torch.no_grad()
    def _probabilities(self, graph: Graph) -> npt.NDArray[np.float32]:
        logits: Tensor = self.network_(feature_tensor(graph.features, self._device))
        if self.prediction == "logits" or (self.prediction is None and self._published):
            return torch.softmax(self._averaged_logits(logits, graph), dim=1).cpu().numpy()
        return self._averaged_probabilities(torch.softmax(logits, dim=1), graph).cpu().numpy()

    def _averaged_probabilities(self, own: Tensor, graph: Graph) -> Tensor:
        """P steps of Q ← (1 − α)D⁻¹(A + I)Q + αQ₀, which stay probabilities."""
        hop = hop_matrix(graph, "mean", self_loops=True, device=str(self._device))
        rows = own
        for _ in range(self.propagation_steps):
            rows = (1 - self.alpha) * (hop @ rows) + self.alpha * own
        return rows

    def _averaged_logits(self, logits: Tensor, graph: Graph) -> Tensor:
        """P steps of Q ← (1 − α)D⁻¹AQ + αH (paper 000, equation 4); a node that nothing reaches keeps its own row."""
        hop = hop_matrix(graph, "mean", device=str(self._device))
        reached = torch.from_numpy(graph.in_degree() > 0).to(logits.device).unsqueeze(1)
        rows = logits
        for _ in range(self.propagation_steps):
            rows = torch.where(reached, (1 - self.alpha) * (hop @ rows) + self.alpha * logits, logits)
        return rows

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        return module_state("network", self.network_)

    def _restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        self.network_ = restore_module("network", self._network(self.public_, self._generator), state)


def _relative(training: Stage, touch: Touch) -> float:
    """The factor at which all steps together cost about as much as one Gaussian of multiplier 1."""
    if isinstance(training.event, events.GaussianDpEvent):
        return math.sqrt(training.runs) / training.event.noise_multiplier
    rate = training.parameters["batch_size"] / training.parameters["examples"]
    return 2 * touch.examples * float(rate) * math.sqrt(training.runs)
