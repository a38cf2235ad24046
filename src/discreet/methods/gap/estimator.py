"""``gap``: aggregation perturbation (Sajadmanesh et al. 2023; the analysis is that of the DPDGC paper).

An encoder learns from features and labels. Its output, rows of unit norm, is aggregated hop by hop; each hop
passes through the curator and is cached, and normalised again it feeds the next. A head reads all hops.
Prediction reads the caches, so it reads no edge.

Where features and labels are private too, encoder and head are trained by noisy steps. One calibration covers encoder,
hops and head: all are Gaussian (every step takes every training node), so what each costs adds up in squares, and
``split`` divides that sum among the three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.arrays import Array, Arrays, FloatArray, SingleArray
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import GraphKeys, PublicPart
from discreet.mechanisms.curator import Curator
from discreet.methods import gap
from discreet.methods.caches import caches_state, restore_caches
from discreet.methods.declaration import DIVIDES_BY_DEGREES
from discreet.methods.extension import unpaid_edges
from discreet.methods.outlook import OPINION, Outlook, outlook_of, separation
from discreet.methods.parameters import Hops, Norm, Rate, Share, Steps, Width
from discreet.methods.trained import StartsHead, TakesEncoder, WeighsClasses, class_shares, with_weights
from discreet.ops.rows import damp_rows, finite_rows, normalize_rows
from discreet.ops.sparse import Aggregation, hop_matrix, map_rows
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Plan, Stage, split_note
from discreet.queries.gradients import OwnRecordSteps, StepRule, planned_parameters
from discreet.queries.kept_edges import KEY, kept_edges_stage, refuse_thinned
from discreet.queries.reach import thinning_failure
from discreet.queries.sums import NeighbourSums
from discreet.training.descent import Progress, train_beside, train_on_features
from discreet.training.networks import (
    MLP,
    Head,
    HeadBeside,
    Linear,
    OwnRows,
    OwnView,
    modules_state,
    restore_modules,
    scaled_rows,
    widths_of,
)
from discreet.training.private import Descent, train_privately

ENCODER, HEAD = "encoder", "head"


@dataclass(eq=False, repr=False)
class GAP(TakesEncoder, WeighsClasses, StartsHead):
    """Noisy, cached aggregation of encoded features, at level ``none``, ``edge``, ``neighbor`` or ``node``.

    Parameters
    ----------
    hops
        How many times rows are aggregated; all hops share one calibration. None: one under noise, where a
        second costs more than it brings, two without.
    width
        Width of the encoder's output, which is what noise is added to. None: one for each class.
    own
        What the head reads of a node itself: ``opinion``, the encoder's class probabilities, or ``rows``, what it
        tells its neighbours.
    aggregation
        ``sum``, ``mean`` or ``symmetric``. Edges with weights take ``sum`` alone.
    head_dropout
        Dropout in the head, whose inputs are few and noisy; ``dropout`` is the encoder's.
    own_dropout
        How often the head is trained without what it reads of a node itself. The encoder has seen the
        labels of training nodes, so what it says of them looks better than what it says of any other node;
        a head that always sees it learns to ignore the hops. (For the same reason these probabilities are
        drawn afresh, with the encoder's dropout, in every epoch.)
    steps, step_size, head_steps, head_step_size, clip_norm
        At levels ``neighbor`` and ``node``, where encoder and head are trained by noisy steps over all training
        nodes: how many, their learning rates, and the norm to which gradients are clipped. (``dropout``,
        ``epochs``, ``batch_size``, ``learning_rate`` and ``weight_decay`` are for the other levels.)
    split
        At those levels, how the squared privacy loss is divided among encoder, hops and head.

    Guarantee. At ``none`` and ``edge``, with features and labels public: the encoder depends on no edge; hop i
    reads edges and the released hop i − 1, with the bound of ``queries.sums``; the head
    and all predictions are computed from released values. Weights, caches and predictions are covered.
    At ``neighbor`` and ``node``: encoder and head are trained by noisy steps in which a node stands in its own
    example alone; hops run over the level's bounded graph, with the bounds of ``queries.sums``. Weights and
    caches are covered; a prediction reads its node's own features beside the caches, so all predictions but the
    unit's own are.
    """

    declaration = gap.GAP

    _: KW_ONLY
    hops: Hops | None = None
    width: Width | None = None
    own: Literal["opinion", "rows"] = "opinion"
    aggregation: Aggregation = "sum"
    head_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    own_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    steps: Steps = 100
    step_size: Rate = 0.02
    head_steps: Steps = 20
    head_step_size: Rate = 0.02
    clip_norm: Norm = 0.1
    split: tuple[Share, Share, Share] = (0.6, 0.38, 0.02)

    # ---------------------------------------------------------------- plan

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        names = (ENCODER, "hops", HEAD)
        return (split_note(dict(zip(names, self.split, strict=True))),) if self._records_are_private() else ()

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if not self._records_are_private():
            return self._hop_stages(public, level, share=1.0, failure=None)
        delta = self.checked_privacy().resolve_delta(max(facts.num_nodes for facts in public))
        failure = thinning_failure(level, delta, len(public))
        for_encoder, for_hops, for_head = self.split
        encoder, classifier, head = self._networks(public[0], torch.Generator())
        stacked = nn.Sequential(encoder, classifier)
        return [
            *self._count_stages(public[0], level),
            *kept_edges_stage(failure, len(public)),
            self._steps_stage(ENCODER, "clipped gradients of the encoder on features", stacked, public[0], for_encoder),
            *self._hop_stages(public, level, share=for_hops / (self._hops() * len(public)), failure=failure),
            self._steps_stage(HEAD, "clipped gradients of the head", head, public[0], for_head),
        ]

    def _hop_stages(
        self, public: Sequence[PublicFacts], level: Level, share: float, failure: float | None
    ) -> list[Stage]:
        stages = []
        for number, facts in enumerate(public):
            for hop in range(1, self._hops() + 1):
                query = NeighbourSums(level, facts.num_nodes, self._width(facts), self.aggregation, hop, failure)
                stages.append(Stage.of(stage_name(number, hop), query, share=share, graph=number))
        return stages

    def _steps_stage(self, name: str, question: str, network: nn.Module, facts: PublicFacts, share: float) -> Stage:
        level = self.checked_privacy().level
        rule = StepRule(self.clip_norm)
        parameters = planned_parameters(network, facts.num_train)
        query = OwnRecordSteps(level, question, parameters, facts.num_train, rule)
        return Stage.of(name, query, share=share, runs=self.steps if name == ENCODER else self.head_steps)

    def _why_no_weights(self) -> str:
        return "" if self.aggregation == "sum" else DIVIDES_BY_DEGREES

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """Nodes tell what the encoder thinks of them."""
        noise = plan.stage(stage_name(0, 1)).noise_std
        return outlook_of(plan, OPINION * separation(degree, noise if self.aggregation == "sum" else noise * degree))

    def _width(self, public: PublicFacts) -> int:
        return public.num_classes if self.width is None else self.width

    def _hops(self) -> int:
        if self.hops is not None:
            return self.hops
        return 2 if isinstance(self.checked_privacy().level, NoPrivacy) else 1

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self.encoder_, self.classifier_, self.head_ = self._networks(self.public_, self._generator)
        self._watched = {"encoder": self.encoder_, "classifier": self.classifier_, "head": self.head_}
        self.keys_ = GraphKeys.of(parts)
        weights = self._class_weights(parts[0], curator)
        private = self._records_are_private()
        if private:
            curator.draw_key(KEY)
        self._train_encoder(parts[0], curator, weights, progress)
        self.caches_ = [self._noisy_hops(part, number, curator) for number, part in enumerate(parts)]
        train_head = self._train_head_privately if private else self._train_head
        train_head(parts[0], curator, weights, progress)

    def _networks(self, facts: PublicFacts, generator: torch.Generator) -> tuple[nn.Module, nn.Module, Head]:
        width, private = self._width(facts), self._records_are_private()
        own = self._own_columns(facts)
        sums = widths_of(own + self._hops() * width, self.hidden, self.layers, facts.num_classes)
        encoder: nn.Module | None = self._own_encoder(facts, width, generator, dropout=not private)
        if encoder is None:
            reads = widths_of(facts.num_features, self.hidden, self.layers, width)
            encoder = MLP(reads, self.activation, 0.0 if private else self.dropout, generator)
        classifier = nn.Identity() if self.width is None else Linear(width, facts.num_classes, generator)
        head = Head(sums, self.activation, 0.0 if private else self.head_dropout, generator)
        if self.width is None and self._starts_from_evidence(facts):
            head.start_from_evidence(facts.num_classes)
        return encoder, classifier, head

    def _own_columns(self, facts: PublicFacts) -> int:
        """How many numbers the head reads of a node itself."""
        return facts.num_classes if self.own == "opinion" else self._width(facts)

    def _starts_from_evidence(self, facts: PublicFacts) -> bool:
        """Rows of another width than the classes are no evidence of them."""
        if self.own == "rows":
            return False
        return super()._starts_from_evidence(facts) and (self.width is None or self._records_are_private())

    def _train_encoder(
        self, part: PublicPart, curator: Curator, weights: FloatArray | None, progress: Progress | None
    ) -> None:
        stacked = nn.Sequential(self.encoder_, self.classifier_)
        if self._records_are_private():
            shares = class_shares(weights)
            train_privately(stacked, curator, ENCODER, Descent(self.step_size), progress=progress, **shares)
        else:
            options = with_weights(self._options(), weights)
            train_on_features(stacked, part, options, self._generator, title="encoder", progress=progress)

    def _noisy_hops(self, part: PublicPart, number: int, curator: Curator) -> list[Tensor]:
        """The released hops of a graph, as the head reads them."""
        hops: list[Tensor] = []
        evidence = self._starts_from_evidence(self.public_)
        rows: Tensor | None = None if self._records_are_private() else self._encode(part)
        for hop in range(1, self._hops() + 1):
            name = stage_name(number, hop)
            given = {"encoder": self.encoder_} if rows is None else {"rows": rows}
            rows = torch.from_numpy(curator.ask(name, **given)).float().to(self._device)
            hops.append(scaled_rows(rows, curator.plan.stage(name).noise_std, evidence=evidence))
        return hops

    def _encode(self, part: PublicPart) -> Tensor:
        """What every node tells its neighbours: the encoder's output, centred."""
        encoded = map_rows(self.encoder_, part.features, self._device)
        return encoded - encoded.mean(dim=1, keepdim=True)

    def _own_view(self) -> OwnView | OwnRows:
        if self.own == "rows":
            return OwnRows(self.encoder_)
        return OwnView(self.encoder_, self.classifier_, logarithms=self._starts_from_evidence(self.public_))

    def _train_head(
        self, part: PublicPart, curator: Curator, weights: FloatArray | None, progress: Progress | None
    ) -> None:
        train_beside(
            self.head_,
            self.encoder_,
            self._own_view(),
            torch.cat(self.caches_[0], dim=1),
            part,
            with_weights(self._options(), weights),
            self._generator,
            own_dropout=self.own_dropout,
            title="head",
            progress=progress,
            own_columns=self._own_columns(self.public_),
        )

    def _train_head_privately(
        self, part: PublicPart, curator: Curator, weights: FloatArray | None, progress: Progress | None
    ) -> None:
        """An example is a node's own features and label beside its released rows: one node touches one example."""
        cached = torch.cat(self.caches_[0], dim=1)
        head, descent = HeadBeside(self.head_), Descent(self.head_step_size)
        view, shares = self._own_view(), class_shares(weights)
        train_privately(head, curator, HEAD, descent, progress=progress, frozen=view, beside=cached, **shares)

    # ---------------------------------------------------------------- one more graph

    def _extension_stages(self, public: PublicFacts, number: int, level: Level) -> list[Stage]:
        """The hops of the new graph, under the released encoder."""
        refuse_thinned(level)
        hops, width = self._hops(), self._width(self.public_)
        return [
            Stage.of(
                stage_name(number, hop),
                NeighbourSums(level, public.num_nodes, width, self.aggregation, hop),
                share=1 / hops,
            )
            for hop in range(1, hops + 1)
        ]

    def _aggregate(self, part: PublicPart, number: int, curator: Curator) -> None:
        if self._records_are_private():
            curator.draw_key(KEY)
        self.caches_ = [*self.caches_, self._noisy_hops(part, number, curator)]
        self.keys_ = self.keys_.with_graph(part)

    # ---------------------------------------------------------------- predict

    def _uncovered(self, part: PublicPart) -> str | None:
        if isinstance(self.checked_privacy().level, NoPrivacy) or self.keys_.find(part) is not None:
            return None
        return unpaid_edges("its aggregation")

    @torch.no_grad()
    def _probabilities(self, part: PublicPart) -> SingleArray:
        number = self.keys_.find(part)
        hops = self._plain_hops(part) if number is None else self.caches_[number]
        own = map_rows(self._own_view(), part.features, self._device)
        logits: Tensor = self.head_(torch.cat([own, *hops], dim=1))
        return torch.softmax(logits, dim=1).cpu().numpy()

    def _plain_hops(self, part: PublicPart) -> list[Tensor]:
        """Hops without noise, for graphs that nothing protects."""
        matrix = hop_matrix(part, self.aggregation, device=str(self._device))
        rows, hops = self._encode(part), []
        for _ in range(self._hops()):
            rows = matrix @ finite_rows(normalize_rows(rows))
            hops.append(damp_rows(rows))
        return hops

    # ---------------------------------------------------------------- release

    def _modules(self) -> dict[str, nn.Module]:
        return {"encoder": self.encoder_, "classifier": self.classifier_, "head": self.head_}

    def _state(self) -> Arrays:
        return {**modules_state(self._modules()), **caches_state(self.caches_), **self.keys_.state()}

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.encoder_, self.classifier_, self.head_ = self._networks(self.public_, self._generator)
        restore_modules(self._modules(), state)
        graphs = self._count_graphs()
        self.keys_ = GraphKeys.restore(state, graphs)
        hops = range(1, self._hops() + 1)
        shapes = [[self.plan_.stage(stage_name(number, hop)).shape for hop in hops] for number in range(graphs)]
        self.caches_ = restore_caches(state, shapes)


def stage_name(number: int, hop: int) -> str:
    """``hop 1`` on the graph itself, ``extra graph 1 hop 1`` on a further one."""
    return f"hop {hop}" if number == 0 else f"extra graph {number} hop {hop}"
