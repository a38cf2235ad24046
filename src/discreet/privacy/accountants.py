"""ε from events: exact for Gaussians, summed for black boxes, privacy loss distributions, and Rényi divergences.

Each accountant takes a composed event and a δ and returns an upper bound on ε, or None where it does not
know an event. What is known of an event is read off the table of :mod:`discreet.privacy.events`. dp_accounting does
the numerical work, always on Δ-normalised events, one leaf at a time: its own composition drops the count of
randomised response, and its two accountants disagree on what "replace one" doubles, so neither its counting nor its
relations are used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache, wraps

import numpy as np
from dp_accounting.dp_event import DpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.events.gaussian import gaussian_epsilon, gaussian_mu
from discreet.privacy.events.grids import PLD_INTERVAL, RDP_ORDERS, everything_lost, hopeless, is_everything_lost
from discreet.privacy.events.node_sampling import amplified
from discreet.privacy.events.table import rdp_curve
from discreet.privacy.levels import Level, NeighborLevel, NodeLevel

__all__ = [
    "ACCOUNTANTS",
    "PLD_INTERVAL",
    "RDP_ORDERS",
    "accountant_versions",
    "basic_epsilon",
    "composed_losses",
    "composed_mu",
    "epsilon_of",
    "epsilon_of_two",
    "everything_lost",
    "exact_epsilon",
    "exact_factor",
    "group_note",
    "hopeless",
    "pld_epsilon",
    "rdp_curve",
    "rdp_epsilon",
    "spend",
]

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
        probability, rest = events.split_sampling(event)
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
    mu = composed_mu(event)
    if mu is None or math.isinf(mu):
        return mu
    return gaussian_epsilon(mu, delta)


def exact_factor(event: DpEvent, epsilon: float, delta: float) -> float | None:
    """The noise factor at which :func:`exact_epsilon` is ε, to rounding; None where no closed form gives one.

    The event must not start with a sample of the nodes.
    """
    mu = composed_mu(event)
    if mu is None or math.isinf(mu) or delta <= 0:
        return None
    return mu / gaussian_mu(epsilon, delta)


def composed_mu(event: DpEvent) -> float | None:
    """μ of the one Gaussian that a composition equals; infinite without noise, None where a leaf is no Gaussian."""
    mu_squared = 0.0
    for leaf, count in events.leaves(event):
        variance_of = events.kind_of(leaf).variance
        if variance_of is None:
            return None
        variance = variance_of(leaf)
        if variance == 0:
            return math.inf
        mu_squared += count / variance
    return math.sqrt(mu_squared)


# -------------------------------------------------------------------- basic


def basic_epsilon(event: DpEvent, delta: float) -> float | None:
    """Basic composition: black boxes of (ε_i, δ_i) together are (Σε_i, Σδ_i); the only one that is exact at δ = 0."""
    total, aside = 0.0, 0.0
    for leaf, count in events.leaves(event):
        box = events.kind_of(leaf).black_box
        if box is None:
            return None
        epsilon, failing = box(leaf)
        total += count * epsilon
        aside += count * failing
    return total if aside <= delta else None


# -------------------------------------------------------------------- privacy loss distributions


PLD_ROUNDING, CONVOLUTION_ROUNDING = 1e-14, 3e-16
"""What the rounding of one run, and of one distribution in it, may hide of δ: see :func:`pld_rounding`."""


def pld_rounding(event: DpEvent) -> float:
    """What is set aside of δ for the rounding of a composition, which is not pessimistic.

    Distributions are composed by Fourier transforms: raising N values to the power T loses about T·u·log N of the total
    mass (u = 2⁻⁵³). Measured: 2e-17 for each of 1,000 Gaussians, against their closed form, and at most 4.2e-17 for
    each of up to 20,000 picks, against distributions that were tilted so that tails do not round away.
    :data:`PLD_ROUNDING` for each run is five hundred times that. One run of a top-K selection composes as many
    distributions as there are picks: no less than :data:`CONVOLUTION_ROUNDING` for each of them.
    """
    counted = [(count, count * events.kind_of(leaf).convolved(leaf)) for leaf, count in events.leaves(event)]
    runs, convolved = (sum(column) for column in zip(*counted, strict=True)) if counted else (0, 0)
    return max(PLD_ROUNDING * runs if runs > 1 else 0.0, CONVOLUTION_ROUNDING * convolved if convolved > 1 else 0.0)


@_after_sampling
def pld_epsilon(event: DpEvent, delta: float) -> float | None:
    """Numerical composition of pessimistic privacy loss distributions.

    Guarantee: pessimistic in floating point too. :func:`pld_rounding` is set aside of δ, and where δ has no such room
    this accountant does not answer.
    """
    aside = pld_rounding(event)
    return pld_without_allowance(event, delta - aside) if aside <= delta / 2 else None


def pld_without_allowance(event: DpEvent, delta: float) -> float | None:
    """The same without regard to rounding: what version 0.1 certified."""
    if any(events.is_free_of_noise(leaf) for leaf, _ in events.leaves(event)):
        return math.inf
    total = composed_losses(event)
    return None if total is None else float(total.get_epsilon_for_delta(delta))


def composed_losses(event: DpEvent) -> pld.PrivacyLossDistribution | None:
    """The distribution of a whole composition, pessimistic but for rounding; None where a part has none."""
    return _composed_losses(json.dumps(events.event_to_json(event)))


@lru_cache(maxsize=8)
def _composed_losses(written: str) -> pld.PrivacyLossDistribution | None:
    """Remembered by content: a report asks for the same composition at many ε, and one of many steps takes seconds."""
    event = events.event_from_json(json.loads(written))
    total, lost = pld.identity(value_discretization_interval=PLD_INTERVAL), False
    for leaf, count in events.leaves(event):
        build = events.kind_of(leaf).pld
        losses = None if build is None else build(leaf, count)
        if losses is None:
            return None
        lost = lost or is_everything_lost(losses)
        total = total if lost else total.compose(losses)
    return everything_lost() if lost else total


def epsilon_of_version_0_1(event: DpEvent, delta: float) -> float | None:
    """The ε that version 0.1 certified, to check its certificates by; None where only this version has an answer."""
    return _after_sampling(pld_without_allowance)(event, delta)


# -------------------------------------------------------------------- Rényi


@_after_sampling
def rdp_epsilon(event: DpEvent, delta: float) -> float | None:
    """Rényi composition; the δ of black boxes is set aside before the conversion."""
    total = np.zeros_like(RDP_ORDERS)
    aside = 0.0
    for leaf, count in events.leaves(event):
        if events.is_free_of_noise(leaf):
            return math.inf
        kind = events.kind_of(leaf)
        if kind.black_box is not None:
            aside += count * kind.black_box(leaf)[1]
        curve = None if kind.rdp is None else kind.rdp(leaf)
        if curve is None:
            return None
        total = total + count * curve
    if aside >= delta:
        return math.inf
    if not total.any():
        return 0.0
    epsilon, _ = rdp.compute_epsilon(RDP_ORDERS, total, delta - aside)
    return float(epsilon)


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


# -------------------------------------------------------------------- two units together


def epsilon_of_two(event: DpEvent, delta: float) -> float:
    """An upper bound on ε when two units change at once, for every run of every event.

    Guarantee: two units together move a Gaussian query twice as far, change at most 2k terms of a sampled step
    (each anywhere within the clip norm), fail a bound of probability δ′ with at most 2δ′, and are not both missed
    by a sample of nodes with probability 1 − (1 − q)². Closed form for Gaussians, Rényi otherwise: quick, and not
    the tightest.
    """
    doubled = events.for_two_units(event)
    exact = exact_epsilon(doubled, delta)
    if exact is not None:
        return exact
    bound = rdp_epsilon(doubled, delta)
    return math.inf if bound is None else bound


def group_note(level: Level, event: DpEvent, delta: float) -> str | None:
    """A sentence for the plan, where the level has units that share a friendship: on the owned basis it is in two."""
    if not isinstance(level, NodeLevel | NeighborLevel) or level.edges != "owned":
        return None
    epsilon = epsilon_of_two(event, delta)
    stated = f"epsilon {epsilon:.4g}" if math.isfinite(epsilon) else "no finite epsilon"
    return (
        f"a friendship stands in two units, its ends; for two units together the same noise gives {stated} at delta "
        f"{delta:g}"
    )
