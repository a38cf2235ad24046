"""Training by noisy clipped gradients (paper 001, algorithms 1 and 3): every step goes through the curator."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.errors import PrivacyError
from discreet.graph.graph import Graph, PublicFacts
from discreet.mechanisms.curator import Curator
from discreet.mechanisms.dpsgd import Sampling, Touch, dpsgd_stage
from discreet.methods.base import NodeClassifier
from discreet.methods.compute import Compute
from discreet.methods.networks import Activation, Linear
from discreet.methods.optimizers import SGD, Adam, cosine
from discreet.methods.training import SMALL_BATCH, Progress
from discreet.ops.affine_calls import register_affine
from discreet.ops.clipping import ClipRule, clipped_sum, trainable, views_of
from discreet.ops.threads import one_thread_if
from discreet.privacy.calibration import steps_for
from discreet.privacy.plan import Stage

IntArray = npt.NDArray[np.int64]
Losses = Callable[[IntArray], Tensor]
Optimizer = Literal["adam", "sgd"]
Schedule = Literal["cosine", "constant"]

MOST_AT_ONCE = 4096
"""Terms that are added in single precision."""

MARGIN = 2e-4
"""Terms are clipped this much below the clip norm, because sums of that many round (by up to 6e-5, measured)."""

register_affine(Linear, weight_is_in_by_out=True)


@dataclass(frozen=True)
class PrivateOptions:
    """How to descend by noisy steps; see :class:`PrivatelyTrained` for what the fields mean."""

    steps: int
    learning_rate: float
    batch_size: int | None
    sampling: Sampling
    clip_norm: float
    clipping: Literal["flat", "per-layer"]
    optimizer: Optimizer
    schedule: Schedule
    averaged: float

    def rule(self, network: nn.Module) -> ClipRule:
        """The clip norms, a margin below what the stage declares; by layer they add up to the same total."""
        norm = self.clip_norm * (1 - MARGIN)
        if self.clipping == "flat":
            return ClipRule.flat(norm)
        layers = sum(any(True for _ in module.parameters(recurse=False)) for module in network.modules())
        return ClipRule.layers(norm, layers)

    def stage(
        self, name: str, query: str, network: nn.Module, num_train: int, touch: Touch, noise_multiplier: float = 1.0
    ) -> Stage:
        """The stage that :func:`train_privately` will run under that name."""
        return dpsgd_stage(
            name,
            query,
            num_parameters=sum(p.numel() for p in trainable(network)),
            num_examples=num_train,
            batch_size=self.batch_size,
            sampling=self.sampling,
            clip_norm=self.clip_norm,
            touch=touch,
            steps=self.steps,
            noise_multiplier=noise_multiplier,
        )


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
    hidden: Annotated[int, Field(ge=1)] = 64
    layers: Annotated[int, Field(ge=1)] = 2
    activation: Activation = "relu"
    steps: Annotated[int, Field(ge=1)] = 200
    learning_rate: Annotated[float, Field(gt=0)] = 0.01
    batch_size: Annotated[int, Field(ge=1)] | None = None
    sampling: Sampling = "poisson"
    clip_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.1
    clipping: Literal["flat", "per-layer"] = "flat"
    optimizer: Optimizer = "adam"
    schedule: Schedule = "cosine"
    averaged: Annotated[float, Field(ge=0, le=1)] = 0.5
    noise_multiplier: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    def _training_stage(self, name: str, query: str, network: nn.Module, public: PublicFacts, touch: Touch) -> Stage:
        """The stage of the noisy steps, as many as asked for or as ε allows."""
        options = self._options()
        if self.noise_multiplier is None:
            return options.stage(name, query, network, public.num_train, touch)
        one = options.stage(name, query, network, public.num_train, touch, self.noise_multiplier)
        privacy = self._checked_privacy()
        steps = steps_for(one.event, privacy.epsilon, privacy.resolve_delta(public.num_nodes))
        if steps == 0:
            raise PrivacyError(
                f"with noise_multiplier {self.noise_multiplier} one step alone spends more than epsilon "
                f"{privacy.epsilon}: give more noise, or leave it out and give steps"
            )
        return replace(one, runs=steps)

    def _options(self) -> PrivateOptions:
        return PrivateOptions(
            self.steps,
            self.learning_rate,
            self.batch_size,
            self.sampling,
            self.clip_norm,
            self.clipping,
            self.optimizer,
            self.schedule,
            self.averaged,
        )


# -------------------------------------------------------------------- the loop


class GradientTerms:
    """The clipped gradients of a network's losses, one an example, as the curator asks for them."""

    def __init__(self, network: nn.Module, losses: Losses, rule: ClipRule, examples: int, micro_batch: int) -> None:
        """``losses(positions)`` gives one loss for each of these examples."""
        self._network, self._losses, self._rule = network, losses, rule
        self._examples, self._micro_batch = examples, min(micro_batch, MOST_AT_ONCE)
        self._parameters = trainable(network)

    def total(self, batch: IntArray) -> npt.NDArray[np.floating[Any]]:
        """The clipped sum, a micro-batch at a time, so that memory does not grow with the batch.

        Micro-batches are added in double: a single-precision sum of a million terms that agree rounds by more than a
        term, and would move by more than one when one of them changes.
        """
        if len(batch) <= self._micro_batch:
            return self._part(batch).cpu().numpy()
        starts = range(0, len(batch), self._micro_batch)
        parts = (self._part(batch[start : start + self._micro_batch]).double() for start in starts)
        return functools.reduce(operator.iadd, parts).cpu().numpy()

    def _part(self, batch: IntArray) -> Tensor:
        if not len(batch):
            return torch.zeros(sum(p.numel() for p in self._parameters))
        return clipped_sum(self._network, lambda: self._losses(batch), self._rule).flat

    def terms(self) -> npt.NDArray[np.float32]:
        """The clipped gradients of all examples one by one: for audits of small graphs."""
        everyone = np.arange(self._examples)
        found = clipped_sum(self._network, lambda: self._losses(everyone), self._rule, terms=True).terms
        assert found is not None
        return found.cpu().numpy()


def train_privately(
    network: nn.Module,
    losses: Losses,
    curator: Curator,
    stage_name: str,
    options: PrivateOptions,
    *,
    compute: Compute | None = None,
    progress: Progress | None = None,
) -> None:
    """Run a stage of noisy steps and leave the averaged weights in the network.

    Guarantee: the weights depend on private data through the curator's answers alone; learning rates, the number
    of steps and the divisor (the *expected* batch size) are public. There is no early stopping.
    """
    stage = curator.plan.stage(stage_name)
    parameters = trainable(network)
    examples, divisor = int(stage.parameters["examples"]), float(stage.parameters["batch_size"]) * options.clip_norm
    micro_batch = (compute or Compute()).micro_batch
    query = GradientTerms(network, losses, options.rule(network), examples, micro_batch)
    optimizer = Adam(parameters) if options.optimizer == "adam" else SGD(parameters)
    curator.watch_also(f"optimiser of {stage_name}", optimizer.state)
    average = _Average(parameters)
    network.train()
    with one_thread_if(int(stage.parameters["batch_size"]) <= SMALL_BATCH):
        for step in range(stage.runs):
            noisy = torch.from_numpy(curator.step(stage_name, query)).to(parameters[0])
            factor = cosine(step, stage.runs) if options.schedule == "cosine" else 1.0
            optimizer.step(views_of(noisy / divisor, parameters), options.learning_rate * factor)
            if step >= stage.runs * (1 - options.averaged):
                average.add()
            if progress is not None:
                progress(stage_name, step + 1, stage.runs)
    average.write()
    network.eval()


class _Average:
    """The mean of the weights at the moments when :meth:`add` was called."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self._parameters = parameters
        self._sums = [torch.zeros_like(p) for p in parameters]
        self._count = 0

    @torch.no_grad()
    def add(self) -> None:
        self._count += 1
        for total, parameter in zip(self._sums, self._parameters, strict=True):
            total += parameter

    @torch.no_grad()
    def write(self) -> None:
        if self._count:
            for total, parameter in zip(self._sums, self._parameters, strict=True):
                parameter.copy_(total / self._count)


# -------------------------------------------------------------------- examples


def training_ids(graph: Graph) -> IntArray:
    """The public training ids, labelled or not.

    Guarantee: no label is read, not even to refuse a graph without any: whether an id has one is private. (A plan
    refuses an empty mask, which is public.)
    """
    return np.flatnonzero(graph.mask("train"))


def example_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy, one an example; a node without a label has loss 0, so its term is zero."""
    losses: Tensor = nn.functional.cross_entropy(logits, labels, reduction="none", ignore_index=-1)
    return losses
