"""Laplace noise: ``noise_multiplier`` is its scale over the sensitivity in L1."""

from __future__ import annotations

from dp_accounting.dp_event import LaplaceDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.privacy.events.grids import PLD_INTERVAL


def laplace_pld(event: LaplaceDpEvent, count: int) -> pld.PrivacyLossDistribution:
    """dp_accounting's distribution, composed with itself."""
    one = pld.from_laplace_mechanism(event.noise_multiplier, value_discretization_interval=PLD_INTERVAL)
    return one.self_compose(count)
