"""An event on a Poisson sample of the records, under the change *null*: the classical step of DP-SGD."""

from __future__ import annotations

from dp_accounting.dp_event import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld

from discreet.privacy.events.grids import PLD_INTERVAL


def poisson_pld(event: PoissonSampledDpEvent, count: int) -> pld.PrivacyLossDistribution | None:
    """dp_accounting's distribution of a sampled Gaussian; None for any other mechanism."""
    if not isinstance(event.event, GaussianDpEvent):
        return None
    one = pld.from_gaussian_mechanism(
        event.event.noise_multiplier,
        value_discretization_interval=PLD_INTERVAL,
        sampling_prob=event.sampling_probability,
    )
    return one.self_compose(count)
