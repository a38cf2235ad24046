"""Parameters that methods share: of networks trained on public data, and of networks trained by noisy steps."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated

from pydantic import Field

from discreet.errors import PrivacyError
from discreet.methods.base import NodeClassifier
from discreet.methods.parameters import Decay, Examples, Layers, Multiplier, Norm, Rate, Rounds, Steps, Width
from discreet.privacy.calibration import steps_for
from discreet.privacy.levels import NoPrivacy
from discreet.privacy.plan import Stage
from discreet.queries.gradients import Clipping, GradientSteps, Sampling, StepRule
from discreet.training.descent import TrainOptions
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
        return Descent(self._rate(), self.optimizer, self.schedule, self.averaged)

    def _rate(self) -> float:
        assert self.learning_rate is not None  # a method that has None for a default says what it stands for
        return self.learning_rate

    def _training_stage(self, name: str, query: GradientSteps, num_nodes: int) -> Stage:
        """The stage of the noisy steps, as many as asked for or as ε allows."""
        if self.noise_multiplier is None or isinstance(query.level, NoPrivacy):
            return Stage.of(name, query, runs=self.steps)
        one = Stage(name, query, query.bound(), query.sampled_event(self.noise_multiplier))
        privacy = self._checked_privacy()
        steps = steps_for(one.event, privacy.epsilon, privacy.resolve_delta(num_nodes))
        if steps == 0:
            raise PrivacyError(
                f"with noise_multiplier {self.noise_multiplier} one step alone spends more than epsilon "
                f"{privacy.epsilon}: give more noise, or leave it out and give steps"
            )
        return replace(one, runs=steps)
