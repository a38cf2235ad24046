"""A small network that reads what nodes heard of neighbours and of hubs, beside what their features say.

Where hubs stand for classes, which hub stands for which is more than a few weights can say. Training ids hear one
another in both halves of the evidence, under the noise that receivers hear under, and their labels are public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from discreet.graph.graph import Graph
from discreet.methods.evidence_reader import inputs
from discreet.methods.gap import Head
from discreet.methods.networks import widths_of
from discreet.methods.stacking import train_beside
from discreet.methods.training import Progress
from discreet.ops.sparse import SparseMatrix

if TYPE_CHECKING:
    from discreet.methods.hop_bayes import HopBayes

FloatArray = npt.NDArray[np.float64]
_DROPOUT = 0.5
_OWN_DROPOUT = 0.5
_BLOCKS = 5
"""Own probabilities; sums and what hubs tell, each damped and as directions."""


def zero_head(model: HopBayes) -> Head:
    """A head that says nothing: in the place of one that was not needed, or to be filled."""
    head = _new_head(model, torch.Generator(model._device))
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
    return head


def _new_head(model: HopBayes, generator: torch.Generator) -> Head:
    classes = model.public_.num_classes
    widths = widths_of(_BLOCKS * classes, model.hidden, model.layers, classes)
    return Head(widths, model.activation, _DROPOUT, generator)


def train_head(model: HopBayes, graph: Graph, sums: FloatArray, hubs: FloatArray, progress: Progress | None) -> Head:
    """Fit the labels of training ids from the rows of all nodes: released values and public labels alone."""
    head = _new_head(model, model._generator)

    def view(features: Tensor | SparseMatrix) -> Tensor:
        return torch.softmax(model.network_(features), dim=1)

    beside = _tensor(_beside(model, sums, hubs), model)
    options, generator = model._options(), model._generator
    train_beside(
        head, model.network_, view, beside, graph, options, generator,
        own_dropout=_OWN_DROPOUT, title="hubs", progress=progress,
    )  # fmt: skip
    return head


@torch.no_grad()
def head_logits(model: HopBayes, head: Head, own: FloatArray, sums: FloatArray, hubs: FloatArray) -> FloatArray:
    """What the head makes of a node's own probabilities and its rows."""
    read = head(_tensor(np.hstack([own, _beside(model, sums, hubs)]), model))
    return np.asarray(read.cpu().numpy().astype(np.float64))


def _beside(model: HopBayes, sums: FloatArray, hubs: FloatArray) -> FloatArray:
    return np.hstack([inputs(sums, model.noise_std_), inputs(hubs, model.noise_std_)])


def _tensor(rows: FloatArray, model: HopBayes) -> Tensor:
    return torch.from_numpy(rows).float().to(model._device)
