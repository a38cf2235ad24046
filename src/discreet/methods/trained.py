"""Parameters that methods share: of networks trained on public data, of networks trained by noisy steps, an encoder
that the user brings, where a head starts, and weights of classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BeforeValidator, Field

from discreet.arrays import Array, FloatArray
from discreet.errors import ParameterError, PrivacyError
from discreet.graph.convert import GraphLike
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import LABELS, PublicPart
from discreet.limits import shown
from discreet.mechanisms.curator import Curator
from discreet.methods.base import NodeClassifier
from discreet.methods.parameters import (
    Decay,
    Examples,
    Layers,
    Multiplier,
    Norm,
    OwnEncoder,
    Rate,
    Rounds,
    Steps,
    Width,
)
from discreet.privacy.calibration import steps_for
from discreet.privacy.levels import Level, NoPrivacy
from discreet.privacy.plan import Plan, Stage
from discreet.queries.class_counts import ClassCounts
from discreet.queries.gradients import Clipping, GradientSteps, Sampling, StepRule
from discreet.training.descent import TrainOptions, training_rows
from discreet.training.encoder_modules import Encoder, build_encoder, read_encoder
from discreet.training.networks import Activation
from discreet.training.private import Descent, Optimizer, Schedule


@dataclass(eq=False, repr=False)
class TrainedClassifier(NodeClassifier):
    """A classifier whose networks are trained without DP-SGD.

    Parameters
    ----------
    hidden
        Width of hidden layers.
    layers
        Number of linear maps (of hops, for graph convolutions).
    activation
        ``relu``, ``selu``, ``tanh`` or ``gelu``.
    dropout
        Share of hidden units dropped while training.
    learning_rate, weight_decay, epochs
        Adam, with a learning rate that falls to zero along a cosine.
    batch_size
        Rows a step; None for all. On many training nodes (more than 17,000 with the defaults) batches are larger and
        passes fewer than asked for, so that there are about 2,000 steps.
    """

    _: KW_ONLY
    hidden: Width = 64
    layers: Layers = 2
    activation: Activation = "relu"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.8
    learning_rate: Rate = 0.01
    weight_decay: Decay = 5e-4
    epochs: Rounds = 30
    batch_size: Examples | None = 256

    def _options(self) -> TrainOptions:
        return TrainOptions(self.epochs, self.learning_rate, self.weight_decay, self.batch_size)


@dataclass(eq=False, repr=False)
class PrivatelyTrained(NodeClassifier):
    """A classifier whose networks are trained by noisy clipped gradients.

    Parameters
    ----------
    hidden, layers
        Width of hidden layers, and number of linear maps.
    activation
        ``relu``, ``selu``, ``tanh`` or ``gelu``.
    steps
        Number of noisy steps; noise is calibrated to them.
    noise_multiplier
        The other way round: noise over clip norm is given, and as many steps are taken as ε allows. (``steps`` is
        then ignored; what rounding down leaves of ε goes into slightly less noise.)
    learning_rate
        Of gradients measured in clip norms, so that changing ``clip_norm`` alone does not change the pace.
    batch_size
        Expected size of a batch; None takes every training node in every step, for which accounting is exact.
    sampling
        ``poisson``, or ``fixed`` for batches of exactly that size without replacement.
    clip_norm
        The norm to which an example's gradient is clipped: a constant, never read from gradients.
    clipping
        ``flat``, or ``per-layer``: every layer to clip_norm/√L.
    optimizer
        ``adam`` or ``sgd`` (with momentum 0.9).
    schedule
        ``cosine`` or ``constant`` learning rate.
    averaged
        The share of the last steps whose weights are averaged: noise falls, and it costs no privacy.
    """

    _: KW_ONLY
    hidden: Width = 64
    layers: Layers = 2
    activation: Activation = "relu"
    steps: Steps = 200
    learning_rate: Rate | None = 0.01
    batch_size: Examples | None = None
    sampling: Sampling = "poisson"
    clip_norm: Norm = 0.1
    clipping: Clipping = "flat"
    optimizer: Optimizer = "adam"
    schedule: Schedule = "cosine"
    averaged: Annotated[float, Field(ge=0, le=1)] = 0.5
    noise_multiplier: Multiplier | None = None

    def _rule(self) -> StepRule:
        return StepRule(self.clip_norm, self.batch_size, self.sampling, self.clipping)

    def _descent(self) -> Descent:
        return Descent(self._learning_rate(), self.optimizer, self.schedule, self.averaged)

    def _learning_rate(self) -> float:
        assert self.learning_rate is not None  # a method that has None for a default says what it stands for
        return self.learning_rate

    def _training_stage(self, name: str, query: GradientSteps, num_nodes: int) -> Stage:
        """The stage of the noisy steps, as many as asked for or as ε allows."""
        if self.noise_multiplier is None or isinstance(query.level, NoPrivacy):
            return Stage.of(name, query, runs=self.steps)
        one = Stage(name, query, query.bound(), query.sampled_event(self.noise_multiplier))
        privacy = self.checked_privacy()
        steps = steps_for(one.event, privacy.epsilon, privacy.resolve_delta(num_nodes))
        if steps == 0:
            raise PrivacyError(
                f"with noise_multiplier {self.noise_multiplier} one step alone spends more than epsilon "
                f"{privacy.epsilon}: give more noise, or leave it out and give steps"
            )
        return replace(one, runs=steps)


@dataclass(eq=False, repr=False)
class TakesEncoder(NodeClassifier):
    """A classifier whose network on features can be the user's own.

    Parameters
    ----------
    encoder
        Your own layers in the place of ours: a ``torch.nn.Sequential`` of linear layers, activations, ``LayerNorm``,
        ``Dropout`` and ``discreet.Residual``, or the same in words, ``("linear 64", "relu")``. A linear map to what the
        method needs follows it. It gives the architecture alone: it is built anew from its layers, with fresh weights,
        so that none of your code runs on private data. None: ``hidden``, ``layers``, ``activation`` and ``dropout``.
    """

    _: KW_ONLY
    encoder: OwnEncoder = None

    def plan(self, public: PublicFacts | GraphLike, extra: Sequence[PublicFacts] = ()) -> Plan:
        """As every method's; an encoder that reads another number of columns is refused."""
        planned = super().plan(public, extra)
        if self.encoder is not None:
            read_encoder(self.encoder).check_reads(public.num_features)
        return planned

    def _own_encoder(
        self, facts: PublicFacts, outputs: int | None, generator: torch.Generator, *, dropout: bool
    ) -> Encoder | None:
        """The user's encoder with a linear map to ``outputs`` after it, freshly drawn; None where there is none."""
        if self.encoder is None:
            return None
        layers = read_encoder(self.encoder)
        return build_encoder(layers, facts.num_features, outputs, generator, dropout=dropout)


@dataclass(eq=False, repr=False)
class StartsHead(TrainedClassifier):
    """A classifier whose head reads a node's own opinion beside noisy rows of its neighbours.

    A head that starts at random has to learn from labelled nodes that both are evidence of the same classes. Where
    labels are few it does not, and ends below the network that reads features alone.

    Parameters
    ----------
    start
        What the head starts from: ``random`` weights, or ``evidence``, what the first network says of a node plus what
        its neighbours tell, weighed by their noise. ``auto`` is evidence under noise where training nodes are few: at
        most half of the steps that a pass is made for (1,024 nodes with the defaults); a release stores which it was.
        At levels ``neighbor`` and ``node`` it is always evidence.
    """

    _: KW_ONLY
    start: Literal["auto", "random", "evidence"] = "auto"

    def _starts_from_evidence(self, facts: PublicFacts) -> bool:
        """Whether the head starts from log-probabilities beside rows that are weighed by their noise."""
        if self._records_are_private():
            return True
        if self.start != "auto":
            return self.start == "evidence"
        under_noise = not isinstance(self.checked_privacy().level, NoPrivacy)
        return under_noise and self._options().has_few(facts.num_train)

    def _config(self) -> dict[str, Any]:
        """With what ``auto`` decided in its place, so that a later version with another rule predicts the same."""
        config = super()._config()
        if self.start == "auto":
            config["params"]["start"] = "evidence" if self._starts_from_evidence(self.public_) else "random"
        return config


# -------------------------------------------------------------------- weights of classes


def _in_form(given: Any) -> Any:
    if given != "balanced" and not isinstance(given, dict):
        raise ParameterError(
            f'class_weight is balanced, or a weight by class name such as {{"fraud": 10}}, not {shown(given)}'
        )
    return given


ClassWeight = Annotated[
    Literal["balanced"] | dict[str | int, Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]],
    BeforeValidator(_in_form),
]

COUNTS = "class counts"
COUNTS_SHARE = 0.02
"""What noisy counts of the classes take of the squared privacy loss, beside 1 for all else: hundreds of labels move
them far out of their noise with little.
"""


@dataclass(eq=False, repr=False)
class WeighsClasses(NodeClassifier):
    """A classifier in which rare classes can count for more.

    Parameters
    ----------
    class_weight
        ``balanced``: every class counts as much as any other, whatever its number of training nodes. Or a weight by
        class name, ``{"fraud": 10}``; the others count 1. None: every node counts the same. Declared weights cost
        nothing; balanced ones cost nothing where labels are public or reported, and a stage of noisy counts where a
        curator keeps them private.
    """

    _: KW_ONLY
    class_weight: ClassWeight | None = None

    def _check_settings(self, part: PublicPart) -> None:
        super()._check_settings(part)
        if self.class_weight is not None and self.class_weight != "balanced":
            names = part.class_names or [str(label) for label in range(part.num_classes)]
            declared_weights(_in_form(self.class_weight), names)

    def _count_stages(self, facts: PublicFacts, level: Level) -> list[Stage]:
        """The stage that pays for balanced weights where labels are private; it comes first."""
        if self.class_weight != "balanced" or LABELS not in level.private:
            return []
        return [Stage.of(COUNTS, ClassCounts(level, facts.num_classes), share=COUNTS_SHARE)]

    def _declared_weights(self) -> FloatArray | None:
        """The weights by name as one per class; None where none are given."""
        if self.class_weight is None or self.class_weight == "balanced":
            return None
        return declared_weights(self.class_weight, [str(name) for name in self.classes_])

    def _class_weights(self, part: PublicPart, curator: Curator) -> FloatArray | None:
        """One weight per class, in the order of classes, from what is declared, public or released; None for none."""
        if self.class_weight != "balanced":
            return self._declared_weights()
        if LABELS not in part.private:
            return balanced_weights(np.bincount(part.labels[training_rows(part)], minlength=len(self.classes_)))
        return balanced_weights(curator.ask(COUNTS), curator.plan.stage(COUNTS).noise_std)


def with_weights(options: TrainOptions, weights: FloatArray | None) -> TrainOptions:
    """How to descend on public labels, classes weighed."""
    return options if weights is None else replace(options, class_weights=tuple(weights.tolist()))


def class_shares(weights: FloatArray | None) -> dict[str, Any]:
    """What noisy steps take of the clipped gradient of each class: weights in parts of the largest."""
    return {} if weights is None else {"class_shares": weights / weights.max()}


def declared_weights(given: Mapping[str, float] | Mapping[str | int, float], names: Sequence[str]) -> FloatArray:
    """Weights by name, or by number where classes have numbers; 1 where nothing is said."""
    given = {str(name): weight for name, weight in given.items()}
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ParameterError(f"class_weight names the class {unknown[0]!r:.80}; the classes are {', '.join(names)}")
    return np.array([float(given.get(name, 1.0)) for name in names])


def balanced_weights(counts: Array, noise_std: float = 0.0) -> FloatArray:
    """Inverse to counts, 1 on average over nodes; 1 for a class that is not there.

    Counts under noise are not believed below twice its standard deviation, so that no class is weighed by chance alone.
    """
    counted = np.maximum(np.asarray(counts, dtype=np.float64), 2 * noise_std)
    there = counted > 0
    if not there.any():
        return np.ones(len(counted))
    balanced = counted.sum() / (there.sum() * np.where(there, counted, 1.0))
    return np.where(there, balanced, 1.0)
