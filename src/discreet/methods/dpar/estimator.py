"""``dpar``: private PageRank picks whose features a node averages, then noisy clipped gradients (DPAR)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field

from discreet.arrays import Array, Arrays, IntArray, SingleArray
from discreet.errors import ParameterError, UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods import dpar
from discreet.methods.as_published import AS_PUBLISHED, Accounting
from discreet.methods.dpar.averaging import average_logits, average_probabilities
from discreet.methods.dpar.published import (
    BATCH_SIZE,
    NODE_RATE,
    SOURCES,
    PublishedNoise,
    PublishedSetting,
    published_noise,
)
from discreet.methods.parameters import (
    Examples,
    Fraction,
    Layers,
    Norm,
    Probability,
    Propagations,
    Rate,
    Restart,
    ScoreClip,
)
from discreet.methods.trained import PrivatelyTrained, WeighsClasses, class_shares
from discreet.ops.sparse import map_rows
from discreet.privacy.coverage import NOTHING
from discreet.privacy.events.gaussian import gaussian_mu
from discreet.privacy.events.node_sampling import before_sampling
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Claim, Stage, split_note
from discreet.queries.gradients import checked_batch_size, planned_parameters
from discreet.queries.pagerank_rows import PageRankRows, positions_of
from discreet.queries.picked_rows import PickedRowSteps, PublishedRowSteps, RowSteps, read_candidates
from discreet.queries.picks import Selection, TopPicks
from discreet.queries.sampled_nodes import SAMPLE, NodeSample, SampledNodes
from discreet.training.descent import Progress, training_rows
from discreet.training.networks import MLP, module_state, restore_module, widths_of
from discreet.training.private import train_privately

STRUCTURE, NETWORK = "structure", "network"
TRIAL_SHARE = 0.5
"""The share at which ``auto`` asks whether structure would survive, and that it takes if so."""


@dataclass(eq=False, repr=False)
class DPAR(WeighsClasses, PrivatelyTrained):
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
        largest noise, see :mod:`~discreet.methods.dpar.estimator`.
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
        the DPAR paper, of neighbours alone. None for the first (as-published: the second).
    layers, learning_rate
        One linear map by default, at a larger step than other methods take: see the docs for what was compared.

    Guarantee (rigorous). Which nodes a unit may reach through PageRank is unbounded, so picks are charged for all M
    rows: clipped scores bound what any change of any edges does (``queries.picks``). What they release is then public,
    and capping each column at κ users reads nothing else: one unit stands in its own row and κ others, so a noisy step
    sees at most κ + 1 changed terms, its own being zero where it is null (``queries.picked_rows``). This holds for all
    edges of a node, on every basis of the level; its degree bound plays no part. With q′ < 1 all of it runs on a secret
    Poisson sample (``queries.sampled_nodes``), in which ids that lost stay as null nodes, so that no shape tells.

    A fitted model also has ``row_ids_``, the nodes of the rows, and ``picks_``, whom each picked (None where nothing is
    picked). As published they are positions in the sample, whose ids are secret.
    """

    declaration = dpar.DPAR

    _: KW_ONLY
    mechanism: Selection = "em0"
    accounting: Accounting = "rigorous"
    structure_share: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = "auto"
    top_k: Examples = 2
    sources: Examples | None = None
    users: Examples = 1
    node_rate: Probability | None = None
    own_weight: Fraction = 0.5
    alpha: Restart = 0.25
    rho: Annotated[Probability, Field(lt=1)] = 1e-4
    gamma: Probability = 1e-4
    solver: Literal["ista", "push"] = "ista"
    entry_clip: ScoreClip = 1e-3
    norm_clip: ScoreClip = 1e-2
    column_norm: Norm = 1.0
    propagation_steps: Propagations = 2
    prediction: Literal["probabilities", "logits"] | None = None
    layers: Layers = 1
    learning_rate: Rate = 0.03

    @property
    def covers(self) -> str:
        """The weights; nothing where epsilon is the paper's claim."""
        claimed = self._published and not isinstance(self.checked_privacy().level, NoPrivacy)
        return NOTHING if claimed else super().covers

    # ---------------------------------------------------------------- public figures

    @property
    def _published(self) -> bool:
        return self.accounting == AS_PUBLISHED

    def _node_rate(self) -> float:
        """q′."""
        return (NODE_RATE if self._published else 1.0) if self.node_rate is None else self.node_rate

    def _sample(self, facts: PublicFacts) -> NodeSample:
        """Coins for all training ids, or as published a sample of fixed size."""
        size = max(1, round(self._node_rate() * facts.num_train)) if self._published else None
        return NodeSample(self._node_rate(), size)

    def _range(self, facts: PublicFacts) -> int:
        """N, the size of the id range."""
        return self._sample(facts).range_size(facts.num_train)

    def _candidates(self, facts: PublicFacts) -> int:
        return self._range(facts) - (0 if self._published else 1)

    def _rows(self, facts: PublicFacts) -> int:
        """M."""
        available = self._range(facts)
        if self.sources is None:
            return min(SOURCES, available) if self._published else available
        if self.sources > available:
            raise ParameterError(
                f"dpar: sources must be at most the {available} nodes to choose from, not {self.sources}"
            )
        return self.sources

    def _batch(self, rows: int, level: Level) -> int | None:
        if isinstance(level, NoPrivacy):
            return None
        if self.batch_size is None and self._published:
            return min(BATCH_SIZE, rows)
        return self.batch_size

    def _share(self, facts: PublicFacts, level: Level) -> float:
        """The part for structure, of the squared privacy loss or (as-published) of ε."""
        if self.structure_share != "auto":
            return self.structure_share
        if self._published or isinstance(level, NoPrivacy):
            return TRIAL_SHARE
        privacy = self.checked_privacy()
        delta = privacy.resolve_delta(facts.num_nodes)
        return auto_share(self._picking(facts, level), privacy.epsilon, delta, self._node_rate())

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
        if isinstance(level, NoPrivacy):
            return self._calibrated_stages(facts, level)
        counts, sample = self._count_stages(facts, level), self._sample(facts)
        if counts and (sample.needs_key or self._published):
            raise UnsupportedError(
                "dpar counts classes for class_weight=balanced where every node takes part: leave node_rate and "
                "accounting at their defaults, or give a weight for each class"
            )
        sampling = [Stage.of(SAMPLE, SampledNodes(sample))] if sample.needs_key else []
        stages = self._published_stages if self._published else self._calibrated_stages
        return [*counts, *sampling, *stages(facts, level)]

    def _calibrated_stages(self, facts: PublicFacts, level: Level) -> list[Stage]:
        share = self._share(facts, level)
        structure = [Stage.of(STRUCTURE, self._picking(facts, level), share=share)] if share > 0 else []
        return [*structure, Stage.of(NETWORK, self._steps_query(facts, level), share=1 - share, runs=self.steps)]

    def _published_stages(self, facts: PublicFacts, level: Level) -> list[Stage]:
        """The paper's noise; sensitivities stay the true ones."""
        noise, steps = self._published_noise(facts), self._steps_query(facts, level)
        training = Stage(NETWORK, steps, steps.bound(), steps.sampled_event(noise.step), self.steps)
        if self._share(facts, level) == 0:
            return [training]
        picking = self._picking(facts, level)
        return [Stage(STRUCTURE, picking, picking.bound(), noise.picking_event(picking)), training]

    def _picking(self, facts: PublicFacts, level: Level) -> PageRankRows:
        clip = self.norm_clip if self.mechanism == "gm" else self.entry_clip
        return PageRankRows(
            level,
            self.mechanism,
            rows=self._rows(facts),
            candidates=self._candidates(facts),
            picks=self.top_k,
            clip=1.0 if isinstance(level, NoPrivacy) else clip,
            sample=self._sample(facts),
            alpha=self.alpha,
            rho=self.rho,
            gamma=self.gamma,
            solver=self.solver,
            own_entry=self._published,
        )

    def _steps_query(self, facts: PublicFacts, level: Level) -> RowSteps:
        question = "clipped gradients of the network on rows of picked nodes"
        rows = self._rows(facts)
        parameters = planned_parameters(self._network(facts, torch.Generator()), rows, slots=self.top_k + 1)
        rule, sample = replace(self._rule(), batch_size=self._batch(rows, level)), self._sample(facts)
        if self._published:
            return PublishedRowSteps(level, question, parameters, rows, rule, sample, self.column_norm)
        users = self.users if self._share(facts, level) > 0 else 0
        return PickedRowSteps(level, question, parameters, rows, rule, sample, users, self.own_weight)

    def _network(self, facts: PublicFacts, generator: torch.Generator) -> MLP:
        widths = widths_of(facts.num_features, self.hidden, self.layers, facts.num_classes)
        return MLP(widths, self.activation, 0.0, generator)

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        open_door = "prediction reads edges and neighbours' features without noise"
        if self._published and not isinstance(level, NoPrivacy):
            return [
                open_door,
                "the claim is about a node with all of its edges; what is proved is about the relation above",
            ]
        notes = [f"{open_door}: weights are covered, predictions are not"]
        if isinstance(level, NoPrivacy):
            return notes
        share = self._share(public, level)
        notes.append("all edges of a node are protected, and the degree bound of the level plays no part")
        if share == 0 and self.structure_share == "auto":
            notes.append(
                "this is not DPAR: noise would drown PageRank at this budget, so structure_share auto reads no edge in "
                "training and gives all of the budget to gradients on features; preset paper reads PageRank"
            )
        elif share > 0:
            notes.append(split_note({"picks": share, "gradients": 1 - share}))
        return notes

    # ---------------------------------------------------------------- as published

    def _published_noise(self, facts: PublicFacts) -> PublishedNoise:
        privacy, rows = self.checked_privacy(), self._rows(facts)
        delta = privacy.resolve_delta(facts.num_nodes)
        if delta >= self._node_rate():
            raise ParameterError(f"dpar: delta must be below node_rate, {self._node_rate()}, not {delta}")
        setting = PublishedSetting(
            epsilon=privacy.epsilon,
            delta=delta,
            node_rate=self._node_rate(),
            share=self._share(facts, privacy.level),
            nodes=self._range(facts),
            rows=rows,
            picks=self.top_k,
            batch=self._batch(rows, privacy.level) or rows,
            steps=self.steps,
            column_norm=self.column_norm,
        )
        return published_noise(setting, self.mechanism)

    def _claim(self, public: Sequence[PublicFacts], level: Level) -> Claim | None:
        if not self._published or isinstance(level, NoPrivacy):
            return None
        return Claim(self.checked_privacy().epsilon, "DPAR, theorems 1 to 3 as printed")

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        if not parts[0].private:
            training_rows(parts[0])  # where labels are public, an error without any
        shares = class_shares(self._class_weights(parts[0], curator))
        sources = self._draw_sources()
        if self._sample(self.public_).needs_key:
            curator.draw_key(SAMPLE)
        self.network_ = self._watched["network"] = self._network(self.public_, self._generator)
        picks = curator.ask(STRUCTURE, sources=sources) if curator.plan.has(STRUCTURE) else None
        self._name_rows(parts[0], sources, picks)
        given = {"sources": sources, "picks": picks, **shares}
        train_privately(self.network_, curator, NETWORK, self._descent(), progress=progress, **given)

    def _draw_sources(self) -> IntArray:
        """Which positions of the range get a row: a public choice."""
        seed = int(torch.randint(2**31 - 1, (1,), generator=self._generator, device=self._generator.device))
        chosen = np.random.default_rng(seed).permutation(self._range(self.public_))
        return np.sort(chosen[: self._rows(self.public_)])

    def _name_rows(self, part: PublicPart, sources: IntArray, picks: Array | None) -> None:
        """Say which nodes rows and picks are, as far as that is public."""
        ids = np.arange(self._range(self.public_)) if self._published else np.flatnonzero(part.mask("train"))
        self.row_ids_: IntArray = ids[sources]
        self.picks_: IntArray | None = None
        if picks is not None:
            found = read_candidates(picks, self._candidates(self.public_))
            self.picks_ = ids[found if self._published else positions_of(found, sources)]

    # ---------------------------------------------------------------- predict

    def _uncovered(self, part: PublicPart) -> str | None:
        return "a prediction reads edges and the features of neighbours; the guarantee covers the weights alone"

    @torch.no_grad()
    def _probabilities(self, part: PublicPart) -> SingleArray:
        logits = map_rows(self.network_, part.features, self._device)
        if self.prediction == "logits" or (self.prediction is None and self._published):
            averaged = average_logits(logits, part, self.propagation_steps, self.alpha)
            return torch.softmax(averaged, dim=1).cpu().numpy()
        own = torch.softmax(logits, dim=1)
        return average_probabilities(own, part, self.propagation_steps, self.alpha).cpu().numpy()

    # ---------------------------------------------------------------- release

    def _state(self) -> Arrays:
        return module_state("network", self.network_)

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.network_ = restore_module("network", self._network(self.public_, self._generator), state)


# -------------------------------------------------------------------- structure_share="auto"


def auto_share(query: TopPicks, epsilon: float, delta: float, node_rate: float) -> float:
    """The trial share, if picks at that share would tell anything of the graph; else nothing."""
    mu = gaussian_mu(*before_sampling(epsilon, delta, node_rate)) * math.sqrt(TRIAL_SHARE)
    return TRIAL_SHARE if structure_survives(mu, query) else 0.0


def structure_survives(mu: float, query: TopPicks) -> bool:
    """Whether the largest possible score would stand above the largest noise among all candidates.

    ``mu`` is the privacy loss (of a Gaussian, or √2ρ) that all rows may spend. With Gumbel noise one row's score at its
    clip bound is mu/√(MK) noise scales high (``em1`` halves the squared loss), and the largest of n noises about ln n;
    with Gaussian noise it is mu/√(2M) deviations, against √(2 ln n).
    """
    log_candidates = math.log(max(query.candidates, 2))
    if query.selection == "gm":
        return mu / math.sqrt(2 * query.rows) >= math.sqrt(2 * log_candidates)
    halves = 2 if query.selection == "em1" else 1
    return mu / math.sqrt(halves * query.rows * query.picks) >= log_candidates
