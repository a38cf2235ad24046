"""ε from events: exact for Gaussians, summed for black boxes, privacy loss distributions, and Rényi divergences.

Each accountant takes a composed event and a δ and returns an upper bound on ε, or None where it does not
know an event. dp_accounting does the numerical work, always on Δ-normalised events, one leaf at a time:
its own composition drops the count of randomised response, and its two accountants disagree on what
"replace one" doubles, so neither its counting nor its relations are used.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any

import numpy as np
import numpy.typing as npt
from dp_accounting import NeighboringRelation
from dp_accounting.dp_event import DpEvent
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.gaussian import gaussian_epsilon
from discreet.privacy.gaussian_pairs import LARGEST_LOSS
from discreet.privacy.node_sampling import amplified, split_sampling

FloatArray = npt.NDArray[np.float64]
PLD_INTERVAL = 1e-4
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

PldBuilder = Callable[[Any, int], pld.PrivacyLossDistribution]
RdpBuilder = Callable[[Any], FloatArray | None]
Account = Callable[[DpEvent, float], float | None]


def spend(event: DpEvent, delta: float) -> dict[str, float]:
    """ε at this δ under every accountant that knows the whole event."""
    return dict(_spend(json.dumps(events.event_to_json(event)), delta))


@lru_cache(maxsize=4096)
def _spend(event: str, delta: float) -> tuple[tuple[str, float], ...]:
    """Remembered by content, because plans are made and certificates written many times over one event."""
    composed = events.event_from_json(json.loads(event))
    found = ((name, account(composed, delta)) for name, account in ACCOUNTANTS.items())
    return tuple((name, epsilon) for name, epsilon in found if epsilon is not None)


def epsilon_of(event: DpEvent, delta: float) -> float:
    """The certified ε: the smallest bound that any accountant proves.

    Where the closed form applies nothing can be smaller, so nothing else is computed.
    """
    exact = exact_epsilon(event, delta)
    if exact is not None:
        return exact
    bounds = spend(event, delta)
    if not bounds:
        kinds = sorted({type(leaf).__name__ for leaf, _ in events.leaves(event)})
        raise PrivacyError(f"no accountant knows this combination of events: {', '.join(kinds)}")
    return min(bounds.values())


# -------------------------------------------------------------------- sampling first


def _after_sampling(account: Account) -> Account:
    """The accountant for compositions that may start with a Poisson sample of the nodes."""

    def with_sampling(event: DpEvent, delta: float) -> float | None:
        probability, rest = split_sampling(event)
        if probability == 1:
            return account(rest, delta)
        if delta >= probability:
            return 0.0  # with probability 1 − q nothing of the unit was read at all
        found = account(rest, delta / probability)
        return None if found is None else amplified(found, probability)

    return wraps(account)(with_sampling)


# -------------------------------------------------------------------- exact


@_after_sampling
def exact_epsilon(event: DpEvent, delta: float) -> float | None:
    """Closed form where every leaf is a Gaussian: k of them compose to one with μ² = Σ 1/σ²."""
    mu_squared = 0.0
    for leaf, count in events.leaves(event):
        if isinstance(leaf, events.NonPrivateDpEvent):
            return math.inf
        if not isinstance(leaf, events.GaussianDpEvent):
            return None
        if leaf.noise_multiplier == 0:
            return math.inf
        mu_squared += count / leaf.noise_multiplier**2
    return gaussian_epsilon(math.sqrt(mu_squared), delta)


# -------------------------------------------------------------------- basic


def basic_epsilon(event: DpEvent, delta: float) -> float | None:
    """Basic composition: black boxes of (ε_i, δ_i) together are (Σε_i, Σδ_i); the only one that is exact at δ = 0."""
    total, aside = 0.0, 0.0
    for leaf, count in events.leaves(event):
        if not isinstance(leaf, events.ApproximateDpEvent):
            return None
        total += count * leaf.epsilon
        aside += count * leaf.delta
    return total if aside <= delta else None


# -------------------------------------------------------------------- privacy loss distributions


@_after_sampling
def pld_epsilon(event: DpEvent, delta: float) -> float | None:
    """Numerical composition of pessimistic privacy loss distributions."""
    total = pld.identity(value_discretization_interval=PLD_INTERVAL)
    for leaf, count in events.leaves(event):
        if _is_free_of_noise(leaf):
            return math.inf
        builder = _PLD.get(type(leaf))
        if builder is None or not _pld_knows(leaf):
            return None
        total = total.compose(builder(leaf, count))
    return float(total.get_epsilon_for_delta(delta))


def hopeless(mean_loss: float, count: int) -> bool:
    """Whether the loss is in the hundreds at once or in the thousands in all: grids would not fit in memory."""
    return mean_loss > LARGEST_LOSS / 4 or mean_loss * count > HOPELESS_LOSS


def everything_lost() -> pld.PrivacyLossDistribution:
    """ε = ∞: safe whatever the truth. A sliver stays finite, for dp_accounting cannot compose nothing."""
    sliver = np.array([1e-9])
    return pld.PrivacyLossDistribution(pld_pmf.DensePLDPmf(PLD_INTERVAL, 0, sliver, 1.0, pessimistic_estimate=True))


def _pld_gaussian(event: Any, count: int) -> pld.PrivacyLossDistribution:
    if hopeless(1 / (2 * event.noise_multiplier**2), count):
        return everything_lost()
    return pld.from_gaussian_mechanism(
        event.noise_multiplier / math.sqrt(count), value_discretization_interval=PLD_INTERVAL
    )


def _pld_laplace(event: Any, count: int) -> pld.PrivacyLossDistribution:
    one = pld.from_laplace_mechanism(event.noise_multiplier, value_discretization_interval=PLD_INTERVAL)
    return one.self_compose(count)


def _pld_poisson(event: Any, count: int) -> pld.PrivacyLossDistribution:
    one = pld.from_gaussian_mechanism(
        event.event.noise_multiplier,
        value_discretization_interval=PLD_INTERVAL,
        sampling_prob=event.sampling_probability,
    )
    return one.self_compose(count)


def _pld_randomized_response(event: Any, count: int) -> pld.PrivacyLossDistribution:
    one = pld.from_randomized_response(
        event.noise_parameter,
        event.num_buckets,
        value_discretization_interval=PLD_INTERVAL,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,  # REPLACE_SPECIAL compares with a blank: ln 2, not ln 3
    )
    return one.self_compose(count)


def _pld_approximate(event: Any, count: int) -> pld.PrivacyLossDistribution:
    # dp_accounting rounds the two atoms of this distribution to its grid pessimistically.
    one = pld.from_privacy_parameters(
        pld.common.DifferentialPrivacyParameters(event.epsilon, event.delta),
        value_discretization_interval=PLD_INTERVAL,
    )
    return one.self_compose(count)


_PLD: dict[type[DpEvent], PldBuilder] = {
    events.GaussianDpEvent: _pld_gaussian,
    events.LaplaceDpEvent: _pld_laplace,
    events.PoissonSampledDpEvent: _pld_poisson,
    events.RandomizedResponseDpEvent: _pld_randomized_response,
    events.ApproximateDpEvent: _pld_approximate,
}


def _pld_knows(leaf: DpEvent) -> bool:
    return not isinstance(leaf, events.PoissonSampledDpEvent) or isinstance(leaf.event, events.GaussianDpEvent)


# -------------------------------------------------------------------- Rényi


@_after_sampling
def rdp_epsilon(event: DpEvent, delta: float) -> float | None:
    """Rényi composition; the δ of black boxes is set aside before the conversion."""
    total = np.zeros_like(RDP_ORDERS)
    aside = 0.0
    for leaf, count in events.leaves(event):
        if _is_free_of_noise(leaf):
            return math.inf
        if isinstance(leaf, events.ApproximateDpEvent):
            aside += count * leaf.delta
        curve = rdp_curve(leaf)
        if curve is None:
            return None
        total = total + count * curve
    if aside >= delta:
        return math.inf
    if not total.any():
        return 0.0
    epsilon, _ = rdp.compute_epsilon(RDP_ORDERS, total, delta - aside)
    return float(epsilon)


def rdp_curve(leaf: DpEvent) -> FloatArray | None:
    """Rényi divergences of one elementary event at :data:`RDP_ORDERS`; None where it is not known."""
    if type(leaf) in _RDP:
        return _RDP[type(leaf)](leaf)
    return _rdp_by_dp_accounting(leaf)


def _rdp_pure(epsilon: float) -> FloatArray:
    """Rényi divergence of a pure ε mechanism: that of randomised response with two outcomes (Mironov 2017)."""
    log_p, log_q = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))
    a = RDP_ORDERS
    one, two = a * log_p + (1 - a) * log_q, a * log_q + (1 - a) * log_p
    return np.minimum(np.logaddexp(one, two) / (a - 1), epsilon)


def _rdp_randomized_response(event: Any) -> FloatArray:
    """Keep with probability 1 − p(b − 1)/b against each other bucket with p/b."""
    keep = 1 - event.noise_parameter * (event.num_buckets - 1) / event.num_buckets
    other = event.noise_parameter / event.num_buckets
    return _rdp_pure(math.log(keep / other))


def _rdp_by_dp_accounting(leaf: DpEvent) -> FloatArray | None:
    accountant = rdp.RdpAccountant(RDP_ORDERS)
    if not accountant.supports(leaf):
        return None
    with _absl_silent():
        accountant.compose(leaf)
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


_RDP: dict[type[DpEvent], RdpBuilder] = {
    events.ApproximateDpEvent: lambda event: _rdp_pure(event.epsilon),
    events.RandomizedResponseDpEvent: _rdp_randomized_response,
}


def register_accounting(
    kind: type[DpEvent], *, pld_of: PldBuilder | None = None, rdp_of: RdpBuilder | None = None
) -> None:
    """Teach the accountants an event: its PLD for a count, and its Rényi curve at :data:`RDP_ORDERS`."""
    if pld_of is not None:
        _PLD[kind] = pld_of
    if rdp_of is not None:
        _RDP[kind] = rdp_of


def _is_free_of_noise(leaf: DpEvent) -> bool:
    inner = leaf.event if isinstance(leaf, events.PoissonSampledDpEvent) else leaf
    if isinstance(inner, events.NonPrivateDpEvent):
        return True
    return any(getattr(inner, name, 1) == 0 for name in ("noise_multiplier", "noise_parameter"))


ACCOUNTANTS: dict[str, Account] = {
    "exact": exact_epsilon,
    "basic": basic_epsilon,
    "pld": pld_epsilon,
    "rdp": rdp_epsilon,
}


@lru_cache(maxsize=1)
def accountant_versions() -> dict[str, str]:
    """What computed the figures, for the certificate."""
    from importlib.metadata import version

    return {"dp-accounting": version("dp-accounting"), "scipy": version("scipy")}
