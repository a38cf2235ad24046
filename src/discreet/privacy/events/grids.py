"""What every kind of event is computed on: the grid of privacy losses, the Rényi orders, and where to give up."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from dp_accounting.dp_event import DpEvent
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp

from discreet.arrays import FloatArray

PLD_INTERVAL = 1e-4
"""Losses are rounded up to multiples of it, dp_accounting's own choice: finer costs time and moves ε by less."""
LARGEST_LOSS = 250.0
"""A single step that loses more is charged as infinite loss: safe, and the grid stays within memory."""
HOPELESS_LOSS = 1000.0
"""An expected loss beyond which no distribution is built: ε is then infinite to this accountant."""
RDP_ORDERS: FloatArray = np.unique(
    np.concatenate(
        [
            1 + np.arange(2, 40) / 20,  # low: where ε is in the tens
            np.arange(30, 60) / 10,
            np.arange(24, 44) / 4,
            np.arange(11, 64),
            np.round(np.geomspace(64, 4096, 44)),  # high: where ε is a few hundredths
        ]
    )
).astype(np.float64)


def hopeless(mean_loss: float, count: int) -> bool:
    """Whether the loss is in the hundreds at once or in the thousands in all: grids would not fit in memory."""
    return mean_loss > LARGEST_LOSS / 4 or mean_loss * count > HOPELESS_LOSS


def everything_lost() -> pld.PrivacyLossDistribution:
    """ε = ∞: safe whatever the truth. A sliver stays finite, for dp_accounting has no distribution of nothing."""
    sliver = np.array([1e-9])
    return pld.PrivacyLossDistribution(pld_pmf.DensePLDPmf(PLD_INTERVAL, 0, sliver, 1.0, pessimistic_estimate=True))


def is_everything_lost(losses: pld.PrivacyLossDistribution) -> bool:
    """Whether this is ε = ∞ at every δ below 1. It stays so in company, and is not composed: slivers of slivers are
    less than dp_accounting keeps.
    """
    return bool(losses._pmf_remove._infinity_mass >= 1)


def curve_by_dp_accounting(event: DpEvent) -> FloatArray | None:
    """Rényi divergences at :data:`RDP_ORDERS` as dp_accounting has them; None where it has none."""
    accountant = rdp.RdpAccountant(RDP_ORDERS)
    if not accountant.supports(event):
        return None
    with _absl_silent():
        accountant.compose(event)
    return np.asarray(accountant._rdp, dtype=np.float64)


@contextmanager
def _absl_silent() -> Iterator[None]:
    """dp_accounting warns of every order that it drops; a dropped order only loosens the bound."""
    logger = logging.getLogger("absl")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
