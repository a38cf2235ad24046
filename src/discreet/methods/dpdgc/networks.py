"""The networks of decoupled convolution (DPDGC, figure 2): one over adjacency rows, one that joins both sides."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from discreet.ops.rows import normalize_rows, row_product
from discreet.ops.sparse import SparseMatrix
from discreet.training.encoder_modules import Encoder
from discreet.training.networks import ACTIVATIONS, MLP, Activation, Linear


class RowEmbedding(nn.Module):
    """σ(AW + b)R: adjacency rows embedded by W, read through a head R that is drawn once and never trained.

    Row by row, without anything in which rows meet, so every node has a gradient of its own; that of W touches the
    rows of its neighbours alone. Each embedded row is normalised before σ, so that degree does not set the scale.
    """

    head: Tensor

    def __init__(self, num_nodes: int, width: int, classes: int, activation: Activation, gen: torch.Generator) -> None:
        """Draw W, then R; b starts at zero."""
        super().__init__()
        self.rows = Linear(num_nodes, width, gen)
        drawn = torch.randn(width, classes, generator=gen, device=gen.device)
        self.register_buffer("head", drawn / width**0.5)
        self._activation = ACTIVATIONS[activation]

    def forward(self, adjacency: SparseMatrix) -> Tensor:
        """Logits of these adjacency rows."""
        embedded = self.rows(adjacency)
        hidden = self._activation(nn.functional.layer_norm(embedded, embedded.shape[-1:]))
        logits: Tensor = row_product(hidden, self.head)
        return logits

    @torch.no_grad()
    def constrain(self, row_norm: float) -> None:
        """Scale the rows of W itself, not of a copy, to ``row_norm``."""
        self.rows.weight.copy_(normalize_rows(self.rows.weight) * row_norm)


class RowNetwork(nn.Module):
    """The same without a fixed head: where nothing is protected there is no reason not to train it."""

    def __init__(
        self, num_nodes: int, width: int, classes: int, activation: Activation, dropout: float, gen: torch.Generator
    ) -> None:
        """Draw W, then the head's two layers."""
        super().__init__()
        self.rows = Linear(num_nodes, width, gen)
        self.head = MLP([width, width, classes], activation, dropout, gen)
        self._activation = ACTIVATIONS[activation]

    def forward(self, adjacency: SparseMatrix) -> Tensor:
        """Logits of these adjacency rows."""
        embedded = self.rows(adjacency)
        hidden = self._activation(nn.functional.layer_norm(embedded, embedded.shape[-1:]))
        logits: Tensor = self.head(self.head.dropout(hidden))
        return logits


class JointNetwork(nn.Module):
    """Features and released rows, each through a layer of its own, into one linear head.

    The head starts without the rows: they come in as far as noisy gradients speak for them.
    """

    def __init__(
        self,
        features: int,
        rows: int,
        hidden: tuple[int, int],
        classes: int,
        activation: Activation,
        gen: torch.Generator,
        encoder: Encoder | None = None,
    ) -> None:
        """``hidden`` holds the widths of the two layers, features first; ``encoder`` reads features instead of ours."""
        super().__init__()
        width = hidden[0] if encoder is None else encoder.outputs
        self.features = Linear(features, width, gen) if encoder is None else encoder
        self.rows = Linear(rows, hidden[1], gen)
        self.head = Linear(width + hidden[1], classes, gen)
        self._activation = ACTIVATIONS[activation]
        with torch.no_grad():
            self.head.weight[width:] = 0

    def forward(self, features: Tensor | SparseMatrix, rows: Tensor) -> Tensor:
        """Logits."""
        encoded: Tensor = self.features(features)
        own = encoded if isinstance(self.features, Encoder) else self._between(encoded)
        logits: Tensor = self.head(torch.cat([own, self._between(self.rows(rows))], dim=1))
        return logits

    def _between(self, rows: Tensor) -> Tensor:
        """Normalise and activate."""
        return self._activation(nn.functional.layer_norm(rows, rows.shape[-1:]))


class JointMap(nn.Module):
    """One linear map of features and one of released rows, whose logits add up.

    The map of rows starts at zero and has no bias: rows that say nothing are zero, and then take nothing of a clipped
    gradient from the features.
    """

    def __init__(self, features: int, rows: int, classes: int, gen: torch.Generator) -> None:
        super().__init__()
        self.features = Linear(features, classes, gen)
        self.rows = Linear(rows, classes, gen, bias=False)
        nn.init.zeros_(self.rows.weight)

    def forward(self, features: Tensor | SparseMatrix, rows: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.features(features) + self.rows(rows)
        return logits


class TwoWeights(nn.Module):
    """A product of two experts: log-probabilities from features and from rows, each with a weight of its own."""

    def __init__(self, classes: int) -> None:
        """Both count alike at first."""
        super().__init__()
        self._classes = classes
        self.weights = nn.Parameter(torch.ones(2))

    def forward(self, both: Tensor) -> Tensor:
        """Logits from class probabilities by features, beside log-probabilities by rows."""
        own, rows = both[:, : self._classes], both[:, self._classes :]
        logits: Tensor = self.weights[0] * own.clamp_min(1e-6).log() + self.weights[1] * rows
        return logits
