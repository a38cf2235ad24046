"""Parameters that every method with the plain training loop shares."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from pydantic import Field

from discreet.methods.base import NodeClassifier
from discreet.methods.networks import Activation
from discreet.methods.training import TrainOptions


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
        Rows a step; None for all.
    """

    _: KW_ONLY
    hidden: Annotated[int, Field(ge=1)] = 64
    layers: Annotated[int, Field(ge=1)] = 2
    activation: Activation = "relu"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.8
    learning_rate: Annotated[float, Field(gt=0)] = 0.01
    weight_decay: Annotated[float, Field(ge=0)] = 5e-4
    epochs: Annotated[int, Field(ge=0)] = 30
    batch_size: Annotated[int, Field(ge=1)] | None = 256

    def _options(self) -> TrainOptions:
        return TrainOptions(self.epochs, self.learning_rate, self.weight_decay, self.batch_size)
