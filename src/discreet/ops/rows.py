"""Bounding rows: unit norm, or norm at most C. What one node can contribute starts here."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from discreet.errors import ParameterError
from discreet.graph.clean import Features

# Dividing in float32 can leave a norm one rounding step above 1; this margin keeps it below.
_MARGIN = 1 - 1e-6


def normalize_rows(rows: Tensor) -> Tensor:
    """Each row scaled to unit ℓ2 norm; a zero row stays zero.

    Guarantee: no row of the result has norm above 1. Depends on each row alone.
    """
    # Dividing by the largest entry first keeps squares away from where they vanish or overflow.
    largest = rows.abs().amax(dim=1, keepdim=True)
    scaled = rows / torch.where(largest > 0, largest, torch.ones_like(largest))
    norms = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
    unit: Tensor = scaled / norms.clamp_min(1.0)
    return unit * _MARGIN


def rows_of_norm(rows: Features, norm: float) -> Features:
    """Each row scaled to this ℓ2 norm, dense or CSR as given; a zero row stays zero. Depends on each row alone."""
    matrix: Any = rows
    sparse = sp.issparse(rows)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(matrix.indptr) if sparse else rows.shape[1])
    values = np.asarray(matrix.data if sparse else rows, dtype=np.float64).ravel()
    largest = np.zeros(rows.shape[0])
    np.maximum.at(largest, row, np.abs(values))
    values = values / np.where(largest > 0, largest, 1)[row]  # so that no square vanishes or overflows
    lengths = np.sqrt(np.bincount(row, weights=values**2, minlength=rows.shape[0]))
    values = (values * (norm / np.where(lengths > 0, lengths, 1))[row]).astype(rows.dtype)
    return (
        sp.csr_array((values, matrix.indices, matrix.indptr), shape=rows.shape)
        if sparse
        else values.reshape(rows.shape)
    )


def clip_rows(rows: Tensor, max_norm: float) -> Tensor:
    """Each row scaled down to ℓ2 norm at most ``max_norm``; shorter rows are left alone.

    Guarantee: no row of the result has norm above ``max_norm``. Depends on each row alone. ``max_norm``
    must be a constant or released: reading it from the rows would leak.
    """
    if not max_norm > 0:
        raise ParameterError(f"the clip norm must be positive, not {max_norm}")
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    scale: Tensor = max_norm * _MARGIN / norms.clamp_min(torch.finfo(rows.dtype).tiny)
    return rows * scale.clamp_max(1.0)


def finite_rows(rows: Tensor) -> Tensor:
    """Each row as it is, or zero where an entry overflowed. Depends on each row alone."""
    return torch.where(torch.isfinite(rows).all(dim=1, keepdim=True), rows, torch.zeros_like(rows))


def damp_rows(rows: Tensor) -> Tensor:
    """Each row rescaled to norm log(1 + norm): directions stay, hubs do not dominate. Post-processing only."""
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(torch.finfo(rows.dtype).tiny)
    factors: Tensor = torch.log1p(norms) / norms
    return rows * factors
