"""The one table of event kinds, and everything that is read off it: composing, scaling, doubling, Rényi curves, JSON.

An event describes *one* run of a mechanism whose sensitivity, under the level's own relation, has been divided
out. What is known of a kind of event stands in one row of :data:`KINDS`; the mathematics stands in the family's own
file. Rules of events that hold other events are here, because they come back to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import attr
import numpy as np
from dp_accounting.dp_event import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from discreet.arrays import FloatArray
from discreet.errors import PrivacyError
from discreet.privacy.events.black_box import (
    ApproximateDpEvent,
    black_box_curve,
    black_box_for_two,
    black_box_pld,
    scaled_zcdp,
)
from discreet.privacy.events.gaussian import gaussian_curve, gaussian_pld, gaussian_variance
from discreet.privacy.events.grids import RDP_ORDERS, curve_by_dp_accounting
from discreet.privacy.events.group_sampling import (
    GroupFixedSampledGaussianDpEvent,
    GroupSampledGaussianDpEvent,
    group_fixed_curve,
    group_fixed_pld,
    group_for_two,
    group_poisson_curve,
    group_poisson_pld,
)
from discreet.privacy.events.laplace import laplace_pld
from discreet.privacy.events.node_sampling import SampledNodesDpEvent, sampled_nodes_for_two
from discreet.privacy.events.poisson_sampling import poisson_pld
from discreet.privacy.events.randomized_response import (
    randomized_response_curve,
    randomized_response_pld,
)
from discreet.privacy.events.selection import OneOfDpEvent, one_of_curve, repeated_curve
from discreet.privacy.events.top_k import OneShotTopKDpEvent, top_k_curve, top_k_pld


def _never(event: Any) -> bool:
    return False


def _one(event: Any) -> int:
    return 1


@dataclass(frozen=True)
class Kind:
    """All that is known of one kind of event. A rule that is None says that nobody has proved one.

    Parameters
    ----------
    name
        What JSON calls it; certificates that were written keep it for ever.
    scaled
        The event with its noise multiplied; the event itself where there is no noise dial.
    doubled
        The event when two units change at once. None, as the rule or as what it returns: refused.
    pld
        The privacy loss distribution of a number of runs, pessimistic, for both orders of the neighbours.
    rdp
        Rényi divergences of one run at :data:`RDP_ORDERS`, again for both orders.
    free_of_noise
        Whether this very event gives everything away; neither of the two above is asked then.
    variance
        For Gaussians, σ²/Δ²: events that have it compose in closed form. 0 gives everything away.
    black_box
        For black boxes, (ε, δ): events that have it are added up, and δ is set aside before a Rényi conversion.
    sampling
        For a sample of the units that speaks for all that follows it, its probability.
    convolved
        How many distributions ``pld`` composes for one run.
    """

    name: str
    scaled: Callable[[Any, float], DpEvent]
    doubled: Callable[[Any], DpEvent | None] | None
    pld: Callable[[Any, int], PrivacyLossDistribution | None] | None = None
    rdp: Callable[[Any], FloatArray | None] | None = None
    free_of_noise: Callable[[Any], bool] = _never
    variance: Callable[[Any], float] | None = None
    black_box: Callable[[Any], tuple[float, float]] | None = None
    sampling: Callable[[Any], float] | None = None
    convolved: Callable[[Any], int] = _one


def kind_of(event: DpEvent) -> Kind:
    """The row of an event."""
    kind = KINDS.get(type(event))
    if kind is None:
        raise PrivacyError(
            f"{type(event).__name__} is no known kind of event: it has no rule for scaling its noise, no accountant, "
            "and cannot be written to a certificate"
        )
    return kind


def add_kind(event_class: type[DpEvent], kind: Kind) -> None:
    """Add a kind of event that another package defines: an attrs class of plain fields, and its row.

    Call it where the class is defined, so that whoever can make such an event can also account for it. The rules
    carry the guarantee: ``pld`` and ``rdp`` must bound every pair of neighbours in both orders. A class or a name
    that the table has is refused, because a kind never changes its meaning.
    """
    if event_class in KINDS or kind.name in {known.name for known in KINDS.values()}:
        raise PrivacyError(f"{event_class.__name__} ({kind.name}) is in the table of events already")
    KINDS[event_class] = kind


# -------------------------------------------------------------------- one after another


def repeat(event: DpEvent, count: int) -> DpEvent:
    """The event run ``count`` times, adaptively."""
    return event if count == 1 else SelfComposedDpEvent(event, count)


def compose(events: Iterable[DpEvent]) -> DpEvent:
    """The events one after another, adaptively."""
    listed = list(events)
    if not listed:
        return NoOpDpEvent()
    return listed[0] if len(listed) == 1 else ComposedDpEvent(listed)


def leaves(event: DpEvent, count: int = 1) -> Iterator[tuple[DpEvent, int]]:
    """The elementary events with how often each runs: the one place where counts are applied."""
    if isinstance(event, SelfComposedDpEvent):
        yield from leaves(event.event, count * event.count)
    elif isinstance(event, ComposedDpEvent):
        for part in event.events:
            yield from leaves(part, count)
    elif not isinstance(event, NoOpDpEvent):
        yield event, count


def split_sampling(event: DpEvent) -> tuple[float, DpEvent]:
    """The probability of the sampling that comes first (1 for none), and the event of all that follows it."""
    listed = list(leaves(event))
    markers = [(place, rule) for place, (leaf, _) in enumerate(listed) if (rule := kind_of(leaf).sampling) is not None]
    if not markers:
        return 1.0, event
    (place, probability), *more = markers
    first, count = listed[0]
    if place != 0 or more or count != 1:
        raise PrivacyError("nodes are sampled once, before everything else: sampling later amplifies nothing before it")
    return float(probability(first)), compose(repeat(leaf, times) for leaf, times in listed[1:])


# -------------------------------------------------------------------- what is read off the table


def scale_noise(event: DpEvent, factor: float) -> DpEvent:
    """The same event with its noise multiplied; events without a noise dial are returned as they are."""
    return kind_of(event).scaled(event, factor)


def for_two_units(event: DpEvent) -> DpEvent:
    """The same event when two units change at once; refused where a part of it has no rule for that."""
    return compose(repeat(_doubled(leaf), count) for leaf, count in leaves(event))


def _doubled(leaf: DpEvent) -> DpEvent:
    rule = kind_of(leaf).doubled
    found = None if rule is None else rule(leaf)
    if found is None:
        raise PrivacyError(f"{type(leaf).__name__} has no rule for two units together")
    return found


def is_free_of_noise(leaf: DpEvent) -> bool:
    """Whether an elementary event gives everything away, so that ε is infinite."""
    return kind_of(leaf).free_of_noise(leaf)


def rdp_curve(leaf: DpEvent) -> FloatArray | None:
    """Rényi divergences of one elementary event at :data:`RDP_ORDERS`; None where it is not known."""
    rule = kind_of(leaf).rdp
    return None if rule is None else rule(leaf)


def composed_curve(event: DpEvent) -> FloatArray | None:
    """The Rényi curve of a whole composition; None where a part has none, or has a δ of its own."""
    total = np.zeros_like(RDP_ORDERS)
    for leaf, count in leaves(event):
        if is_free_of_noise(leaf):
            return np.full_like(RDP_ORDERS, np.inf)
        box = kind_of(leaf).black_box
        if box is not None and box(leaf)[1] > 0:
            return None
        curve = rdp_curve(leaf)
        if curve is None:
            return None
        total = total + count * curve
    return total


# -------------------------------------------------------------------- rules that several kinds share


def _multiplied(event: Any, factor: float) -> DpEvent:
    return attr.evolve(event, noise_multiplier=event.noise_multiplier * factor)


def _halved(event: Any) -> DpEvent:
    """Two units move the answer twice as far."""
    return attr.evolve(event, noise_multiplier=event.noise_multiplier / 2)


def _no_multiplier(event: Any) -> bool:
    return bool(event.noise_multiplier == 0)


def _fixed(event: Any, factor: float) -> DpEvent:
    return event


def _same(event: Any) -> DpEvent:
    return event


# -------------------------------------------------------------------- rules of events that hold other events


def _scaled_inner(event: Any, factor: float) -> DpEvent:
    return attr.evolve(event, event=scale_noise(event.event, factor))


def _scaled_parts(event: Any, factor: float) -> DpEvent:
    return attr.evolve(event, events=[scale_noise(part, factor) for part in event.events])


def _doubled_inner(event: Any) -> DpEvent:
    return attr.evolve(event, event=for_two_units(event.event))


def _doubled_parts(event: Any) -> DpEvent:
    return attr.evolve(event, events=[for_two_units(part) for part in event.events])


def _curve_of_one_of(event: OneOfDpEvent) -> FloatArray | None:
    return one_of_curve([composed_curve(part) for part in event.events])


def _curve_of_repeat(event: Any) -> FloatArray | None:
    curve = composed_curve(event.event)
    return None if curve is None else repeated_curve(curve, event.mean, event.shape)


# -------------------------------------------------------------------- the table

KINDS: dict[type[DpEvent], Kind] = {
    GaussianDpEvent: Kind(
        "Gaussian",
        scaled=_multiplied,
        doubled=_halved,
        pld=gaussian_pld,
        rdp=gaussian_curve,
        free_of_noise=_no_multiplier,
        variance=gaussian_variance,
    ),
    LaplaceDpEvent: Kind(
        "Laplace",
        scaled=_multiplied,
        doubled=_halved,
        pld=laplace_pld,
        rdp=curve_by_dp_accounting,
        free_of_noise=_no_multiplier,
    ),
    PoissonSampledDpEvent: Kind(
        "PoissonSampled",
        scaled=_scaled_inner,
        doubled=None,
        pld=poisson_pld,
        rdp=curve_by_dp_accounting,
        free_of_noise=lambda event: is_free_of_noise(event.event),
    ),
    GroupSampledGaussianDpEvent: Kind(
        "GroupSampledGaussian",
        scaled=_multiplied,
        doubled=group_for_two,
        pld=group_poisson_pld,
        rdp=group_poisson_curve,
        free_of_noise=_no_multiplier,
    ),
    GroupFixedSampledGaussianDpEvent: Kind(
        "GroupFixedSampledGaussian",
        scaled=_multiplied,
        doubled=group_for_two,
        pld=group_fixed_pld,
        rdp=group_fixed_curve,
        free_of_noise=_no_multiplier,
    ),
    OneShotTopKDpEvent: Kind(
        "OneShotTopK",
        scaled=_multiplied,
        doubled=_halved,
        pld=top_k_pld,
        rdp=top_k_curve,
        free_of_noise=_no_multiplier,
        convolved=lambda event: int(event.picks),
    ),
    RandomizedResponseDpEvent: Kind(
        "RandomizedResponse",
        scaled=_fixed,
        doubled=None,
        pld=randomized_response_pld,
        rdp=randomized_response_curve,
        free_of_noise=lambda event: bool(event.noise_parameter == 0),
    ),
    ApproximateDpEvent: Kind(
        "Approximate",
        scaled=_fixed,
        doubled=black_box_for_two,
        pld=black_box_pld,
        rdp=black_box_curve,
        black_box=lambda event: (event.epsilon, event.delta),
    ),
    ZCDpEvent: Kind("ZC", scaled=scaled_zcdp, doubled=None, rdp=curve_by_dp_accounting),
    NonPrivateDpEvent: Kind(
        "NonPrivate", scaled=_fixed, doubled=_same, free_of_noise=lambda event: True, variance=lambda event: 0.0
    ),
    SampledNodesDpEvent: Kind(
        "SampledNodes",
        scaled=_fixed,
        doubled=sampled_nodes_for_two,
        sampling=lambda event: float(event.sampling_probability),
    ),
    OneOfDpEvent: Kind("OneOf", scaled=_scaled_parts, doubled=_doubled_parts, rdp=_curve_of_one_of),
    RepeatAndSelectDpEvent: Kind("RepeatAndSelect", scaled=_scaled_inner, doubled=_doubled_inner, rdp=_curve_of_repeat),
    NoOpDpEvent: Kind("NoOp", scaled=_fixed, doubled=_same, rdp=composed_curve),
    SelfComposedDpEvent: Kind("SelfComposed", scaled=_scaled_inner, doubled=for_two_units, rdp=composed_curve),
    ComposedDpEvent: Kind("Composed", scaled=_scaled_parts, doubled=for_two_units, rdp=composed_curve),
}


# -------------------------------------------------------------------- JSON, without importing what a file names


def event_to_json(event: DpEvent) -> dict[str, Any]:
    """A dictionary of plain values; :func:`event_from_json` is its inverse."""
    fields = {field.name: _plain(getattr(event, field.name)) for field in attr.fields(type(event))}
    return {"kind": kind_of(event).name, **fields}


def event_from_json(data: dict[str, Any]) -> DpEvent:
    """Read an event; only the kinds of the table are admitted."""
    known = {kind.name: event_class for event_class, kind in KINDS.items()}
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str) or data["kind"] not in known:
        raise PrivacyError(f"the certificate holds an event of unknown kind: {data!r:.200}")
    event_class = known[data["kind"]]
    names = {field.name for field in attr.fields(event_class)}
    if set(data) - {"kind"} != names:
        raise PrivacyError(f"event {data['kind']} needs the fields {sorted(names)}, not {sorted(data)}")
    try:
        return event_class(**{name: _read(data[name]) for name in names})
    except (TypeError, AttributeError) as error:
        raise PrivacyError(f"event {data['kind']} cannot be read: {error!s:.200}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, DpEvent):
        return event_to_json(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return event_from_json(value)
    if isinstance(value, list):
        return [_read(item) for item in value]
    return value
