"""Losses over randomised labels: the clean class wins, and averages are compared with averages."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from discreet import local
from discreet.graph.graph import Graph
from discreet.methods.lpgnn.noisy_labels import NoisyLabelLoss, reported_loss
from discreet.ops.denoising import kprop_operators


def test_forward_correction_prefers_the_clean_class() -> None:
    """Under the true confusion, the loss over many reports is least at the clean class, not at the frequencies."""
    confusion = torch.tensor(local.label_confusion(num_classes=3, epsilon=1.0), dtype=torch.float32)
    reported = torch.tensor(local.encode_labels(np.zeros(6000, int), num_classes=3, epsilon=1.0))
    rows = torch.arange(6000)
    sure = torch.tensor([[8.0, 0.0, 0.0]]).expand(6000, 3)
    flat = torch.log(confusion[0]).expand(6000, 3)
    forward = NoisyLabelLoss("forward", reported, rows, confusion)
    plain = NoisyLabelLoss("plain", reported, rows, confusion)
    assert forward(sure) < forward(flat)
    assert plain(flat) < plain(sure)
    assert reported_loss(sure, reported, rows, confusion) == pytest.approx(float(forward(sure)), abs=1e-5)


def test_drop_compares_averages() -> None:
    """One hop on a path 0–1–2 with training ends: the middle's target is the mean of the two reports."""
    path = Graph.from_edges([0, 1], [1, 2], np.ones((3, 1)), [0, 0, 1], directed=False)
    operators = kprop_operators(path, 1, "mean")
    loss = NoisyLabelLoss("drop", torch.tensor([0, 0, 1]), torch.tensor([0, 2]), torch.eye(2), operators)
    # No training node neighbours another: each keeps its own report.
    assert torch.allclose(loss._target, torch.eye(2))
    loss = NoisyLabelLoss("drop", torch.tensor([0, 0, 1]), torch.arange(3), torch.eye(2), operators)
    assert torch.allclose(loss._target, torch.tensor([[1.0, 0], [0.5, 0.5], [1.0, 0]]))
