"""Embeddings from features and labels alone: at edge level both are public, so nothing here costs budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from discreet.arrays import Array, Arrays, FloatArray
from discreet.errors import GraphError, ParameterError
from discreet.graph.graph import PublicFacts
from discreet.graph.parts import PublicPart
from discreet.methods.own_hop import with_labels
from discreet.methods.stored_arrays import stored_rows
from discreet.ops.rows import portions, unit_rows
from discreet.ops.sparse import SparseMatrix, map_rows
from discreet.training.descent import Progress, TrainOptions, train_on_features, training_rows
from discreet.training.networks import MLP, Activation, module_state, restore_module, widths_of

EncoderName = Literal["scores", "spectral", "mlp"]

SPECTRAL_WIDTH = 64
"""d₁ of ``spectral`` where none is given: more directions say more, and each adds noise (docs/gcon.md)."""
MLP_WIDTH = 16
"""d₁ of ``mlp`` where none is given, for the same reason."""
HEAD_RIDGE = 1e-3
"""Ridge of a linear head, as a share of the number of rows (unit rows: of the trace of their Gram matrix)."""


def encoder_width(encoder: EncoderName, width: int | None, public: PublicFacts) -> int:
    """d₁, the dimension that noise pays for, from public facts."""
    if encoder == "scores":
        if width is not None and width != public.num_classes:
            raise ParameterError(f"the scores encoder has one column per class: leave width out, not {width}")
        return public.num_classes
    if width is not None and width > public.num_features:
        raise ParameterError(f"width must be at most the number of features, {public.num_features}, not {width}")
    if encoder == "mlp":
        return min(MLP_WIDTH, public.num_features) if width is None else width
    limit = min(public.num_features, public.num_nodes)
    return min(SPECTRAL_WIDTH if width is None else width, limit)


@dataclass(frozen=True)
class EncoderSettings:
    """Which encoder, how wide its embedding is, and the network behind it."""

    encoder: EncoderName
    width: int
    hidden: int
    layers: int
    activation: Activation
    dropout: float
    centre: bool = True

    def network_sizes(self, public: PublicFacts) -> list[int]:
        """The widths of the network; that of ``mlp`` embeds in its last hidden layer."""
        if self.encoder == "mlp":
            return [*widths_of(public.num_features, self.hidden, self.layers - 1, self.width), public.num_classes]
        return widths_of(public.num_features, self.hidden, self.layers, public.num_classes)


class PublicEncoder:
    """A network on features, and unit-norm embeddings of every node.

    ``mlp``: the activations of the network's last hidden layer (the encoder of the GCON paper), centred where the
    settings say so: a linear map without intercept does badly on rows with a large common part.
    ``spectral``: features along their leading singular directions, no label involved.
    ``scores``: ``spectral``, followed by a ridge fit of the network's predictions (with training labels put in),
    centred: one column per class.

    Guarantee: reads features, training labels and the split, never an edge. Rows have norm 1 (or are zero).
    """

    def __init__(self, settings: EncoderSettings, public: PublicFacts, generator: torch.Generator) -> None:
        """Draw the network; nothing is read yet."""
        self._settings = settings
        self._public = public
        self._generator = generator
        self.network = MLP(settings.network_sizes(public), settings.activation, settings.dropout, generator)
        self._arrays: Arrays = {}

    def fit(self, part: PublicPart, options: TrainOptions, progress: Progress | None) -> None:
        """Train the network on labelled nodes, then find the directions and the head, if the encoder has them."""
        check_every_class_is_labelled(part)
        train_on_features(self.network, part, options, self._generator, title="encoder", progress=progress)
        if self._settings.encoder == "mlp":
            hidden = self._hidden(part)
            self._arrays["centre"] = hidden.mean(axis=0) if self._settings.centre else np.zeros(hidden.shape[1])
        else:
            seed = int(torch.randint(2**31 - 1, (1,), generator=self._generator, device=self._generator.device))
            self._arrays["basis"] = leading_directions(part.features, self._spectral_width(), seed)
        if self._settings.encoder == "scores":
            rows = self._spectral(part)
            targets = with_labels(self.probabilities(part), part) - 1 / part.num_classes
            head = ridge_head(rows, targets)
            self._arrays["head"], self._arrays["centre"] = head, (rows @ head).mean(axis=0)

    def probabilities(self, part: PublicPart) -> FloatArray:
        """The network's own opinion of every node."""
        logits = map_rows(self.network.eval(), part.features, self._generator.device)
        return torch.softmax(logits, dim=1).cpu().numpy().astype(np.float64)

    def embed(self, part: PublicPart) -> FloatArray:
        """One unit row per node, d₁ wide."""
        if self._settings.encoder == "mlp":
            return unit_rows(self._hidden(part) - self._arrays["centre"])
        rows = self._spectral(part)
        if self._settings.encoder == "spectral":
            return rows
        return unit_rows(rows @ self._arrays["head"] - self._arrays["centre"])

    def state(self) -> Arrays:
        """Everything that :meth:`restore` needs."""
        return {**module_state("network", self.network), **{f"encoder.{k}": v for k, v in self._arrays.items()}}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Inverse of :meth:`state`."""
        restore_module("network", self.network, state)
        shapes = self._shapes()
        self._arrays = {name: stored_rows(state, f"encoder.{name}", *shape) for name, shape in shapes.items()}

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the arrays beside the network."""
        if self._settings.encoder == "mlp":
            return {"centre": (self._settings.width,)}
        width, classes = self._spectral_width(), self._public.num_classes
        shapes: dict[str, tuple[int, ...]] = {"basis": (self._public.num_features, width)}
        if self._settings.encoder == "scores":
            shapes |= {"head": (width, classes), "centre": (classes,)}
        return shapes

    def _spectral_width(self) -> int:
        settings = self._settings
        return settings.width if settings.encoder == "spectral" else encoder_width("spectral", None, self._public)

    def _spectral(self, part: PublicPart) -> FloatArray:
        return spectral_rows(part.features, self._arrays["basis"])

    def _hidden(self, part: PublicPart) -> FloatArray:
        def embed(features: Tensor | SparseMatrix) -> Tensor:
            hidden = self.network.eval().hidden(features)
            assert isinstance(hidden, Tensor)  # the encoder has at least two layers
            return hidden

        return map_rows(embed, part.features, self._generator.device).cpu().numpy().astype(np.float64)


def check_every_class_is_labelled(part: PublicPart) -> None:
    """Refuse a training set without a label of some class: nothing could ever be said of it."""
    present = np.bincount(part.labels[training_rows(part)], minlength=part.num_classes)
    missing = np.flatnonzero(present == 0)
    if len(missing):
        names = ", ".join(str(j) for j in missing[:5])
        raise GraphError(f"no training node has a label of class {names}: label one, or drop the class")


def ridge_head(rows: FloatArray, targets: FloatArray) -> FloatArray:
    """The linear map from rows to targets with a small ridge."""
    gram = rows.T @ rows + HEAD_RIDGE * len(rows) * np.eye(rows.shape[1])
    return np.asarray(np.linalg.solve(gram, rows.T @ targets))


def unit_features(features: Any) -> Any:
    """Feature rows of norm 1, sparse if they were."""
    if not sp.issparse(features):
        return unit_rows(np.asarray(features, dtype=np.float64))
    matrix = sp.csr_matrix(features, dtype=np.float64)
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sp.diags(1 / np.where(norms > 0, norms, 1.0)) @ matrix


NARROW = 512
"""Dense features up to this many columns have a Gram matrix that is quickly made and solved."""


def leading_directions(features: Any, width: int, seed: int) -> FloatArray:
    """The leading right singular vectors of the unit rows (d₀ × width).

    Eigenvectors of their Gram matrix where features are dense and narrow, else found by random projections.
    """
    if isinstance(features, np.ndarray) and features.shape[1] <= NARROW:
        gram = np.zeros((features.shape[1],) * 2)
        for part in portions(len(features)):
            rows = unit_features(features[part])
            gram += rows.T @ rows
        return np.ascontiguousarray(np.linalg.eigh(gram)[1][:, ::-1][:, :width])
    _, _, right = randomized_svd(unit_features(features), width, random_state=seed)
    return np.ascontiguousarray(right.T)


def spectral_rows(features: Any, basis: FloatArray) -> FloatArray:
    """One unit row per node: its features along the directions, of dense features a portion at a time."""
    if not isinstance(features, np.ndarray):
        return unit_rows(np.asarray(unit_features(features) @ basis, dtype=np.float64))
    found = np.empty((len(features), basis.shape[1]))
    for part in portions(len(features)):
        found[part] = unit_rows(unit_features(features[part]) @ basis)
    return found
