"""``dpdgc``: decoupled graph convolution (Chien et al. 2023, the DPDGC paper).

Node features and adjacency rows never meet before noise: Z = A·W + noise embeds the rows, and a network reads a
node's features beside its row of Z. Prediction reads the cached Z, so it reads no edge.

Where features and labels are private too, Z is released before anything reads features. An example of the joint network
is then a node's own features and label beside released rows, so one node stands in one example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.arrays import Array, Arrays, FloatArray, SingleArray
from discreet.errors import UnsupportedError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart, has_key, public_key, stored_key
from discreet.mechanisms.curator import Curator
from discreet.methods import dpdgc
from discreet.methods.as_published import AS_PUBLISHED, Accounting, with_claimed_noise
from discreet.methods.dpdgc.embedding import (
    EMBEDDING,
    KINDS,
    ROWS,
    STEP,
    Embedding,
    EmbeddingSettings,
    Kind,
    Released,
    Sources,
    label_residuals,
)
from discreet.methods.dpdgc.joint import LAYERS, NETWORK, JointModel
from discreet.methods.dpdgc.networks import TwoWeights
from discreet.methods.dpdgc.plain import View, plain_random_rows, plain_step_rows, view_of_rows, weigh_views
from discreet.methods.feature_model import FeatureModel
from discreet.methods.outlook import Outlook, outlook_of, separation
from discreet.methods.parameters import Examples, Norm, Rate, RowNorm, Share, Steps, Width
from discreet.methods.stored_arrays import SINGLE, stored_rows
from discreet.methods.trained import TakesEncoder, TrainedClassifier, WeighsClasses, class_shares, with_weights
from discreet.ops.sparse import SparseMatrix, feature_tensor
from discreet.privacy.coverage import NOTHING
from discreet.privacy.levels import EdgeLevel, Level, NeighborLevel, NodeLevel, NoPrivacy
from discreet.privacy.plan import Claim, Plan, Stage, split_note
from discreet.queries.gradients import StepRule
from discreet.queries.kept_edges import KEY, kept_edges_stage
from discreet.queries.reach import thinning_failure
from discreet.training.descent import Progress, TrainOptions, train_beside, train_on_features
from discreet.training.networks import MLP, Head, modules_state, restore_modules, widths_of
from discreet.training.private import Descent, train_privately

THEOREMS = {
    "edge": "theorem G.1 and corollary H.1",
    "neighbor": "theorem 5.4 and corollary H.3",
    "node": "theorem 5.3 and corollary H.2",
}
"""Of the DPDGC paper, by kind of level: what its noise rests on."""
DEFAULT_EMBEDDING: dict[str, Kind] = {"none": "trained", "edge": "step", "neighbor": "random", "node": "random"}
MOST_NEIGHBOURS_TRAINED = 5
"""The largest k of ``neighbor:K`` up to which ``trained`` had the better validation accuracy (docs/dpdgc.md)."""
DEFAULT_WIDTH = 16
"""Noise falls on every column, so few of them."""
PLAIN_WIDTH = 128
"""Where there is no noise, width costs only time."""
WIDE = 256
"""Width where it does no harm: rows are reduced to few directions before anything is trained on them."""
DEFAULT_SPLIT = (0.3, 0.3, 0.7)
"""Shares of W, Z and the joint network; moving a half between the first two makes no
difference beyond chance (docs/defaults.md).
"""
LINEAR_SPLIT = (0.15, 0.15, 0.7)
"""The same where linear maps are trained: noise that drowns a hidden layer leaves rows with less to say."""


@dataclass(eq=False, repr=False)
class DPDGC(TakesEncoder, WeighsClasses, TrainedClassifier):
    """Noisy cached embeddings of adjacency rows beside features, at level ``none``, ``edge``, ``neighbor`` or ``node``.

    Parameters
    ----------
    embedding
        Where the rows of W come from. ``random``: hashed signs, public, free. ``trained``: DPDGC's DP-Emb, noisy
        clipped gradients of σ(AW + b)R. ``step`` (levels ``none`` and ``edge``, where labels are public): the first
        gradient of that training alone, which is a sum over edges and moves far less. ``auto``: ``step`` at edge
        level, ``trained`` at ``neighbor:K`` up to K = 5 and without privacy, ``random`` beyond and at ``node``. (None
        is what releases of before say: ``random`` at every ``neighbor:K``.)
    width
        Width of Z. None: 16, 128 without privacy, 256 for ``random`` at ``neighbor`` and ``node``. With ``step`` it
        is the number of classes.
    row_norm
        c, the norm of W's rows. Noise is scaled with it, so it changes nothing: it is there because the paper has it.
    embedding_steps, embedding_step_size, embedding_batch
        Noisy steps of DP-Emb, their learning rate, and the expected batch (None: every training node in every step).
    own_dropout, head_dropout
        At ``none`` and ``edge``: how often the head is trained without what the features say, and its dropout.
    components, rows_hidden, steps, step_size
        At ``neighbor`` and ``node``: how many of Z's strongest directions the joint network reads, the width of the
        layer that reads them (``hidden`` is that of the features), and the noisy steps of the network, at a learning
        rate of 0.05 for linear maps and 0.01 for layers (None). (``dropout``, ``epochs``, ``batch_size``,
        ``learning_rate`` and ``weight_decay`` are for the other levels.)
    linear
        There, whether the joint network is one linear map of features, on rows scaled to norm 4.5, and one of Z's
        directions, without hidden layers. None: by public facts, where noise on the parameters of hidden layers would
        outweigh what labels teach them (``methods.feature_model``).
    clip_norm
        The norm to which gradients are clipped in every noisy step.
    split
        How the squared privacy loss is divided among W, Z and the joint network; parts that do not occur are left out.
        None: 3 : 3 : 7, and 1.5 : 1.5 : 7 with linear maps.
    accounting
        ``rigorous``, or ``as-published``: noise for an undirected edge that moves Z by c and stands in one example of
        DP-Emb, and for a replaced node that stands in D + 1 of them, as DPDGC counts: a claim that does not hold.

    Guarantee. W is public or released, and its rows are cut at norm c in the very weights that Z is computed with; Z
    moves by at most the bound of ``queries.adjacency_rows``. DP-Emb: one unit touches the examples of
    ``queries.adjacency_row_steps.touched_rows``. At ``edge`` features and labels are public, so all else is computed
    from released and public values: weights, caches and predictions are covered. At ``neighbor`` and ``node`` the joint
    network is trained by noisy steps in which a node stands in its own example alone; a prediction reads its node's own
    features beside the cache, so all predictions but the unit's own are covered.
    """

    declaration = dpdgc.DPDGC

    _: KW_ONLY
    embedding: Kind | Literal["auto"] | None = "auto"
    width: Width | None = None
    row_norm: RowNorm = 1.0
    embedding_steps: Steps = 20
    embedding_step_size: Rate = 0.05
    embedding_batch: Examples | None = None
    own_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    head_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    components: Width = 16
    rows_hidden: Width = 64
    steps: Steps = 200
    step_size: Rate | None = None
    linear: bool | None = None
    clip_norm: Norm = 0.1
    split: tuple[Share, Share, Share] | None = None
    accounting: Accounting = "rigorous"

    @property
    def covers(self) -> str:
        """What was declared for the level; nothing where epsilon is the paper's claim."""
        return NOTHING if self._published() else super().covers

    # ---------------------------------------------------------------- plan

    def _level(self) -> Level:
        return self.checked_privacy().level

    def _published(self) -> bool:
        return self.accounting == AS_PUBLISHED and not self._is_plain()

    def _claim(self, public: Sequence[PublicFacts], level: Level) -> Claim | None:
        if not self._published():
            return None
        return Claim(self.checked_privacy().epsilon, f"DPDGC, {THEOREMS[level.kind]} as printed")

    def _claimed_sensitivities(self) -> dict[str, float]:
        """By how much less than it does each stage moves, if the paper is to be believed."""
        level = self._level()
        if isinstance(level, EdgeLevel) and not level.directed:
            return {EMBEDDING: 1 / 2, STEP: 2**-0.5, ROWS: 2**-0.5}
        if isinstance(level, NodeLevel) and level.max_degree and level.edges == "owned" and level.change == "replace":
            return {EMBEDDING: (level.max_degree + 1) / (2 * level.max_degree + 1)}
        return {}

    def _is_plain(self) -> bool:
        return isinstance(self._level(), NoPrivacy)

    def _kind(self) -> Kind:
        level = self._level()
        given = self.embedding
        kind = self._default_kind(level) if given is None or given == "auto" else given
        if kind == "step" and self._records_are_private():
            raise UnsupportedError(
                f"dpdgc: embedding step reads labels as public, which they are not at level {level.spec}: "
                "use random or trained"
            )
        return kind

    def _default_kind(self, level: Level) -> Kind:
        """By level, and by k: an edge more is an example of DP-Emb more to pay for."""
        few = isinstance(level, NeighborLevel) and level.k <= MOST_NEIGHBOURS_TRAINED
        return "trained" if few and self.embedding == "auto" else DEFAULT_EMBEDDING[level.kind]

    def _width(self, facts: PublicFacts) -> int:
        if self._kind() == "step":
            return facts.num_classes
        if self.width is not None:
            return self.width
        if self._is_plain():
            return PLAIN_WIDTH
        return WIDE if self._records_are_private() and self._kind() == "random" else DEFAULT_WIDTH

    def _shares(self, facts: PublicFacts) -> dict[str, float]:
        """W, Z and joint network, as parts of 1; zero where there is no such part."""
        names, used = ("embedding", "rows", "network"), (self._kind() != "random", True, self._records_are_private())
        linear = self._records_are_private() and self._joint(facts).model.is_linear
        split = self.split or (LINEAR_SPLIT if linear else DEFAULT_SPLIT)
        parts = [share if use else 0.0 for share, use in zip(split, used, strict=True)]
        return {name: part / sum(parts) for name, part in zip(names, parts, strict=True)}

    def _stages(self, public: Sequence[PublicFacts], level: Level) -> list[Stage]:
        if len(public) > 1:
            raise UnsupportedError("dpdgc embeds the nodes of the graph that it is fitted on: it takes no extra graphs")
        if self._is_plain():
            return []
        facts, shares = public[0], self._shares(public[0])
        stages = [
            *self._count_stages(facts, level),
            *kept_edges_stage(thinning_failure(level, self._delta(facts))),
            *self._embedding(facts).stages(shares["embedding"], shares["rows"]),
        ]
        if self._records_are_private():
            stages.append(self._joint(facts).stage(shares["network"], self.steps, self.clip_norm))
        if not self._published():
            return stages
        epsilon = self.checked_privacy().epsilon
        return with_claimed_noise(stages, epsilon, self._delta(facts), self._claimed_sensitivities())

    def _delta(self, facts: PublicFacts) -> float:
        return self.checked_privacy().resolve_delta(facts.num_nodes)

    def _embedding(self, facts: PublicFacts) -> Embedding:
        level = self._level()
        settings = EmbeddingSettings(
            level=level,
            facts=facts,
            width=self._width(facts),
            row_norm=self.row_norm,
            failure=thinning_failure(level, self._delta(facts)),
            rule=StepRule(self.clip_norm, self.embedding_batch),
            steps=self.embedding_steps,
            step_size=self.embedding_step_size,
            activation=self.activation,
        )
        return KINDS[self._kind()](settings)

    def _outlook(self, plan: Plan, public: PublicFacts, degree: float) -> Outlook:
        """``step`` reads the labels of training neighbours; a narrow W tells little of who a neighbour is."""
        if self._kind() == "step":
            clarity = separation(degree, plan.stage(STEP).noise_std) * public.num_train / public.num_nodes
        else:
            known = min(1.0, self._width(public) / public.num_nodes) ** 0.5
            clarity = known * separation(degree, plan.stage(ROWS).noise_std / self.row_norm)
        return outlook_of(plan, clarity)

    def _notes(self, public: PublicFacts, level: Level) -> Sequence[str]:
        if self._is_plain():
            return ()
        notes = [split_note(self._shares(public))]
        if self._records_are_private() and self.linear is None and self.encoder is None:
            notes.append(f"features are read by {self._joint(public).model.describe()}, by public facts")
        return notes

    def _pinned(self) -> Mapping[str, Any]:
        if self.linear is not None or self.encoder is not None or not self._records_are_private():
            return {}
        return {"linear": hasattr(self, "plan_") and self._joint(self.public_).model.is_linear}

    # ---------------------------------------------------------------- networks

    def _feature_network(self) -> nn.Module:
        own = self._own_encoder(self.public_, self.public_.num_classes, self._generator, dropout=True)
        if own is not None:
            return own
        widths = widths_of(self.public_.num_features, self.hidden, self.layers, self.public_.num_classes)
        return MLP(widths, self.activation, self.dropout, self._generator)

    def _head(self, rows: int) -> nn.Module:
        classes = self.public_.num_classes
        if self._weighs_views():
            return TwoWeights(classes)
        widths = widths_of(classes + rows, self.hidden, self.layers, classes)
        return Head(widths, self.activation, self.head_dropout, self._generator)

    def _joint(self, facts: PublicFacts) -> JointModel:
        """What noisy steps train, where records are private."""
        privacy, own = self.checked_privacy(), self.encoder is not None
        return JointModel(
            privacy.level,
            facts,
            FeatureModel(privacy, facts, self.hidden, LAYERS, self.linear, own),
            self._components(facts),
            self.rows_hidden,
            self.activation,
            lambda generator: self._own_encoder(facts, None, generator, dropout=False),
        )

    def _components(self, facts: PublicFacts) -> int:
        """How many directions of Z the joint network reads."""
        return min(self.components, self._width(facts), facts.num_nodes)

    def _weighs_views(self) -> bool:
        """Whether nothing is protected and W is trained: two views then need no more than a weight each."""
        return self._is_plain() and self._kind() == "trained"

    # ---------------------------------------------------------------- fit

    def _learn(self, parts: Sequence[PublicPart], curator: Curator, progress: Progress | None) -> None:
        self.key_ = public_key(parts[0])
        weights = self._class_weights(parts[0], curator)
        if self._records_are_private():
            self._learn_by_noisy_steps(curator, weights, progress)
        else:
            self._learn_from_public_records(parts[0], curator, with_weights(self._options(), weights), progress)

    def _learn_by_noisy_steps(self, curator: Curator, weights: FloatArray | None, progress: Progress | None) -> None:
        curator.draw_key(KEY)
        released = self._embedding(self.public_).release(Sources(curator, self._generator, progress=progress))
        joint = self._joint(self.public_)
        self.cache_ = released.principal(joint.rows).to(self._device)
        self.network_: nn.Module = joint.network(self._generator)
        self._watched["network"] = self.network_
        descent = Descent(joint.model.learning_rate(self.step_size))
        shares = class_shares(weights)
        train_privately(self.network_, curator, NETWORK, descent, progress=progress, beside=self.cache_, **shares)

    def _learn_from_public_records(
        self, part: PublicPart, curator: Curator, options: TrainOptions, progress: Progress | None
    ) -> None:
        self.network_ = self._feature_network()
        self._watched["network"] = self.network_
        train_on_features(self.network_, part, options, self._generator, title="features", progress=progress)
        if self._weighs_views():
            self._weigh_views(part, options, progress)
            return
        released = self._plain_rows(part) if self._is_plain() else self._noisy_rows(part, curator, progress)
        self.cache_ = released.damped().to(self._device)
        self.head_ = self._head(self.cache_.shape[1])
        self._watched["head"] = self.head_
        self._train_head(part, options, progress)

    def _noisy_rows(self, part: PublicPart, curator: Curator, progress: Progress | None) -> Released:
        residuals = self._residuals(part) if self._kind() == "step" else None
        return self._embedding(part.facts).release(Sources(curator, self._generator, residuals, progress))

    def _plain_rows(self, part: PublicPart) -> Released:
        if self._kind() == "step":
            return plain_step_rows(part, self._residuals(part))
        return plain_random_rows(part, self._width(part.facts), self._generator)

    def _residuals(self, part: PublicPart) -> FloatArray:
        return label_residuals(part, self._own_probabilities(feature_tensor(part.features, self._device)).cpu().numpy())

    def _weigh_views(self, part: PublicPart, options: TrainOptions, progress: Progress | None) -> None:
        rows = view_of_rows(part, self._width(part.facts), self.activation, options, self._generator)
        given = feature_tensor(part.features, self._device)
        features = View("features", given, self._feature_network, lambda _: options)
        classes = options.class_weights
        self.cache_, self.head_ = weigh_views(part, rows, features, self._generator, progress, classes)

    def _own_probabilities(self, features: Tensor | SparseMatrix) -> Tensor:
        """What the features alone say of a node: class probabilities."""
        with torch.no_grad():
            return torch.softmax(self.network_(features), dim=1)

    def _train_head(self, part: PublicPart, options: TrainOptions, progress: Progress | None) -> None:
        train_beside(
            self.head_,
            self.network_,
            self._own_probabilities,
            self.cache_,
            part,
            options,
            self._generator,
            own_dropout=self.own_dropout,
            title="head",
            progress=progress,
        )

    # ---------------------------------------------------------------- predict

    def _extension_stages(self, public: PublicFacts, number: int, level: Level) -> list[Stage]:
        raise UnsupportedError(
            "dpdgc cannot be extended to another graph: its weights belong to the nodes of the training graph, one row "
            "for each, and a node of another graph has none; train again, or use gap or hop-bayes"
        )

    def _uncovered(self, part: PublicPart) -> str | None:
        if has_key(part, self.key_):
            return None
        return "rows were embedded and released for the nodes of the training graph alone"

    @torch.no_grad()
    def _probabilities(self, part: PublicPart) -> SingleArray:
        if not has_key(part, self.key_):
            raise UnsupportedError(
                "dpdgc knows the nodes that it was fitted on and no others: it cannot predict on another graph"
            )
        if self._records_are_private():
            scaled = feature_tensor(self._joint(self.public_).model.rows(part.features), self._device)
            logits: Tensor = self.network_(scaled, self.cache_)
        else:
            features = feature_tensor(part.features, self._device)
            logits = self.head_(torch.cat([self._own_probabilities(features), self.cache_], dim=1))
        return torch.softmax(logits, dim=1).cpu().numpy()

    # ---------------------------------------------------------------- release

    def _modules(self) -> dict[str, nn.Module]:
        joint = self._records_are_private()
        return {"network": self.network_} if joint else {"network": self.network_, "head": self.head_}

    def _state(self) -> Arrays:
        weights = modules_state(self._modules())
        return {**weights, "cache": self.cache_.cpu().numpy(), "key": np.frombuffer(self.key_, dtype=np.uint8)}

    def _cache_width(self) -> int | None:
        """How wide the cached rows are; None where nothing is private, and the head's weights alone say it."""
        if self._records_are_private():
            return self._components(self.public_)
        if self._is_plain():
            return None
        width = self._width(self.public_)
        return 2 * width if self._kind() == "step" else width

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.key_ = stored_key(state, "key")
        shape = self.public_.num_nodes, self._cache_width()
        self.cache_ = torch.tensor(stored_rows(state, "cache", *shape, types=[SINGLE]))
        if self._records_are_private():
            self.network_ = self._joint(self.public_).network(self._generator)
        else:
            self.network_ = self._feature_network()
            self.head_ = self._head(self.cache_.shape[1])
        restore_modules(self._modules(), state)
