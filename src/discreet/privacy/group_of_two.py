"""ε for two units together: on the owned basis a friendship stands in two of them."""

from __future__ import annotations

import math
from typing import Any

import attr
from dp_accounting.dp_event import DpEvent, RepeatAndSelectDpEvent

from discreet.errors import PrivacyError
from discreet.privacy import events
from discreet.privacy.accountants import exact_epsilon, rdp_epsilon
from discreet.privacy.group_sampling import GroupFixedSampledGaussianDpEvent, GroupSampledGaussianDpEvent
from discreet.privacy.levels import Level, NeighborLevel, NodeLevel
from discreet.privacy.node_sampling import SampledNodesDpEvent
from discreet.privacy.selection import OneOfDpEvent
from discreet.privacy.top_k import OneShotTopKDpEvent


def group_note(level: Level, event: DpEvent, delta: float) -> str | None:
    """A sentence for the plan, where the level has units that share a friendship."""
    if not isinstance(level, NodeLevel | NeighborLevel) or level.edges != "owned":
        return None
    epsilon = epsilon_of_two(event, delta)
    stated = f"epsilon {epsilon:.4g}" if math.isfinite(epsilon) else "no finite epsilon"
    return (
        f"a friendship stands in two units, its ends; for two units together the same noise gives {stated} at delta "
        f"{delta:g}"
    )


def epsilon_of_two(event: DpEvent, delta: float) -> float:
    """An upper bound on ε when two units change at once, for every run of every event.

    Guarantee: two units together move a Gaussian query twice as far, change at most 2k terms of a sampled step
    (each anywhere within the clip norm), fail a bound of probability δ′ with at most 2δ′, and are not both missed
    by a sample of nodes with probability 1 − (1 − q)². Closed form for Gaussians, Rényi otherwise: quick, and not
    the tightest.
    """
    doubled = _doubled_all(event)
    exact = exact_epsilon(doubled, delta)
    if exact is not None:
        return exact
    bound = rdp_epsilon(doubled, delta)
    return math.inf if bound is None else bound


def _doubled_all(event: DpEvent) -> DpEvent:
    return events.compose(events.repeat(_doubled(leaf), count) for leaf, count in events.leaves(event))


def _doubled(leaf: Any) -> DpEvent:
    if isinstance(leaf, RepeatAndSelectDpEvent):
        return attr.evolve(leaf, event=_doubled_all(leaf.event))
    if isinstance(leaf, OneOfDpEvent):
        return OneOfDpEvent([_doubled_all(part) for part in leaf.events])
    if isinstance(leaf, events.GaussianDpEvent | events.LaplaceDpEvent | OneShotTopKDpEvent):
        return attr.evolve(leaf, noise_multiplier=leaf.noise_multiplier / 2)
    if isinstance(leaf, SampledNodesDpEvent):
        return SampledNodesDpEvent(1 - (1 - leaf.sampling_probability) ** 2)
    if isinstance(leaf, GroupSampledGaussianDpEvent):
        return attr.evolve(leaf, group_size=2 * leaf.group_size, change="replace")
    if isinstance(leaf, GroupFixedSampledGaussianDpEvent):
        return attr.evolve(leaf, group_size=2 * leaf.group_size, change="replace")
    if isinstance(leaf, events.ApproximateDpEvent) and leaf.epsilon == 0:
        return events.ApproximateDpEvent(0.0, min(1.0, 2 * leaf.delta))
    if isinstance(leaf, events.NonPrivateDpEvent):
        return leaf
    raise PrivacyError(f"{type(leaf).__name__} has no rule for two units together")
