"""Whether a network that noisy steps train on features is one linear map: decided by public facts, for all methods."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

from discreet.errors import ParameterError
from discreet.graph.clean import Features
from discreet.graph.graph import PublicFacts
from discreet.ops.rows import LENGTH_COLUMNS, rows_of_norm
from discreet.privacy.budget import Privacy
from discreet.privacy.events.gaussian import gaussian_mu
from discreet.training.networks import widths_of

WORTH_HIDING = 30.0
"""The n·μ/√parameters of a network from which its hidden layer is worth its parameters."""
LINEAR_STEP = 0.05
"""The learning rate that suits a linear map on rows of one norm."""
NETWORK_STEP = 0.01
"""... and a network with hidden layers, where a method has no other."""
ROW_NORM = 4.5
"""A linear map sees features of each node scaled to this norm, so that steps of one size suit all graphs; public."""
LENGTH_NORM = 1.5
"""... and beside them how long they were, in columns of this norm: on some graphs that is what tells classes apart."""


@dataclass(frozen=True)
class FeatureModel:
    """A network on features, of ``layers`` linear maps, or one linear map where noise would drown a hidden layer.

    ``linear`` is what the user asked for, None to decide by public facts. With ``own_encoder`` the network is the
    user's, and no linear map. ``row_lengths`` says whether a linear map also reads how long a feature row was.
    """

    privacy: Privacy
    facts: PublicFacts
    hidden: int
    layers: int
    linear: bool | None = None
    own_encoder: bool = False
    row_lengths: bool = True

    def __post_init__(self) -> None:
        """An encoder is hidden layers."""
        if self.linear and self.own_encoder:
            raise ParameterError("with linear=True there are no hidden layers: leave encoder out")

    @cached_property
    def is_linear(self) -> bool:
        """Whether it is one linear map: asked for, or because noise on a hidden layer would outweigh it."""
        if self.own_encoder:
            return False
        if self.linear is not None or self.layers == 1:
            return self.linear is not False
        return self.pull(self.layers) < WORTH_HIDING

    @property
    def widths(self) -> list[int]:
        """The widths of the network."""
        features, *rest = self._widths(1 if self.is_linear else self.layers)
        return [features + (LENGTH_COLUMNS if self.length_norm else 0), *rest]

    @property
    def row_norm(self) -> float | None:
        """The norm of feature rows as a linear map sees them."""
        return ROW_NORM if self.is_linear else None

    @property
    def length_norm(self) -> float:
        """The norm of what a linear map reads of the length of rows; 0 where it reads nothing of it."""
        return LENGTH_NORM if self.is_linear and self.row_lengths else 0.0

    def learning_rate(self, given: float | None, of_network: float = NETWORK_STEP) -> float:
        """Of its noisy steps: what was asked for, or what suits its kind."""
        if given is not None:
            return given
        return LINEAR_STEP if self.is_linear else of_network

    def rows(self, features: Features) -> Features:
        """What the network reads of a graph's features: each row by itself."""
        return features if self.row_norm is None else rows_of_norm(features, self.row_norm, self.length_norm)

    def describe(self) -> str:
        """What it is, in words."""
        if self.own_encoder:
            return "the encoder that was given"
        return "one linear map" if self.is_linear else f"a network of {self.layers} layers"

    def pull(self, layers: int) -> float:
        """How clearly labels can teach a network of that many layers, before any data is read.

        n training ids pull on the gradient by n clip norms at most, and noise on P parameters pushes by √P·σ. Over all
        steps together the ratio is n·μ/√P.
        """
        widths = self._widths(layers)
        parameters = sum((before + 1) * after for before, after in itertools.pairwise(widths))
        return self.facts.num_train * self.mu / math.sqrt(parameters)

    @cached_property
    def mu(self) -> float:
        """The whole budget as the mean of a Gaussian."""
        return gaussian_mu(self.privacy.epsilon, self.privacy.resolve_delta(self.facts.num_nodes))

    def _widths(self, layers: int) -> list[int]:
        return widths_of(self.facts.num_features, self.hidden, layers, self.facts.num_classes)
