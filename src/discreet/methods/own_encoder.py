"""A parameter that several methods share: an encoder that the user brings, in the place of our hidden layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import torch

from discreet.graph.graph import PublicFacts
from discreet.methods.base import NodeClassifier
from discreet.methods.parameters import OwnEncoder
from discreet.privacy.plan import Plan
from discreet.training.encoder_modules import Encoder, build_encoder, read_encoder


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

    def plan(self, public: PublicFacts, extra: Sequence[PublicFacts] = ()) -> Plan:
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
